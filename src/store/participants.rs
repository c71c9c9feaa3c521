//! Teachers in studies: who joined, where they are, what they gave. A participant is known to exports by a number alone; what
//! a platform or an invitation says of the person stands in columns that can be erased.

use super::connection::Durability;
use super::convert::{from_int, from_nanos, to_int, token_hash};
use super::error::{Result, StoreError, unreadable};
use super::sql::{On, Transaction, query, query_as, query_scalar, row};
use super::{Store, audit, webhooks};
use crate::config::run::Preview;
use crate::ids::{ParticipantId, RunId, StudyId, TeacherId};
use crate::study::{Approval, Assignment, Entry, ParticipantState, StudySettings, StudyState, draw};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use time::OffsetDateTime;

/// A teacher in a study.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Participant {
    /// Key.
    pub id: ParticipantId,
    /// The study.
    pub study: StudyId,
    /// The teacher, whom answers and exports name.
    pub teacher: TeacherId,
    /// Number in the study, from 1: the pseudonym.
    pub number: u64,
    /// The arm of a teacher who keeps one.
    pub arm: Option<u64>,
    /// Where they are.
    pub state: ParticipantState,
    /// Whether they see previews.
    pub preview: bool,
    /// Attention checks they answered rightly.
    pub attention_passed: u64,
    /// Attention checks they answered wrongly.
    pub attention_missed: u64,
    /// The code they were shown at the end.
    pub completion_code: Option<String>,
    /// The researcher's decision.
    pub approval: Approval,
    /// When they joined.
    #[serde(with = "time::serde::rfc3339")]
    pub joined_at: OffsetDateTime,
    /// When they ended.
    #[serde(with = "time::serde::rfc3339::option")]
    pub finished_at: Option<OffsetDateTime>,
    /// The known facts about the person.
    #[serde(skip)]
    pub person: Person,
    /// When that was erased.
    #[serde(with = "time::serde::rfc3339::option")]
    pub erased_at: Option<OffsetDateTime>,
}

impl Participant {
    /// The name under which pages and exports show the participant.
    pub fn pseudonym(&self) -> String {
        format!("P{:03}", self.number)
    }
}

/// The facts that a platform or an invitation tells about a person. It never leaves the study's own pages and its list for the platform.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Person {
    /// The platform's name of the person: Prolific's `PROLIFIC_PID`, MTurk's `workerId`.
    pub platform_person: Option<String>,
    /// The platform's name of the study: `STUDY_ID`, `hitId`.
    pub platform_study: Option<String>,
    /// The platform's name of this participation: `SESSION_ID`, `assignmentId`.
    pub platform_session: Option<String>,
    /// The researcher's label of the invitation.
    pub invitation: Option<String>,
}

/// Figures about the answers of a participant; superseded and withdrawn answers are not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct ParticipantFigures {
    /// Answers; skips are none.
    pub answers: u64,
    /// Of these, descriptions.
    pub described: u64,
    /// Executions skipped.
    pub skipped: u64,
    /// Answers and skips whose time was measured.
    pub timed: u64,
    /// Milliseconds of activity in these.
    pub active_ms: u64,
    /// Descriptions that the agent carried out before it learned from them.
    pub read: u64,
    /// Of these, those that it carried out rightly.
    pub understood: u64,
    /// When the last one was stored.
    #[serde(with = "time::serde::rfc3339")]
    pub last: OffsetDateTime,
}

/// The credentials with which somebody joins.
#[derive(Clone, Debug, Default)]
pub struct Joining {
    /// The facts that the platform tells.
    pub person: Person,
    /// The token of an invitation.
    pub invitation: Option<String>,
    /// Whether they agreed to the consent text.
    pub agreed: bool,
}

row! {
    struct Row {
        id: ParticipantId,
        study: StudyId,
        teacher: TeacherId,
        number: i64,
        arm: Option<i64>,
        state: String,
        preview: bool,
        attention_passed: i64,
        attention_missed: i64,
        completion_code: Option<String>,
        approval: String,
        joined_at: i64,
        finished_at: Option<i64>,
        platform_person: Option<String>,
        platform_study: Option<String>,
        platform_session: Option<String>,
        invitation_label: Option<String>,
        erased_at: Option<i64>,
    }
}

