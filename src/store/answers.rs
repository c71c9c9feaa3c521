//! Answers of people. Nothing here is ever deleted or altered: a correction is a new row that the old one points to.

use super::connection::Durability;
use super::convert::{from_int, from_json, from_nanos, to_int, to_json, to_nanos};
use super::error::{Missing, Result, StoreError, unreadable};
use super::sql::{Transaction, query, query_as, query_scalar, row};
use super::{AnswerKind, NewAnswer, OwnAnswer, Response, Store, Stored};
use crate::ids::{AnswerId, ExecutionId, RunId, TeacherId};
use crate::protocol::Medium;

impl AnswerKind {
    /// The kind as it is stored and exported.
    pub fn as_str(self) -> &'static str {
        match self {
            AnswerKind::Described => "described",
            AnswerKind::NothingChanged => "nothing_changed",
            AnswerKind::CannotDescribe => "cannot_describe",
            AnswerKind::Skipped => "skipped",
        }
    }

    /// The kind that is stored as `text`.
    pub(super) fn parse(text: &str) -> Result<AnswerKind> {
        [AnswerKind::Described, AnswerKind::NothingChanged, AnswerKind::CannotDescribe, AnswerKind::Skipped]
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| unreadable("an answer's kind", text))
    }
}

/// Earlier answers of a teacher to an execution with which a new one is compared.
const COMPARED: u32 = 20;

row! {
    /// A stored answer with the columns that a new one is compared with.
    struct StoredAnswer {
        id: AnswerId,
        execution: ExecutionId,
        kind: String,
        text: String,
        fulfilled: bool,
        demonstration: Option<String>,
        rating: Option<f64>,
        superseded_by: Option<AnswerId>,
        late: i64,
        withdrawn_at: Option<i64>,
    }
}

impl StoredAnswer {
    /// Whether the new answer repeats this one and need not be stored. An answer that was taken back or retracted is repeated by
    /// none: its teacher may send the same text once more and mean it.
    fn is_repeated_by(&self, new: &NewAnswer) -> bool {
        self.withdrawn_at.is_none()
            && self.execution == new.execution
            && self.kind == new.kind.as_str()
            && self.text == new.text
            && self.fulfilled == new.fulfilled
            && self.rating == new.response.rating()
            && self.demonstration.as_deref().and_then(|text| serde_json::from_str(text).ok()).as_ref()
                == new.response.demonstration()
    }

    fn again(&self) -> Stored {
        Stored { answer: self.id, again: true }
    }
}

/// Selects [`StoredAnswer`]s. The arguments are the rest of the statement and its parameters.
macro_rules! select_answers {
    ($rest:literal, $($parameter:expr),+) => {
        query_as!(
            StoredAnswer,
            r#"SELECT id AS "id!: AnswerId", execution AS "execution!: ExecutionId", kind, text, demonstration, rating,
                   fulfilled AS "fulfilled!: bool", superseded_by AS "superseded_by?: AnswerId", late,
                   coalesce(withdrawn_at, retracted_at) AS "withdrawn_at?: i64"
               FROM answers "# + $rest,
            $($parameter),+
        )
    };
}

row! {
    struct OwnRow {
        id: AnswerId,
        execution: ExecutionId,
        view: String,
        kind: String,
        text: String,
        demonstration: Option<String>,
        rating: Option<f64>,
        created_at: i64,
        used_in_update: Option<i64>,
        fulfilled: bool,
    }
}

impl OwnRow {
    fn read(self) -> Result<OwnAnswer> {
        Ok(OwnAnswer {
            answer: self.id,
            execution: self.execution,
            view: from_json("an execution's view", &self.view)?,
            kind: AnswerKind::parse(&self.kind)?,
            text: self.text,
            response: Response::read(self.demonstration, self.rating)?,
            created_at: from_nanos(self.created_at),
            used_in_update: self.used_in_update.map(from_int),
            fulfilled: self.fulfilled,
        })
    }
}

row! {
    /// The columns that an answer inherits from its execution and run.
    struct Target {
        run: RunId,
        episode: i64,
        policy_update: i64,
        request_shown: bool,
        medium: String,
    }
}

