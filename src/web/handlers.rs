//! Handlers: a file for each page or resource, with its template, its handlers and its tests.

pub(crate) mod access;
pub(crate) mod account;
pub(crate) mod answers;
pub(crate) mod assets;
pub(crate) mod comprehension_api;
pub(crate) mod describing_api;
pub(crate) mod docs;
pub(crate) mod events;
pub(crate) mod export;
pub(crate) mod guide;
pub(crate) mod health;
pub(crate) mod home;
pub(crate) mod invite;
pub(crate) mod launch_api;
pub(crate) mod not_found;
pub(crate) mod people;
pub(crate) mod run;
pub(crate) mod run_api;
pub(crate) mod runs;
pub(crate) mod sign_in;
pub(crate) mod studies;
pub(crate) mod study;
pub(crate) mod study_people;
pub(crate) mod teach;
pub(crate) mod teach_api;
pub(crate) mod undo;
