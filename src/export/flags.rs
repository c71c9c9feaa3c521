//! The quality flags of exported rows. They depend on everything that a teacher gave in a run, so that is read once for each teacher
//! whom an export meets; what is kept are the flags alone.

use crate::ids::{AnswerId, RunId, TeacherId};
use crate::store::{ExportRow, Result, Store};
use crate::study::quality::{self, Flag};
use std::collections::{BTreeMap, HashMap};

/// Teachers whose flags are kept; with more of them all are read anew when they come again.
const KEPT: usize = 1_000;

/// The flags of a teacher in a run.
struct TeacherFlags {
    /// Those of single answers.
    answers: BTreeMap<AnswerId, Vec<Flag>>,
    /// Those that every answer has.
    teacher: Vec<Flag>,
}

/// The flags of the teachers whom an export has met.
#[derive(Default)]
pub(super) struct Flags(HashMap<(RunId, TeacherId), TeacherFlags>);

impl Flags {
    /// Fills in the flags of rows that stand; the others have none.
    pub(super) async fn fill(&mut self, store: &Store, rows: &mut [ExportRow]) -> Result<()> {
        for row in rows.iter_mut().filter(|row| row.superseded_by.is_none() && !row.retracted) {
            let Some(teacher) = row.teacher else { continue };
            let key = (row.run.clone(), teacher);
            if !self.0.contains_key(&key) {
                if self.0.len() >= KEPT {
                    self.0.clear();
                }
                let facts = store.quality_facts(&row.run, teacher).await?;
                let checks = store.attention_of(&row.run, teacher).await?;
                let names = |flagged: Vec<quality::Flagged>| flagged.into_iter().map(|one| one.flag).collect();
                let flags = TeacherFlags {
                    answers: quality::of_answers(&facts).into_iter().map(|(key, all)| (key, names(all))).collect(),
                    teacher: names(quality::of_teacher(&facts, checks)),
                };
                self.0.insert(key.clone(), flags);
            }
            let known = &self.0[&key];
            row.quality_flags = known.answers.get(&row.answer).cloned().unwrap_or_default();
            row.quality_flags.extend(&known.teacher);
        }
        Ok(())
    }
}
