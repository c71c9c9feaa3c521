//! The store from outside: what people, trainer and exports may rely on. The cases from public complaints about
//! similar tools stand under `complaints`.

mod accounts;
mod agreement;
mod answers;
mod attention;
mod clock;
mod complaints;
mod comprehension;
mod concurrency;
mod damage;
mod drafts;
mod episodes;
mod export;
mod full_disk;
mod history;
mod import;
mod kill;
mod model;
mod plans;
#[path = "../support/postgres.rs"]
mod postgres;
mod processes;
mod queue;
mod reviews;
mod run_labels;
mod size;
#[path = "../support/small_disk.rs"]
mod small_disk;
mod support;
mod undo;
mod visitors;
