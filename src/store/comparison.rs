//! Sums of the answers that the runs of a study were given, for their comparison.

use super::convert::from_int;
use super::error::Result;
use super::points::rate;
use super::sql::{query_as, query_scalar, row};
use super::{Store, Study, StudyArm};
use crate::ids::{StudyId, TeacherId};
use crate::study::comparison::{Effort, TaughtRun, TeacherReadings};

impl Store {
    /// The runs of a study as [`crate::study::compare`] takes them. Sums are made by the database, so that a hundred thousand answers
    /// are little work.
    pub async fn taught_runs(&self, study: &Study) -> Result<Vec<TaughtRun>> {
        let mut runs = Vec::new();
        for arm in &study.arms {
            runs.push(self.taught_run(&study.id, arm).await?);
        }
        Ok(runs)
    }

    async fn taught_run(&self, study: &StudyId, arm: &StudyArm) -> Result<TaughtRun> {
        // One snapshot for all reads.
        let mut tx = self.readers().snapshot().await?;
        row! {
            struct EvaluationRow {
                update_no: i64,
                validation: Option<f64>,
                validation_n: Option<i64>,
                validation_low: Option<f64>,
                validation_high: Option<f64>,
            }
        }
        let evaluations = query_as!(
            EvaluationRow,
            "SELECT update_no, validation, validation_n, validation_low, validation_high FROM points
             WHERE run = ? AND validation IS NOT NULL ORDER BY update_no",
            arm.run,
        )
        .fetch_all(&mut tx)
        .await?;
        // No update uses skips and the like. They belong to the next update that used something given later: their time was spent
        // before it. Sums are made up to each evaluation, the first at or after the update.
        row! {
            struct EffortRow {
                at: Option<i64>,
                teacher: TeacherId,
                responses: i64,
                active_ms: i64,
                untimed: i64,
            }
        }
        let efforts = query_as!(
            EffortRow,
            r#"WITH given AS (
                   SELECT answers.teacher, kind, superseded_by, active_ms,
                       coalesce(used_in_update, min(used_in_update) OVER (ORDER BY id DESC)) AS at, CAST(NULL AS BIGINT) AS evaluated
                   FROM answers WHERE run = ?1 AND source = 'human'
                   UNION ALL
                   SELECT CAST(NULL AS BIGINT), NULL, CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), update_no, update_no FROM points
                   WHERE run = ?1 AND validation IS NOT NULL
               ), known AS (
                   SELECT teacher, kind, superseded_by, active_ms,
                       CASE WHEN at IS NOT NULL THEN min(evaluated) OVER (ORDER BY at DESC NULLS LAST) END AS at
                   FROM given
               )
               SELECT known.at AS "at?: i64", known.teacher AS "teacher!: TeacherId",
                   count(*) FILTER (WHERE kind <> 'skipped' AND superseded_by IS NULL) AS "responses!: i64",
                   coalesce(sum(active_ms), 0) AS "active_ms!: i64",
                   count(*) FILTER (WHERE active_ms IS NULL) AS "untimed!: i64"
               FROM known JOIN participants ON participants.study = ?2 AND participants.teacher = known.teacher
               GROUP BY known.at, known.teacher ORDER BY known.at NULLS FIRST, known.teacher"#,
            arm.run,
            study,
        )
        .fetch_all(&mut tx)
        .await?;
        let simulated_until = query_scalar!(
            "SELECT update_no FROM episodes WHERE run = ? ORDER BY recorded_at DESC, id DESC LIMIT 1",
            arm.run,
        )
        .fetch_optional(&mut tx)
        .await?
        .flatten();
        row! {
            struct ReadingRow {
                teacher: TeacherId,
                first: i64,
                first_right: i64,
                second: i64,
                second_right: i64,
            }
        }
        let readings = query_as!(
            ReadingRow,
            r#"SELECT told.teacher AS "teacher!: TeacherId",
                   count(*) FILTER (WHERE told.half = 1) AS "first!: i64",
                   coalesce(sum(told.understood) FILTER (WHERE told.half = 1), 0) AS "first_right!: i64",
                   count(*) FILTER (WHERE told.half = 2) AS "second!: i64",
                   coalesce(sum(told.understood) FILTER (WHERE told.half = 2), 0) AS "second_right!: i64"
               FROM (SELECT comprehension.teacher, before_understood AS understood,
                         ntile(2) OVER (ORDER BY comprehension.answer) AS half
                     FROM comprehension INDEXED BY comprehension_of_run
                     CROSS JOIN answers ON answers.id = comprehension.answer AND answers.superseded_by IS NULL
                     JOIN participants ON participants.study = ?2 AND participants.teacher = comprehension.teacher
                     WHERE comprehension.run = ?1 AND told_before = 0) AS told
               GROUP BY told.teacher ORDER BY told.teacher"#,
            arm.run,
            study,
        )
        .fetch_all(&mut tx)
        .await?;
        let read = |row| {
            let (update, value, n, low, high) = row;
            rate(value, n, low, high).map(|rate| (from_int(update), rate))
        };
        Ok(TaughtRun {
            run: Some(arm.run.clone()),
            condition: arm.name.clone(),
            evaluations: evaluations
                .into_iter()
                .map(|p| (p.update_no, p.validation, p.validation_n, p.validation_low, p.validation_high))
                .filter_map(read)
                .collect(),
            efforts: efforts
                .into_iter()
                .map(|row| Effort {
                    update: row.at.map(from_int),
                    teacher: row.teacher,
                    responses: from_int(row.responses),
                    active_ms: from_int(row.active_ms),
                    untimed: from_int(row.untimed),
                })
                .collect(),
            simulated_until: simulated_until.map(from_int),
            readings: readings
                .into_iter()
                .map(|row| TeacherReadings {
                    teacher: row.teacher,
                    first: (from_int(row.first), from_int(row.first_right)),
                    second: (from_int(row.second), from_int(row.second_right)),
                })
                .collect(),
        })
    }
}