impl Target {
    /// Refuses a response of another medium than the run's: no learner could make anything of it.
    fn check_medium(&self, new: &NewAnswer) -> Result<()> {
        let given = match new.response {
            Response::Text => Medium::Description,
            Response::Demonstration(_) => Medium::Demonstration,
            Response::Rating(_) => Medium::Rating,
        };
        if given.word() == self.medium || (new.kind != AnswerKind::Described && given == Medium::Description) {
            return Ok(());
        }
        Err(StoreError::Invalid(format!("people teach this run by {0}s, and the answer has no {0}", self.medium)))
    }
}

/// Column `late`: the answer takes one of the execution's places.
const IN_TIME: i64 = 0;
/// It came when all places were taken or in others' hands; the trainer learns from it.
const LATE: i64 = 1;
/// It came later still; it is kept for the dataset.
const TOO_LATE: i64 = 2;

impl Store {
    /// Stores an answer durably and ends the lease. It has to be about an execution that the teacher holds or has held:
    /// an answer whose lease ran out, or to an execution that was retired, or of a run that ended, is still taken.
    ///
    /// When every place of the execution has been answered, or is in others' hands by now, the answer is late: it is
    /// stored all the same, but takes nobody's place, so that who has the execution on the screen notices nothing. The
    /// trainer learns from as many late answers as the execution wants in time; what comes later still is kept for the
    /// dataset only.
    ///
    /// The same `client_key` stores once, and so do the same words about the same execution from two tabs. Other words
    /// by the same teacher about an execution they have answered (two tabs again) replace the earlier ones, as a
    /// correction does; only a skip never replaces a description.
    ///
    /// The medium, and whether the teacher could see the request, are taken from the run's configuration (`algorithm.name`,
    /// `pool.show_request`), and from whether they asked to see it ([`Store::reveal`]). Their draft about the execution goes with the
    /// answer.
    ///
    /// # Errors
    /// [`StoreError::NeverYours`] when the teacher never had the execution, [`StoreError::KeyReused`] when the key was
    /// stored with other words or its answer was taken back, [`StoreError::NotFound`] for an unknown execution or teacher, [`StoreError::Invalid`]
    /// for a key that is empty or too long, and for a response that is not of the run's medium.
    pub async fn answer(&self, answer: &NewAnswer) -> Result<Stored> {
        check_key(&answer.client_key)?;
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        if let Some(stored) = stored_before(&mut tx, answer).await? {
            return Ok(stored);
        }
        let target = target(&mut tx, answer.execution, answer.teacher).await?;
        target.check_medium(answer)?;
        has_held(&mut tx, answer).await?;
        self.visitors().note(&target.run, answer.teacher, self.monotonic_now());
        // Only the newest: somebody may have corrected this one very often, and two tabs send soon after each other.
        let earlier = select_answers!(
            "INDEXED BY answers_of_execution WHERE execution = ? AND teacher = ? ORDER BY id DESC LIMIT ?",
            answer.execution,
            answer.teacher,
            COMPARED
        )
        .fetch_all(&mut tx)
        .await?;
        if let Some(same) = earlier.iter().find(|earlier| earlier.is_repeated_by(answer)) {
            return Ok(same.again());
        }
        let standing = select_answers!(
            "INDEXED BY answers_standing
             WHERE execution = ? AND teacher = ? AND superseded_by IS NULL AND execution IS NOT NULL",
            answer.execution,
            answer.teacher
        )
        .fetch_optional(&mut tx)
        .await?;
        let standing = standing.as_ref();
        let keeps =
            standing.filter(|old| answer.kind == AnswerKind::Skipped && old.kind != AnswerKind::Skipped.as_str());
        let late = self.lateness(&mut tx, answer, standing).await?;
        let now = self.now();
        let id = match (standing, keeps) {
            (_, Some(kept)) => insert(&mut tx, answer, &target, late, None, Some(kept.id), now).await?,
            (Some(old), None) => supersede(&mut tx, old.id, answer, &target, late, now).await?,
            (None, None) => insert(&mut tx, answer, &target, late, None, None, now).await?,
        };
        update_execution(&mut tx, answer).await?;
        tx.commit().await?;
        Ok(Stored { answer: id, again: false })
    }

