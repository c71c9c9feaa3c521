//! Forms of the data set from which other programs train at once. Each family brings its own; pairs are for all.

use super::manifest::{Description, FileEntry, Manifest};
use super::walk::{Place, Snapshot, Table};
use super::{ExportError, Progress};
use crate::family::dataset::TrainingForm;
use crate::output::json;
use crate::registry::Registry;
use futures::{Stream, stream};
use serde_json::Value;

/// Name of the form for language models.
pub const PAIRS: &str = "pairs";

/// All forms, those of the families first.
pub fn all(families: Registry) -> Vec<TrainingForm> {
    let mut forms: Vec<TrainingForm> = families.families().iter().filter_map(|family| family.training_form()).collect();
    forms.push(TrainingForm {
        name: PAIRS,
        about: "Request, execution in words and description, for language models.",
        list: false,
    });
    forms
}

/// The form of a name.
pub fn named(families: Registry, name: &str) -> Option<TrainingForm> {
    all(families).into_iter().find(|form| form.name == name)
}

/// A file of examples that is being made. Answers that are not valid, and those of other families, give none.
pub struct ExamplesFile {
    snapshot: Snapshot,
    place: Place,
    form: TrainingForm,
    first: bool,
    ended: bool,
    /// Rows that were looked at, and examples that they gave.
    done: u64,
    examples: u64,
}

impl ExamplesFile {
    /// Begins a file.
    pub fn new(snapshot: Snapshot, form: TrainingForm) -> ExamplesFile {
        let place = Place::begin(Table::Descriptions);
        ExamplesFile { snapshot, place, form, first: true, ended: false, done: 0, examples: 0 }
    }

    /// The next bytes, with how many of the rows were looked at; none at the end.
    ///
    /// # Errors
    /// When the store cannot be read, or an example cannot be written.
    pub async fn next(&mut self) -> Result<Option<(Vec<u8>, Progress)>, ExportError> {
        if self.ended {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        if self.first && self.form.list {
            bytes.extend(b"[");
        }
        match self.snapshot.answers(&mut self.place).await? {
            Some(rows) => {
                self.done += rows.len() as u64;
                for row in rows {
                    let examples = self.snapshot.examples(self.form.name, &row);
                    if !examples.is_empty() {
                        // The manifest names its run.
                        self.snapshot.facts(&row.run).await?;
                    }
                    for example in examples {
                        put(&mut bytes, self.form, &mut self.first, &example)?;
                        self.examples += 1;
                    }
                }
                // A page without an example, which is not the beginning of a list, is an empty piece.
                if self.first && self.form.list {
                    bytes.clear();
                }
            }
            None => {
                self.ended = true;
                self.snapshot.end().await;
                if self.form.list {
                    bytes.extend(b"\n]\n");
                }
            }
        }
        Ok(Some((bytes, Progress { done: self.done, rows: self.snapshot.descriptions() })))
    }

    /// The manifest of the file, known at its end. Its rows are the examples.
    pub fn manifest(&self, about: Description, path: String, bytes: u64, sha256: String) -> Manifest {
        let table = Some(self.form.name.to_owned());
        Manifest::new(&self.snapshot, about, vec![FileEntry { path, table, rows: Some(self.examples), bytes, sha256 }])
    }
}

/// Gives the file of examples in pieces, for an HTTP body.
pub fn examples(
    snapshot: Snapshot,
    form: TrainingForm,
) -> impl Stream<Item = Result<(Vec<u8>, Progress), ExportError>> + Send {
    stream::try_unfold(ExamplesFile::new(snapshot, form), |mut file| async move {
        Ok(file.next().await?.map(|piece| (piece, file)))
    })
}

fn put(bytes: &mut Vec<u8>, form: TrainingForm, first: &mut bool, example: &Value) -> Result<(), ExportError> {
    if form.list {
        bytes.extend(if *first { &b"\n"[..] } else { b",\n" });
    }
    *first = false;
    json::write(&mut *bytes, example).map_err(|e| ExportError::Encoding(e.to_string()))?;
    if !form.list {
        bytes.push(b'\n');
    }
    Ok(())
}
