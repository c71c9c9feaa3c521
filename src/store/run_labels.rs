//! Labels of runs: names, notes and tags; whether a run is archived; and where it came from.

use super::Store;
use super::connection::Durability;
use super::convert::{from_int, from_json, from_nanos, to_int, to_json};
use super::error::{Missing, Result, StoreError};
use super::sql::{query, query_as, row};
use crate::ids::RunId;
use serde::Serialize;
use std::collections::BTreeMap;
use time::OffsetDateTime;

/// Most characters of a run's name.
pub const RUN_NAME_LIMIT: usize = 80;

/// Most characters of a run's notes.
pub const NOTES_LIMIT: usize = 10_000;

/// Most tags of a run.
pub const TAGS_LIMIT: usize = 20;

/// Most characters of a tag.
pub const TAG_LIMIT: usize = 32;

/// The maker of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MadeBy {
    /// The server.
    #[default]
    Server,
    /// `iliad train`, whose folder was found among the runs.
    Train,
    /// `iliad reproduce`, whose folder was found in the data folder.
    Reproduce,
    /// `iliad import`: its answers came from a file, and no agent belongs to it.
    Import,
}

impl MadeBy {
    /// Whether a server can go on with such a run: not where another command does, and not where there is no agent.
    pub fn goes_on_here(self) -> bool {
        matches!(self, MadeBy::Server | MadeBy::Train)
    }

    /// The value as it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            MadeBy::Server => "server",
            MadeBy::Train => "train",
            MadeBy::Reproduce => "reproduce",
            MadeBy::Import => "import",
        }
    }

    fn parse(word: &str) -> MadeBy {
        [MadeBy::Train, MadeBy::Reproduce, MadeBy::Import]
            .into_iter()
            .find(|made| made.as_str() == word)
            .unwrap_or_default()
    }
}

/// The checkpoint of another run with which a run began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct RunParent {
    /// The other run.
    pub run: RunId,
    /// File name of its checkpoint.
    pub checkpoint: String,
}

/// The history of a run before the store began to record it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Inherited {
    /// Updates made by then.
    pub update: u64,
    /// Descriptions by people that it had learned from.
    pub people: u64,
}

/// Where a run came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunOrigin {
    /// Its maker.
    pub made_by: MadeBy,
    /// The run's folder within the data folder, with `/` between folders, where it is another than `runs/ID`.
    pub folder: Option<String>,
    /// The checkpoint with which it began, of a run that continues another.
    pub parent: Option<RunParent>,
    /// Its history before the store began to record it.
    pub inherited: Inherited,
}

/// The label of a run, beside its configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, utoipa::ToSchema)]
pub struct RunLabel {
    /// Name that people gave it; empty: none.
    pub name: String,
    /// Notes in plain text.
    pub notes: String,
    /// Tags, sorted.
    pub tags: Vec<String>,
    /// When it was archived: lists leave it out unless they are asked for it.
    #[serde(with = "time::serde::rfc3339::option")]
    pub archived_at: Option<OffsetDateTime>,
    /// When it was put into the trash.
    #[serde(with = "time::serde::rfc3339::option")]
    pub trashed_at: Option<OffsetDateTime>,
    /// When its files were removed for good, of a run whose rows stay with a study.
    #[serde(skip)]
    pub purged_at: Option<OffsetDateTime>,
    /// Its maker.
    pub made_by: MadeBy,
    /// The run's folder within the data folder, with `/` between folders, where it is another than `runs/ID`.
    #[serde(skip)]
    pub folder: Option<String>,
    /// The checkpoint with which it began, of a run that continues another.
    pub parent: Option<RunParent>,
    /// Its history before the store began to record it.
    pub inherited: Inherited,
}

/// A change of a run's label; what is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelChange {
    /// Another name; empty: none.
    pub name: Option<String>,
    /// Other notes.
    pub notes: Option<String>,
    /// Other tags.
    pub tags: Option<Vec<String>>,
    /// Whether it is archived.
    pub archived: Option<bool>,
}