    /// Column `late` of an answer that takes the place of `standing`, the teacher's own.
    async fn lateness(
        &self,
        tx: &mut Transaction<'_>,
        new: &NewAnswer,
        standing: Option<&StoredAnswer>,
    ) -> Result<i64> {
        if new.kind == AnswerKind::Skipped {
            return Ok(IN_TIME); // It takes no place in any case.
        }
        if let Some(old) = standing.filter(|old| old.kind != AnswerKind::Skipped.as_str()) {
            return Ok(old.late);
        }
        let now = self.monotonic_now();
        row! {
            struct Row {
                has_place: bool,
                learns_late: bool,
            }
        }
        let capacity = query_as!(
            Row,
            r#"SELECT given + (SELECT count(*) FROM leases
                       WHERE leases.execution = ?1 AND leases.renewed_at <= ?3 AND leases.expires_at > ?3
                           AND leases.teacher <> ?2) < wanted AS "has_place!: bool",
                   (SELECT count(*) FROM answers INDEXED BY answers_standing
                       WHERE answers.execution = ?1 AND answers.late = 1 AND answers.superseded_by IS NULL
                           AND answers.execution IS NOT NULL) < wanted AS "learns_late!: bool"
               FROM executions WHERE id = ?1"#,
            new.execution,
            new.teacher,
            now,
        )
        .fetch_one(&mut *tx)
        .await?;
        Ok(match (capacity.has_place, capacity.learns_late) {
            (true, _) => IN_TIME,
            (false, true) => LATE,
            (false, false) => TOO_LATE,
        })
    }

    /// The person's latest answers in the run that may still be corrected (not superseded), newest first.
    pub async fn own_answers(&self, run: &RunId, teacher: TeacherId, limit: u32) -> Result<Vec<OwnAnswer>> {
        query_as!(
            OwnRow,
            r#"SELECT answers.id AS "id!: AnswerId", answers.execution AS "execution!: ExecutionId",
                   body.view AS "view!", answers.kind AS "kind!", answers.text AS "text!",
                   answers.demonstration, answers.rating, answers.created_at AS "created_at!", answers.used_in_update,
                   answers.fulfilled AS "fulfilled!: bool"
               FROM answers
               CROSS JOIN execution_bodies AS body ON body.execution = answers.execution
               WHERE answers.run = ? AND answers.teacher = ? AND answers.superseded_by IS NULL
                   AND answers.retracted_at IS NULL
               ORDER BY answers.id DESC LIMIT ?"#,
            run,
            teacher,
            limit,
        )
        .fetch_all(self.readers())
        .await?
        .into_iter()
        .map(OwnRow::read)
        .collect()
    }

    /// Whether a person has described an execution of the run, learnt from or not. Looks at one row where there is one.
    pub async fn has_descriptions(&self, run: &RunId) -> Result<bool> {
        Ok(query_scalar!(
            r#"SELECT EXISTS (SELECT 1 FROM answers WHERE run = ?1 AND used_position IS NOT NULL AND kind = 'described')
                   OR EXISTS (SELECT 1 FROM answers WHERE run = ?1 AND used_in_update IS NULL AND superseded_by IS NULL
                       AND execution IS NOT NULL AND kind <> 'skipped' AND late < 2 AND passed_over = 0
                       AND kind = 'described')
                   AS "described!: bool""#,
            run,
        )
        .fetch_one(self.readers())
        .await?)
    }

    /// [`StoreError::NotFound`] unless the answer is one of the run and of the teacher.
    pub async fn answer_in(&self, run: &RunId, answer: AnswerId, teacher: TeacherId) -> Result<()> {
        query_scalar!(
            r#"SELECT 1 AS "found!: i64" FROM answers WHERE id = ? AND run = ? AND teacher = ?"#,
            answer,
            run,
            teacher,
        )
        .fetch_optional(self.readers())
        .await?
        .map(|_| ())
        .ok_or(StoreError::NotFound("the answer"))
    }

    /// Stores a corrected version of an answer of the same teacher; the old row stays and points to the new one.
    /// The correction of an answer that an update has used is a new answer, not used yet.
    ///
    /// # Errors
    /// [`StoreError::Superseded`] when the answer was corrected elsewhere in the meantime (nothing is written: the
    /// page keeps what was typed and shows the newer answer); [`StoreError::NotFound`] when it is not this teacher's;
    /// [`StoreError::KeyReused`] as for [`Store::answer`].
    pub async fn correct(&self, answer: AnswerId, corrected: &NewAnswer) -> Result<Stored> {
        check_key(&corrected.client_key)?;
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        if let Some(stored) = stored_before(&mut tx, corrected).await? {
            return Ok(stored);
        }
        let old = select_answers!("WHERE id = ? AND teacher = ?", answer, corrected.teacher)
            .fetch_optional(&mut tx)
            .await?
            .ok_or(StoreError::NotFound("the answer"))?;
        if old.superseded_by.is_some() {
            return Err(StoreError::Superseded);
        }
        if old.execution != corrected.execution {
            return Err(StoreError::Invalid("a correction must be about the same execution as the answer".into()));
        }
        if old.is_repeated_by(corrected) {
            return Ok(old.again());
        }
        let target = target(&mut tx, corrected.execution, corrected.teacher).await?;
        target.check_medium(corrected)?;
        self.visitors().note(&target.run, corrected.teacher, self.monotonic_now());
        let late = self.lateness(&mut tx, corrected, Some(&old)).await?;
        let id = supersede(&mut tx, old.id, corrected, &target, late, self.now()).await?;
        update_execution(&mut tx, corrected).await?;
        tx.commit().await?;
        Ok(Stored { answer: id, again: false })
    }
}

