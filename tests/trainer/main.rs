//! The trainer: it learns, it does not learn from shuffled descriptions, and a killed run reaches the same state.

mod comprehension;
mod full_disk;
mod learning;
mod loading;
mod many_people;
mod media;
mod people;
mod poison;
mod recovery;
mod resume;
#[path = "../support/small_disk.rs"]
mod small_disk;
mod support;
#[path = "../support/texts.rs"]
mod texts;
