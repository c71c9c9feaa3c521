//! Forms of the data set from which other programs train at once. Each family brings its own; pairs are for all.

use super::ExportError;
use super::walk::{Place, Snapshot, Table};
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

/// The examples of a snapshot in a form, in pieces of bytes. Answers that are not valid, and those of other families, give none.
pub fn examples(snapshot: Snapshot, form: TrainingForm) -> impl Stream<Item = Result<Vec<u8>, ExportError>> + Send {
    struct Walk {
        snapshot: Snapshot,
        place: Place,
        form: TrainingForm,
        first: bool,
        ended: bool,
    }
    let start = Walk { snapshot, place: Place::begin(Table::Descriptions), form, first: true, ended: false };
    stream::try_unfold(start, |mut walk| async move {
        if walk.ended {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        if walk.first && walk.form.list {
            bytes.extend(b"[");
        }
        match walk.snapshot.answers(&mut walk.place).await? {
            Some(rows) => {
                for row in rows {
                    for example in walk.snapshot.examples(walk.form.name, &row) {
                        put(&mut bytes, walk.form, &mut walk.first, &example)?;
                    }
                }
                // A page without an example, which is not the beginning of a list, is an empty piece.
                if walk.first && walk.form.list {
                    bytes.clear();
                }
            }
            None => {
                walk.ended = true;
                walk.snapshot.end().await;
                if walk.form.list {
                    bytes.extend(b"\n]\n");
                }
            }
        }
        Ok(Some((bytes, walk)))
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
