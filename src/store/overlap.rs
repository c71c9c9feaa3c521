//! Overlap: a study asks several teachers about the same execution. Its executions then want as many answers.

use super::convert::{from_int, from_json};
use super::error::Result;
use super::sql::{Transaction, query, query_as, row};
use crate::ids::{ExecutionId, RunId, StudyId};
use crate::study::StudySettings;

/// The study that is open and teaches a run, with its settings.
pub(super) async fn open_study(tx: &mut Transaction<'_>, run: &RunId) -> Result<Option<(StudyId, StudySettings)>> {
    row! {
        struct Row {
            id: StudyId,
            settings: String,
        }
    }
    let row = query_as!(
        Row,
        r#"SELECT studies.id AS "id!: StudyId", studies.settings AS "settings!" FROM study_arms
           CROSS JOIN studies ON studies.id = study_arms.study
           WHERE study_arms.run = ? AND studies.state = 'open'"#,
        run,
    );
    let row = row.fetch_optional(&mut *tx).await?;
    row.map(|row| Ok((row.id, from_json("a study's settings", &row.settings)?))).transpose()
}

/// How many answers the execution of an episode wants, where its run wants `wanted` of each.
pub(super) fn wanted(study: Option<&(StudyId, StudySettings)>, episode: u64, wanted: u32) -> u32 {
    study.map_or(wanted, |(id, settings)| wanted.max(settings.teachers_asked(id, episode)))
}

/// Has the executions that wait in the runs of a study want as many answers as its settings ask for. None wants fewer than before:
/// somebody may be at it.
pub(super) async fn raise(tx: &mut Transaction<'_>, study: &StudyId, settings: &StudySettings) -> Result<()> {
    if settings.overlap <= 1 {
        return Ok(());
    }
    row! {
        struct Row {
            id: ExecutionId,
            episode: i64,
        }
    }
    let waiting = query_as!(
        Row,
        r#"SELECT executions.id AS "id!: ExecutionId", executions.episode AS "episode!" FROM study_arms
           CROSS JOIN executions ON executions.run = study_arms.run AND executions.state = 'open'
           WHERE study_arms.study = ?"#,
        study,
    )
    .fetch_all(&mut *tx)
    .await?;
    for execution in waiting {
        let asked = settings.teachers_asked(study, from_int(execution.episode));
        query!("UPDATE executions SET wanted = max(wanted, ?2) WHERE id = ?1", execution.id, asked)
            .execute(&mut *tx)
            .await?;
    }
    Ok(())
}
