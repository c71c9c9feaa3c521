//! The actions that pages and JSON addresses share.

pub(crate) mod commands;
pub(crate) mod completion;
pub(crate) mod comprehension;
pub(crate) mod drafts;
pub(crate) mod echo;
pub(crate) mod launching;
pub(crate) mod media;
pub(crate) mod participation;
pub(crate) mod preview;
pub(crate) mod qualification;
pub(crate) mod review;
pub(crate) mod run_form;
pub(crate) mod run_list;
pub(crate) mod study_form;
pub(crate) mod teacher_statistics;
pub(crate) mod teaching;
pub(crate) mod undo;