row! {
    struct Row {
        run: RunId,
        name: String,
        notes: String,
        tags: String,
        archived_at: Option<i64>,
        trashed_at: Option<i64>,
        purged_at: Option<i64>,
        made_by: String,
        folder: Option<String>,
        parent: Option<RunId>,
        parent_checkpoint: Option<String>,
        inherited_update: Option<i64>,
        inherited_people: Option<i64>,
    }
}

impl Row {
    fn read(self) -> Result<(RunId, RunLabel)> {
        let parent = self.parent.zip(self.parent_checkpoint).map(|(run, checkpoint)| RunParent { run, checkpoint });
        let inherited = Inherited {
            update: self.inherited_update.map(from_int).unwrap_or_default(),
            people: self.inherited_people.map(from_int).unwrap_or_default(),
        };
        let label = RunLabel {
            name: self.name,
            notes: self.notes,
            tags: from_json("a run's tags", &self.tags)?,
            archived_at: self.archived_at.map(from_nanos),
            trashed_at: self.trashed_at.map(from_nanos),
            purged_at: self.purged_at.map(from_nanos),
            made_by: MadeBy::parse(&self.made_by),
            folder: self.folder,
            parent,
            inherited,
        };
        Ok((self.run, label))
    }
}

/// Selects [`Row`]s. The arguments are the rest of the statement and its parameters.
macro_rules! select_labels {
    ($rest:literal $(, $parameter:expr)*) => {
        query_as!(
            Row,
            r#"SELECT run AS "run!: RunId", name AS "name!", notes AS "notes!", tags AS "tags!", archived_at, trashed_at,
                   purged_at, made_by AS "made_by!", folder, parent AS "parent: RunId", parent_checkpoint,
                   inherited_update, inherited_people
               FROM run_labels "# + $rest
            $(, $parameter)*
        )
    };
}

/// Why a label cannot be changed so: the field, and a sentence that says what to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelProblem {
    /// `name`, `notes` or `tags`.
    pub field: &'static str,
    /// The sentence, without its full stop.
    pub sentence: String,
}

impl LabelChange {
    /// The change as it is stored: a name of one line, tags in small letters, sorted, each once.
    ///
    /// # Errors
    /// For texts that are too long.
    pub fn clean(&self) -> Result<LabelChange, LabelProblem> {
        let refuse = |field, sentence: String| Err(LabelProblem { field, sentence });
        let one_line = |text: &String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let name = self.name.as_ref().map(one_line);
        if name.as_ref().is_some_and(|name| name.chars().count() > RUN_NAME_LIMIT) {
            return refuse("name", format!("a run\u{2019}s name has at most {RUN_NAME_LIMIT} characters"));
        }
        if self.notes.as_ref().is_some_and(|notes| notes.chars().count() > NOTES_LIMIT) {
            return refuse("notes", format!("notes have at most {NOTES_LIMIT} characters"));
        }
        let tags = self.tags.as_ref().map(|tags| {
            let mut tags: Vec<String> =
                tags.iter().map(one_line).map(|tag| tag.to_lowercase()).filter(|tag| !tag.is_empty()).collect();
            tags.sort();
            tags.dedup();
            tags
        });
        if tags.as_ref().is_some_and(|tags| tags.len() > TAGS_LIMIT) {
            return refuse("tags", format!("a run has at most {TAGS_LIMIT} tags"));
        }
        let unfit = |tag: &String| tag.chars().count() > TAG_LIMIT || tag.contains(',');
        if tags.as_ref().is_some_and(|tags| tags.iter().any(unfit)) {
            return refuse("tags", format!("a tag has at most {TAG_LIMIT} characters and no comma"));
        }
        Ok(LabelChange { name, notes: self.notes.clone(), tags, archived: self.archived })
    }
}

impl Store {
    /// The label of a run; the defaults where nobody said anything.
    pub async fn run_label(&self, run: &RunId) -> Result<RunLabel> {
        let row = select_labels!("WHERE run = ?", run).fetch_optional(self.readers()).await?;
        Ok(row.map(Row::read).transpose()?.map(|(_, label)| label).unwrap_or_default())
    }