impl Row {
    fn read(self) -> Result<Participant> {
        Ok(Participant {
            id: self.id,
            study: self.study,
            teacher: self.teacher,
            number: from_int(self.number),
            arm: self.arm.map(from_int),
            state: ParticipantState::parse(&self.state)
                .ok_or_else(|| unreadable("a participant's state", &self.state))?,
            preview: self.preview,
            attention_passed: from_int(self.attention_passed),
            attention_missed: from_int(self.attention_missed),
            completion_code: self.completion_code,
            approval: Approval::parse(&self.approval)
                .ok_or_else(|| unreadable("a participant's approval", &self.approval))?,
            joined_at: from_nanos(self.joined_at),
            finished_at: self.finished_at.map(from_nanos),
            person: Person {
                platform_person: self.platform_person,
                platform_study: self.platform_study,
                platform_session: self.platform_session,
                invitation: self.invitation_label,
            },
            erased_at: self.erased_at.map(from_nanos),
        })
    }
}

/// Selects [`Row`]s. The arguments are the condition and the statement's parameters.
macro_rules! select_participants {
    ($rest:literal, $($parameter:expr),+) => {
        query_as!(
            Row,
            r#"SELECT id AS "id!: ParticipantId", study AS "study!: StudyId", teacher AS "teacher!: TeacherId", number, arm,
                   state, preview AS "preview!: bool", attention_passed, attention_missed, completion_code, approval,
                   joined_at, finished_at, platform_person, platform_study, platform_session, invitation_label, erased_at
               FROM participants WHERE "# + $rest,
            $($parameter),+
        )
    };
}

async fn by_teacher(executor: impl Into<On<'_>>, study: &StudyId, teacher: TeacherId) -> Result<Option<Participant>> {
    let row = select_participants!("study = ? AND teacher = ?", study, teacher);
    row.fetch_optional(executor).await?.map(Row::read).transpose()
}

async fn by_id(executor: impl Into<On<'_>>, id: ParticipantId) -> Result<Participant> {
    let row = select_participants!("id = ?", id);
    row.fetch_optional(executor).await?.ok_or(StoreError::NotFound("the participant"))?.read()
}

/// An invitation that can be used, or a sentence that says why it cannot.
async fn usable_invitation(
    tx: &mut Transaction<'_>,
    study: &StudyId,
    token: Option<&str>,
    now: i64,
) -> Result<(Vec<u8>, String)> {
    let token = token.ok_or_else(|| StoreError::Conflict("this study can be joined by invitation only".to_owned()))?;
    let hash = token_hash(token);
    row! {
        struct Row {
            label: String,
            expires_at: i64,
            revoked_at: Option<i64>,
            participant: Option<ParticipantId>,
        }
    }
    let row = query_as!(
        Row,
        r#"SELECT label, expires_at, revoked_at, participant AS "participant?: ParticipantId"
           FROM study_invitations WHERE token_hash = ? AND study = ?"#,
        hash,
        study,
    );
    let row = row.fetch_optional(&mut *tx).await?.ok_or(StoreError::NotFound("the invitation"))?;
    let refuse = |why: &str| Err(StoreError::Conflict(why.to_owned()));
    if row.revoked_at.is_some() {
        return refuse("this invitation was withdrawn; ask the people who sent it for another");
    }
    if row.participant.is_some() {
        return refuse("this invitation was used already, perhaps by you in another browser");
    }
    if row.expires_at <= now {
        return refuse("this invitation has expired; ask the people who sent it for another");
    }
    Ok((hash, row.label))
}

/// Refuses when all places of a study are taken. Who left or was screened out takes none; `places` is 0 where there is no limit.
async fn place_left(tx: &mut Transaction<'_>, study: &StudyId, places: u32) -> Result<()> {
    let taken = query_scalar!(
        r#"SELECT count(*) FILTER (WHERE state NOT IN ('screened_out', 'left')) AS "taken!: i64"
           FROM participants WHERE study = ?"#,
        study
    );
    if places > 0 && taken.fetch_one(&mut *tx).await? >= i64::from(places) {
        return Err(StoreError::Conflict("all places in this study are taken".to_owned()));
    }
    Ok(())
}

