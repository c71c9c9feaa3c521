//! The trainer: it learns, it does not learn from shuffled descriptions, and a killed run reaches the same state.

mod comprehension;
mod full_disk;
mod learning;
mod loading;
mod many_people;
mod media;
mod people;
mod recovery;
mod resume;
mod support;