fn check_key(key: &str) -> Result<()> {
    match key.chars().count() {
        1..=64 => Ok(()),
        n => Err(StoreError::Invalid(format!("the key of an answer must have 1 to 64 characters, not {n}"))),
    }
}

/// The answer stored under the same key, if any.
async fn stored_before(tx: &mut Transaction<'_>, new: &NewAnswer) -> Result<Option<Stored>> {
    let earlier = select_answers!("WHERE teacher = ? AND client_key = ?", new.teacher, new.client_key)
        .fetch_optional(&mut *tx)
        .await?;
    match earlier {
        None => Ok(None),
        Some(earlier) if earlier.is_repeated_by(new) => Ok(Some(earlier.again())),
        Some(earlier) => Err(StoreError::KeyReused { answer: earlier.id }),
    }
}

async fn target(tx: &mut Transaction<'_>, execution: ExecutionId, teacher: TeacherId) -> Result<Target> {
    query_as!(
        Target,
        r#"SELECT executions.run AS "run!: RunId", executions.episode AS "episode!",
               executions.policy_update AS "policy_update!",
               (runs.request_shown = 1 OR EXISTS (SELECT 1 FROM leases
                   WHERE leases.execution = executions.id AND leases.teacher = ?2 AND leases.revealed = 1))
                   AS "request_shown!: bool", runs.medium AS "medium!"
           FROM executions CROSS JOIN runs ON runs.id = executions.run WHERE executions.id = ?1"#,
        execution,
        teacher,
    )
    .fetch_optional(&mut *tx)
    .await?
    .ok_or(StoreError::NotFound("the execution"))
}

/// Refuses an answer of a teacher who has never had the execution.
async fn has_held(tx: &mut Transaction<'_>, new: &NewAnswer) -> Result<()> {
    let held = query_scalar!(
        r#"SELECT EXISTS (SELECT 1 FROM leases WHERE leases.execution = ? AND leases.teacher = teachers.id)
               AS "held!: bool"
           FROM teachers WHERE id = ?"#,
        new.execution,
        new.teacher,
    )
    .fetch_optional(&mut *tx)
    .await?;
    match held {
        Some(true) => Ok(()),
        Some(false) => Err(StoreError::NeverYours),
        None => Err(StoreError::NotFound("the teacher")),
    }
}