impl Store {
    /// Has a teacher join an open study. Joining twice changes nothing.
    ///
    /// # Errors
    /// [`StoreError::Conflict`], with a sentence for the person, when the study takes nobody now, has no place left, asks for
    /// consent that was not given, for an invitation that is missing or used, or when the platform's person takes part already.
    pub async fn join_study(&self, study: &StudyId, teacher: TeacherId, joining: &Joining) -> Result<Participant> {
        let read = self.study(study).await?;
        let StudySettings { entry, consent, places, assignment, preview, .. } = &read.settings;
        let now = self.now();
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        if let Some(known) = by_teacher(&mut tx, study, teacher).await? {
            return Ok(known);
        }
        let refuse = |why: &str| Err(StoreError::Conflict(why.to_owned()));
        match read.state {
            StudyState::Open => {}
            StudyState::Paused => return refuse("this study takes a break; try again later"),
            StudyState::Draft => return refuse("this study has not begun yet"),
            StudyState::Closed => return refuse("this study has ended"),
        }
        if !consent.trim().is_empty() && !joining.agreed {
            return refuse("to take part, you have to agree first");
        }
        place_left(&mut tx, study, *places).await?;
        let (invitation, label) = match entry {
            Entry::Invitation => {
                let (hash, label) = usable_invitation(&mut tx, study, joining.invitation.as_deref(), now).await?;
                (Some(hash), Some(label))
            }
            _ => (None, None),
        };
        let platform = matches!(entry, Entry::Prolific | Entry::Mturk);
        let person = if platform { joining.person.clone() } else { Person::default() };
        if platform && person.platform_person.is_none() {
            return refuse(
                "this study is open to people who come from its platform; use the link that the platform shows you",
            );
        }
        if let Some(name) = &person.platform_person {
            let there = select_participants!("study = ? AND platform_person = ?", study, name);
            if there.fetch_optional(&mut tx).await?.is_some() {
                return refuse("you take part in this study already, in another browser; go on there");
            }
        }
        let number = query_scalar!(
            r#"SELECT coalesce(max(number), 0) + 1 AS "number!: i64" FROM participants WHERE study = ?"#,
            study
        )
        .fetch_one(&mut tx)
        .await?;
        // Numbers follow each other, so arms are taken in turn: of any number of teachers each arm has as many as the others.
        let arm = match assignment {
            Assignment::Teacher if !read.arms.is_empty() => Some((number - 1) % read.arms.len() as i64),
            _ => None,
        };
        let sees = match preview {
            Preview::Off => false,
            Preview::On => true,
            Preview::Random => draw(&[study, "preview", &number.to_string()], 2) == 1,
        };
        let agreed = (!consent.trim().is_empty()).then(|| hex::encode(Sha256::digest(consent.as_bytes())));
        let state = ParticipantState::Guidelines.as_str();
        let id = query_scalar!(
            r#"INSERT INTO participants (study, teacher, number, arm, state, consent, platform_person, platform_study,
                   platform_session, invitation_label, preview, joined_at)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id AS "id!: ParticipantId""#,
            study,
            teacher,
            number,
            arm,
            state,
            agreed,
            person.platform_person,
            person.platform_study,
            person.platform_session,
            label,
            sees,
            now,
        )
        .fetch_one(&mut tx)
        .await?;
        if let Some(hash) = invitation {
            query!("UPDATE study_invitations SET participant = ? WHERE token_hash = ?", id, hash)
                .execute(&mut tx)
                .await?;
        }
        webhooks::queue(&mut tx, now, study, "participant.joined", &json!({ "participant": number })).await?;
        let joined = by_id(&mut tx, id).await?;
        tx.commit().await?;
        Ok(joined)
    }

    /// A teacher's part in a study.
    pub async fn participant(&self, study: &StudyId, teacher: TeacherId) -> Result<Option<Participant>> {
        by_teacher(self.readers(), study, teacher).await
    }

    /// The participant of this number.
    pub async fn participant_numbered(&self, study: &StudyId, number: u64) -> Result<Participant> {
        let number = to_int("the participant", number)?;
        let row = select_participants!("study = ? AND number = ?", study, number);
        row.fetch_optional(self.readers()).await?.ok_or(StoreError::NotFound("the participant"))?.read()
    }

    /// Everybody in a study, in the order in which they joined.
    pub async fn participants(&self, study: &StudyId) -> Result<Vec<Participant>> {
        let rows = select_participants!("study = ? ORDER BY number", study);
        rows.fetch_all(self.readers()).await?.into_iter().map(Row::read).collect()
    }

    /// How many standing answers a teacher has given in a study; skips are none.
    pub async fn answers_in_study(&self, study: &StudyId, teacher: TeacherId) -> Result<u64> {
        let given = query_scalar!(
            r#"SELECT count(*) AS "given!: i64" FROM study_arms CROSS JOIN answers
               ON answers.run = study_arms.run AND answers.teacher = ?2 AND answers.superseded_by IS NULL
                   AND answers.teacher IS NOT NULL AND answers.kind <> 'skipped' AND answers.retracted_at IS NULL
               WHERE study_arms.study = ?1 AND answers.created_at >= (SELECT joined_at FROM participants
                   WHERE participants.study = ?1 AND participants.teacher = ?2)"#,
            study,
            teacher,
        )
        .fetch_one(self.readers())
        .await?;
        Ok(from_int(given))
    }

    /// Brings a participant from the state in which the caller knows them into another. It changes nothing when they are in another
    /// one meanwhile, as after the same form in two tabs.
    ///
    /// Whoever ends (finished, screened out, left) gets the time of it and, where the study gives one, `code`.
    pub async fn set_participant_state(
        &self,
        who: &Participant,
        state: ParticipantState,
        code: Option<&str>,
        actor: &str,
    ) -> Result<Participant> {
        let now = self.now();
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let id = who.id;
        let old = by_id(&mut tx, id).await?;
        if old.state != who.state || old.state == state {
            return Ok(old);
        }
        let word = state.as_str();
        query!(
            "UPDATE participants SET state = ?1, completion_code = coalesce(?2, completion_code),
                 qualified_at = CASE WHEN ?1 = 'teaching' THEN coalesce(qualified_at, ?3) ELSE qualified_at END,
                 finished_at = CASE WHEN ?1 IN ('finished', 'screened_out', 'left') THEN ?3 ELSE NULL END
             WHERE id = ?4",
            word,
            code,
            now,
            id,
        )
        .execute(&mut tx)
        .await?;
        let detail = json!({ "participant": old.number, "from": old.state, "to": word });
        if actor != SELF {
            audit::note(&mut tx, now, actor, &old.study, "participant_moved", &detail).await?;
        }
        let event = format!("participant.{word}");
        webhooks::queue(&mut tx, now, &old.study, &event, &detail).await?;
        let new = by_id(&mut tx, id).await?;
        tx.commit().await?;
        Ok(new)
    }

    /// Has a participant who left take part again, in `state`. It changes nothing for who has not left.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when all of the study's `places` are taken meanwhile.
    pub async fn rejoin_study(&self, id: ParticipantId, state: ParticipantState, places: u32) -> Result<()> {
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let who = by_id(&mut tx, id).await?;
        place_left(&mut tx, &who.study, places).await?;
        let word = state.as_str();
        query!("UPDATE participants SET state = ?, finished_at = NULL WHERE id = ? AND state = 'left'", word, id,)
            .execute(&mut tx)
            .await?;
        Ok(tx.commit().await?)
    }

    /// Counts an attention check, once for each place in the participant's answers: `at` checks were answered before this one.
    /// Says how the participant then stands.
    pub async fn answer_attention_check(&self, id: ParticipantId, at: u64, right: bool) -> Result<Participant> {
        let at = to_int("the check", at)?;
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        query!(
            "UPDATE participants SET attention_passed = attention_passed + ?2, attention_missed = attention_missed + 1 - ?2
             WHERE id = ?1 AND attention_passed + attention_missed = ?3 AND state = 'teaching'",
            id,
            right,
            at,
        )
        .execute(&mut tx)
        .await?;
        let participant = by_id(&mut tx, id).await?;
        tx.commit().await?;
        Ok(participant)
    }

    /// Remembers the researcher's decision about a participant's work.
    pub async fn set_approval(&self, id: ParticipantId, approval: Approval, actor: &str) -> Result<()> {
        let word = approval.as_str();
        let now = self.now();
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let old = by_id(&mut tx, id).await?;
        query!("UPDATE participants SET approval = ? WHERE id = ?", word, id).execute(&mut tx).await?;
        let detail = json!({ "participant": old.number, "from": old.approval, "to": word });
        audit::note(&mut tx, now, actor, &old.study, "approval_changed", &detail).await?;
        Ok(tx.commit().await?)
    }

    /// Erases what is known of a person, in every study in which they take part: the platform's names, the invitations' labels, and
    /// the browsers by which they were recognised. Where they had not ended they have left. Their answers stay, under their
    /// numbers, and nothing leads from these to the person any more.
    pub async fn erase_person(&self, id: ParticipantId, actor: &str) -> Result<()> {
        let now = self.now();
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        let teacher = by_id(&mut tx, id).await?.teacher;
        let parts = select_participants!("teacher = ?", teacher).fetch_all(&mut tx).await?;
        for part in parts {
            query!(
                "UPDATE participants SET platform_person = NULL, platform_study = NULL, platform_session = NULL,
                     invitation_label = NULL, erased_at = coalesce(erased_at, ?2),
                     finished_at = coalesce(finished_at, ?2),
                     state = CASE WHEN state IN ('finished', 'screened_out') THEN state ELSE 'left' END
                 WHERE id = ?1",
                part.id,
                now,
            )
            .execute(&mut tx)
            .await?;
            query!("UPDATE study_invitations SET label = '' WHERE participant = ?", part.id).execute(&mut tx).await?;
            audit::note(&mut tx, now, actor, &part.study, "person_erased", &json!({ "participant": part.number }))
                .await?;
        }
        query!("DELETE FROM teacher_browsers WHERE teacher = ?", teacher).execute(&mut tx).await?;
        // No token has this hash: the row stays for the answers, and no cookie finds it.
        query!("UPDATE teachers SET token_hash = randomblob(32) WHERE id = ?", teacher).execute(&mut tx).await?;
        Ok(tx.commit().await?)
    }

    /// Figures about the answers of each participant of a study. Who has given nothing is left out.
    pub async fn participant_figures(&self, study: &StudyId) -> Result<BTreeMap<TeacherId, ParticipantFigures>> {
        row! {
            struct Row {
                teacher: TeacherId,
                answers: i64,
                described: i64,
                skipped: i64,
                timed: i64,
                active_ms: i64,
                read: i64,
                understood: i64,
                last: i64,
            }
        }
        let rows = query_as!(
            Row,
            r#"SELECT answers.teacher AS "teacher!: TeacherId",
                   count(*) FILTER (WHERE answers.kind <> 'skipped') AS "answers!: i64",
                   count(*) FILTER (WHERE answers.kind = 'described') AS "described!: i64",
                   count(*) FILTER (WHERE answers.kind = 'skipped') AS "skipped!: i64",
                   count(answers.active_ms) AS "timed!: i64", coalesce(sum(answers.active_ms), 0) AS "active_ms!: i64",
                   count(comprehension.answer) AS "read!: i64",
                   coalesce(sum(comprehension.before_understood), 0) AS "understood!: i64",
                   max(answers.created_at) AS "last!: i64"
               FROM study_arms
               JOIN participants ON participants.study = study_arms.study
               CROSS JOIN answers ON answers.run = study_arms.run AND answers.teacher = participants.teacher
                   AND answers.superseded_by IS NULL AND answers.teacher IS NOT NULL AND answers.retracted_at IS NULL
                   AND answers.created_at >= participants.joined_at
               LEFT JOIN comprehension ON comprehension.answer = answers.id AND comprehension.told_before = 0
               WHERE study_arms.study = ? GROUP BY answers.teacher"#,
            study,
        )
        .fetch_all(self.readers())
        .await?;
        let figures = rows.into_iter().map(|row| {
            let figures = ParticipantFigures {
                answers: from_int(row.answers),
                described: from_int(row.described),
                skipped: from_int(row.skipped),
                timed: from_int(row.timed),
                active_ms: from_int(row.active_ms),
                read: from_int(row.read),
                understood: from_int(row.understood),
                last: from_nanos(row.last),
            };
            (row.teacher, figures)
        });
        Ok(figures.collect())
    }

    /// The arm that a participant's next answer goes to.
    pub fn arm_of_next(participant: &Participant, runs: &[RunId], given: u64) -> Option<RunId> {
        if runs.is_empty() {
            return None;
        }
        let drawn = || draw(&[&participant.study, &participant.number.to_string(), &given.to_string()], runs.len());
        let arm = participant.arm.map_or_else(drawn, |arm| arm as usize);
        runs.get(arm).or(runs.first()).cloned()
    }
}

/// The actor of what a participant did themselves; the audit trail is about what others did.
pub const SELF: &str = "the participant";