    /// The labels of these runs, as far as they have any.
    pub async fn run_labels(&self, runs: &[RunId]) -> Result<BTreeMap<RunId, RunLabel>> {
        let runs = to_json(&runs)?;
        let rows = select_labels!("WHERE run IN (SELECT value FROM json_each(?))", runs).fetch_all(self.readers());
        rows.await?.into_iter().map(Row::read).collect()
    }

    /// Changes what is said about a run; its label afterwards.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] with a sentence for texts that are too long.
    pub async fn label_run(&self, run: &RunId, change: &LabelChange) -> Result<RunLabel> {
        let change = change.clean().map_err(|problem| StoreError::Conflict(problem.sentence))?;
        let tags = change.tags.as_ref().map(to_json).transpose()?;
        let (now, archived) = (self.now(), change.archived);
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        query!("INSERT INTO run_labels (run) VALUES (?) ON CONFLICT (run) DO NOTHING", run)
            .execute(&mut tx)
            .await
            .or_missing("the run")?;
        query!(
            "UPDATE run_labels SET name = coalesce(?, name), notes = coalesce(?, notes), tags = coalesce(?, tags)
             WHERE run = ?",
            change.name,
            change.notes,
            tags,
            run,
        )
        .execute(&mut tx)
        .await?;
        if let Some(archived) = archived {
            let at = archived.then_some(now);
            query!("UPDATE run_labels SET archived_at = ? WHERE run = ?", at, run).execute(&mut tx).await?;
        }
        tx.commit().await?;
        drop(writer);
        self.run_label(run).await
    }

    /// Remembers where a run came from.
    pub async fn set_run_origin(&self, run: &RunId, origin: &RunOrigin) -> Result<()> {
        let made_by = origin.made_by.as_str();
        let (other, checkpoint) = origin.parent.as_ref().map(|parent| (&parent.run, &parent.checkpoint)).unzip();
        let update = to_int("the update", origin.inherited.update)?;
        let people = to_int("the number of descriptions", origin.inherited.people)?;
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        query!(
            "INSERT INTO run_labels (run, made_by, folder, parent, parent_checkpoint, inherited_update, inherited_people)
             VALUES (?, ?, ?, ?, ?, ?, ?)
             ON CONFLICT (run) DO UPDATE SET made_by = excluded.made_by, folder = excluded.folder,
                 parent = excluded.parent, parent_checkpoint = excluded.parent_checkpoint,
                 inherited_update = excluded.inherited_update, inherited_people = excluded.inherited_people",
            run,
            made_by,
            origin.folder,
            other,
            checkpoint,
            update,
            people,
        )
        .execute(&mut tx)
        .await
        .or_missing("the run")?;
        Ok(tx.commit().await?)
    }

    /// Replaces the stored configuration of a run.
    pub async fn set_run_config(&self, run: &RunId, config: &serde_json::Value) -> Result<()> {
        let config = to_json(config)?;
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let updated = query!("UPDATE runs SET config = ? WHERE id = ?", config, run).execute(&mut tx).await?;
        if updated.rows_affected() == 0 {
            return Err(StoreError::NotFound("the run"));
        }
        Ok(tx.commit().await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_tags_are_stored_clean() {
        let named = |name: &str| LabelChange { name: Some(name.to_owned()), ..LabelChange::default() }.clean();
        assert_eq!(named("  A  \n name ").unwrap().name.unwrap(), "A name");
        assert_eq!(named(&"x".repeat(RUN_NAME_LIMIT + 1)).unwrap_err().field, "name");
        let tagged = |tags: &[&str]| {
            let tags = Some(tags.iter().map(|tag| (*tag).to_owned()).collect());
            LabelChange { tags, ..LabelChange::default() }.clean()
        };
        assert_eq!(tagged(&["Pilot", " a  b ", "pilot", ""]).unwrap().tags.unwrap(), ["a b", "pilot"]);
        assert_eq!(tagged(&["a,b"]).unwrap_err().field, "tags");
        assert!(tagged(&[&"x".repeat(TAG_LIMIT + 1)]).is_err());
    }
}