async fn insert(
    tx: &mut Transaction<'_>,
    new: &NewAnswer,
    target: &Target,
    late: i64,
    supersedes: Option<AnswerId>,
    superseded_by: Option<AnswerId>,
    now: i64,
) -> Result<AnswerId> {
    let active_ms = new.active_ms.map(|ms| to_int("the time of activity", ms)).transpose()?;
    let idle_ms = new.idle_ms.map(|ms| to_int("the time without activity", ms)).transpose()?;
    let (kind, shown_at) = (new.kind.as_str(), new.shown_at.map(to_nanos));
    let (demonstration, rating) = (new.response.demonstration().map(to_json).transpose()?, new.response.rating());
    if rating.is_some_and(|rating| !(0.0..=1.0).contains(&rating)) {
        return Err(StoreError::Invalid("a rating lies between 0 and 1".into()));
    }
    let id = query_scalar!(
        r#"INSERT INTO answers (run, episode, source, execution, teacher, client_key, kind, text, request_shown,
               policy_update, shown_at, active_ms, idle_ms, fulfilled, preview_arm, first_text, created_at, supersedes,
               superseded_by, late, medium, demonstration, rating)
           VALUES (?, ?, 'human', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id AS "id!: AnswerId""#,
        target.run,
        target.episode,
        new.execution,
        new.teacher,
        new.client_key,
        kind,
        new.text,
        target.request_shown,
        target.policy_update,
        shown_at,
        active_ms,
        idle_ms,
        new.fulfilled,
        new.preview_arm,
        new.first_text,
        now,
        supersedes,
        superseded_by,
        late,
        target.medium,
        demonstration,
        rating,
    );
    id.fetch_one(&mut *tx).await.or_missing("the teacher")
}

/// Stores `new` in the place of `old`.
async fn supersede(
    tx: &mut Transaction<'_>,
    old: AnswerId,
    new: &NewAnswer,
    target: &Target,
    late: i64,
    now: i64,
) -> Result<AnswerId> {
    // Two standing answers cannot be, not even for a moment: until the new key is known, the old row points to itself.
    query!("UPDATE answers SET superseded_by = id WHERE id = ?", old).execute(&mut *tx).await?;
    let id = insert(tx, new, target, late, Some(old), None, now).await?;
    query!("UPDATE answers SET superseded_by = ? WHERE id = ?", id, old).execute(&mut *tx).await?;
    Ok(id)
}

/// Brings the execution up to date after an answer: how many answers it has, whether it wants more, who is still at it.
async fn update_execution(tx: &mut Transaction<'_>, new: &NewAnswer) -> Result<()> {
    let NewAnswer { execution, teacher, kind, .. } = *new;
    query!("UPDATE executions SET shown = 1, touched = 1 WHERE id = ?", execution).execute(&mut *tx).await?;
    count_given(tx, execution).await?;
    query!(
        "UPDATE leases SET expires_at = 0 WHERE execution = ?1
             AND (teacher = ?2 OR (SELECT state FROM executions WHERE id = ?1) = 'done')",
        execution,
        teacher,
    )
    .execute(&mut *tx)
    .await?;
    // A skip sends nothing that was typed, so the draft stays.
    if kind == AnswerKind::Described {
        query!("DELETE FROM drafts WHERE teacher = ? AND execution = ?", teacher, execution).execute(&mut *tx).await?;
    }
    if kind != AnswerKind::Skipped {
        query!("UPDATE teachers SET answered = 1 WHERE id = ? AND answered = 0", teacher).execute(&mut *tx).await?;
    }
    Ok(())
}

/// Counts the answers that take the places of the execution, and sets its state accordingly.
pub(super) async fn count_given(tx: &mut Transaction<'_>, execution: ExecutionId) -> Result<()> {
    query!(
        "UPDATE executions SET given = (SELECT count(*) FROM answers INDEXED BY answers_standing
             WHERE execution = ?1 AND superseded_by IS NULL AND execution IS NOT NULL
                 AND kind <> 'skipped' AND late = 0 AND passed_over = 0)
         WHERE id = ?1",
        execution,
    )
    .execute(&mut *tx)
    .await?;
    query!(
        "UPDATE executions SET state = iif(given >= wanted, 'done', 'open')
         WHERE id = ?1 AND state IN ('open', 'done')",
        execution,
    )
    .execute(&mut *tx)
    .await?;
    Ok(())
}
