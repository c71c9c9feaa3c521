//! Reviewing what the teachers of a study said: answers with flags and with what others said of the same execution, to be accepted,
//! rejected, or decided between. Reviewers see pseudonyms only.

use crate::family::Audience;
use crate::ids::{AnswerId, ExecutionId, RunId, StudyId, TeacherId};
use crate::store::{Adjudication, AnswerKind, Chosen, Study, StudyAnswer, StudyArm};
use crate::study::ReviewState;
use crate::study::agreement::{self, Agreement, Mean};
use crate::study::quality::{Flag, Flagged};
use crate::web::error::{Error, Result};
use crate::web::extractors::account::Reviewer;
use crate::web::extractors::input::{Form, Path, Query};
use crate::web::format;
use crate::web::handlers::studies;
use crate::web::page::run_view::RunView;
use crate::web::page::{self, Page};
use crate::web::services::review::{self, Known};
use crate::web::settings::TEXT_LIMIT;
use crate::web::state::AppState;
use askama::Template;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Redirect, Response};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use time::OffsetDateTime;

/// Answers on a page of the list.
const LENGTH: usize = 20;

/// Which answers are shown. All fields are texts: a form sends empty ones.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Filter {
    /// `unreviewed` (also when empty), `disagreeing`, `flagged`, `accepted`, `rejected` or `all`.
    show: String,
    /// Number of a participant.
    teacher: String,
    /// Name of a flag.
    flag: String,
    /// Id of a run of the study.
    arm: String,
    /// `yes`: one answer at a time.
    one: String,
    /// Number of the page, from 0.
    page: String,
}

impl Filter {
    fn at(&self) -> usize {
        self.page.parse().unwrap_or(0)
    }

    fn length(&self) -> usize {
        if self.one == "yes" { 1 } else { LENGTH }
    }

    /// The query of another page of the same list.
    fn query(&self, page: usize) -> String {
        let Filter { show, teacher, flag, arm, one, .. } = self;
        let [show, teacher, flag, arm, one] = [show, teacher, flag, arm, one].map(|text| format::encode(text));
        format!("show={show}&teacher={teacher}&flag={flag}&arm={arm}&one={one}&page={page}")
    }

    fn admits(&self, known: &Known, answer: &StudyAnswer) -> bool {
        let flags = known.flags.get(&answer.answer);
        let state = answer.review.as_ref().map(|review| review.state);
        let shown = match self.show.as_str() {
            "all" => true,
            "accepted" => state == Some(ReviewState::Accepted),
            "rejected" => state == Some(ReviewState::Rejected),
            "flagged" => flags.is_some(),
            "disagreeing" => {
                answer.is_description()
                    && !known.adjudications.contains_key(&answer.execution)
                    && known.described.get(&answer.execution).is_some_and(|all| agreement::disagree(all))
            }
            _ => state.is_none() && !answer.retracted && answer.kind != AnswerKind::Skipped,
        };
        let flagged = |flag: Flag| {
            let has = |all: &Vec<Flagged>| all.iter().any(|one| one.flag == flag);
            flags.is_some_and(has) || known.teacher_flags.get(&answer.teacher).is_some_and(has)
        };
        shown
            && self.teacher.parse().map_or(true, |number: u64| answer.number == number)
            && (self.arm.is_empty() || answer.run.to_string() == self.arm)
            && Flag::parse(&self.flag).is_none_or(flagged)
    }
}

/// An answer of somebody else about the same execution.
struct Other {
    answer: AnswerId,
    name: String,
    text: String,
    /// How it stands to the answer that is reviewed.
    comparison: String,
    state: Option<ReviewState>,
    chosen: bool,
}

/// An answer on the page.
struct Card {
    answer: StudyAnswer,
    name: String,
    /// The arm, in a study that has several.
    arm: Option<String>,
    html: String,
    /// Who said what, in words.
    said: String,
    flags: Vec<Flagged>,
    others: Vec<Other>,
    adjudication: Option<Adjudication>,
    /// Whether the agent that was asked did what had been shown; `None` where none was.
    understood: Option<bool>,
}

impl Card {
    fn state(&self) -> &'static str {
        self.answer.review.as_ref().map_or("", |review| review.state.as_str())
    }

    fn chosen(&self) -> bool {
        self.adjudication.as_ref().is_some_and(|decided| decided.answer == Some(self.answer.answer))
    }

    fn seconds(&self) -> Option<String> {
        self.answer.active_ms.map(|ms| format!("{:.0} s of activity", ms as f64 / 1000.0))
    }
}

/// A run whose agent can be asked.
struct Agent {
    run: RunId,
    name: String,
}

#[derive(Template)]
#[template(path = "study/review.html")]
struct ReviewPage {
    page: Page,
    study: Study,
    filter: Filter,
    cards: Vec<Card>,
    /// Answers that the filter admits.
    found: usize,
    unreviewed: usize,
    accepted: usize,
    rejected: usize,
    teachers: Vec<(u64, String)>,
    agreement: Agreement,
    /// Executions that several teachers have described.
    overlapping: usize,
    worked_out: Option<(RunId, OffsetDateTime)>,
    agents: Vec<Agent>,
    scripts: Vec<&'static str>,
}

impl ReviewPage {
    fn last(&self) -> usize {
        self.found.div_ceil(self.filter.length()).saturating_sub(1)
    }

    /// How many executions several teachers have described.
    fn several(&self) -> String {
        format!("{} described by several", format::counted(&(self.overlapping as u64), "execution"))
    }

    /// A mean in percent.
    fn percent(&self, mean: &Option<Mean>) -> String {
        match mean {
            Some(mean) => format!("{:.0}%", mean.value * 100.0),
            None => "–".to_owned(),
        }
    }

    /// The sample that a mean rests on.
    fn rests_on(&self, mean: &Option<Mean>, what: &str) -> String {
        let Some(mean) = mean else { return "not worked out yet".to_owned() };
        let (low, high) = (mean.low * 100.0, mean.high * 100.0);
        format!(
            "{low:.0} to {high:.0}% (95%), {} of {}",
            format::counted(&mean.n, what),
            format::counted(&mean.executions, "execution")
        )
    }
}

fn pseudonym(number: u64) -> String {
    format!("P{number:03}")
}

/// How two descriptions of an execution stand to each other.
fn comparison(one: &agreement::Described, other: &agreement::Described) -> String {
    let likeness = agreement::chrf(&one.text, &other.text) * 100.0;
    let executed = match agreement::alike(one, other) {
        Some(true) => "executed alike, ",
        Some(false) => "executed differently, ",
        None => "",
    };
    format!("{executed}texts {likeness:.0}% alike")
}

fn card(
    state: &AppState,
    known: &Known,
    (families, arms): (&HashMap<RunId, String>, &[StudyArm]),
    view: Option<&serde_json::Value>,
    answer: &StudyAnswer,
) -> Card {
    let family = families.get(&answer.run).and_then(|name| state.family(name));
    let html = family.zip(view).and_then(|(family, view)| family.render(view, Audience::Beside).ok());
    let nothing = family.map_or("nothing changed", |family| family.nothing_changed());
    let said = match answer.kind {
        AnswerKind::Described if answer.fulfilled => "says that it did what was asked".to_owned(),
        AnswerKind::Described if answer.demonstrated => "showed how it is done".to_owned(),
        AnswerKind::Described => match answer.rating {
            Some(rating) => format!("rated it {:.0}%", rating * 100.0),
            None => "wrote".to_owned(),
        },
        AnswerKind::NothingChanged => format!("says that {}", format::lower(nothing)),
        AnswerKind::CannotDescribe => "cannot describe this".to_owned(),
        AnswerKind::Skipped => "skipped this".to_owned(),
    };
    let described = known.described.get(&answer.execution).map_or(&[][..], Vec::as_slice);
    let own = described.iter().find(|one| one.answer == answer.answer);
    let adjudication = known.adjudications.get(&answer.execution).cloned();
    let chosen = adjudication.as_ref().and_then(|decided| decided.answer);
    let others = described.iter().filter(|one| one.answer != answer.answer).map(|one| {
        let theirs = known.answers.binary_search_by_key(&one.answer, |answer| answer.answer).ok();
        let theirs = theirs.map(|at| &known.answers[at]);
        Other {
            answer: one.answer,
            name: pseudonym(theirs.map_or(0, |theirs| theirs.number)),
            text: one.text.clone(),
            comparison: own.map(|own| comparison(own, one)).unwrap_or_default(),
            state: theirs.and_then(|theirs| theirs.review.as_ref()).map(|review| review.state),
            chosen: chosen == Some(one.answer),
        }
    });
    let mut flags = known.flags.get(&answer.answer).cloned().unwrap_or_default();
    flags.extend(known.teacher_flags.get(&answer.teacher).cloned().unwrap_or_default());
    let arm = arms.iter().find(|arm| arm.run == answer.run).filter(|_| arms.len() > 1);
    Card {
        name: pseudonym(answer.number),
        arm: arm.map(|arm| arm.name.clone()),
        html: html.unwrap_or_default(),
        said,
        flags,
        others: others.collect(),
        adjudication,
        understood: own.and_then(|own| own.attempt.as_ref()).map(|outcome| outcome.understood),
        answer: answer.clone(),
    }
}

/// `GET /studies/{study}/review`.
pub(crate) async fn page(
    Reviewer(_): Reviewer,
    State(state): State<AppState>,
    Path(id): Path<StudyId>,
    Query(filter): Query<Filter>,
    page: Page,
) -> Result<Response> {
    let study = state.store.study(&id).await?;
    let known = Known::load(&state, &id).await?;
    let (mut families, mut scripts, mut agents) = (HashMap::new(), Vec::new(), Vec::new());
    for arm in &study.arms {
        let family = state.store.run(&arm.run).await?.family;
        if let Some(script) = state.family(&family).and_then(|family| family.script()).filter(|s| !scripts.contains(s))
        {
            scripts.push(script);
        }
        families.insert(arm.run.clone(), family);
    }
    for view in RunView::all(&state).await? {
        if !view.ended() && families.values().any(|family| *family == view.run.family) {
            let arm = study.arms.iter().find(|arm| arm.run == view.run.id);
            let name = arm.map_or_else(|| view.run.id.to_string(), |arm| format!("{} ({})", arm.name, arm.run));
            agents.push((arm.is_none(), Agent { run: view.run.id.clone(), name }));
        }
    }
    // The study's own agents first.
    agents.sort_by_key(|(foreign, _)| *foreign);
    let admitted: Vec<&StudyAnswer> = known.answers.iter().filter(|answer| filter.admits(&known, answer)).collect();
    let last = admitted.len().div_ceil(filter.length()).saturating_sub(1);
    // Decisions make the list shorter: behind its end is its last page.
    let filter = Filter { page: filter.at().min(last).to_string(), ..filter };
    let shown: Vec<&StudyAnswer> =
        admitted.iter().copied().skip(filter.at() * filter.length()).take(filter.length()).collect();
    let views = state.store.views(&shown.iter().map(|answer| answer.execution).collect::<Vec<_>>()).await?;
    let cards = shown
        .iter()
        .map(|answer| card(&state, &known, (&families, &study.arms), views.get(&answer.execution), answer))
        .collect();
    let reviewed = |wanted: ReviewState| {
        known.answers.iter().filter(|answer| answer.review.as_ref().is_some_and(|r| r.state == wanted)).count()
    };
    let waiting = Filter::default();
    let overlapping = known.overlapping();
    Ok(page::html(&ReviewPage {
        unreviewed: known.answers.iter().filter(|answer| waiting.admits(&known, answer)).count(),
        accepted: reviewed(ReviewState::Accepted),
        rejected: reviewed(ReviewState::Rejected),
        teachers: known.people.iter().map(|who| (who.number, who.pseudonym())).collect(),
        agreement: agreement::agreement(&overlapping),
        overlapping: overlapping.len(),
        worked_out: known.agent.clone(),
        agents: agents.into_iter().map(|(_, agent)| agent).collect(),
        found: admitted.len(),
        page,
        study,
        filter,
        cards,
        scripts,
    }))
}

/// A study that can be reviewed.
struct Listed {
    study: Study,
    unreviewed: usize,
    reviewed: usize,
}

#[derive(Template)]
#[template(path = "study/review_list.html")]
struct ListPage {
    page: Page,
    studies: Vec<Listed>,
}

/// `GET /review`: the studies, for those who review them.
pub(crate) async fn list(Reviewer(_): Reviewer, State(state): State<AppState>, page: Page) -> Result<Response> {
    let mut studies = Vec::new();
    for study in state.store.studies().await? {
        let answers = state.store.study_answers(&study.id).await?;
        let reviewed = answers.iter().filter(|answer| answer.review.is_some()).count();
        let given = answers.iter().filter(|answer| !answer.retracted && answer.kind != AnswerKind::Skipped);
        let unreviewed = given.filter(|answer| answer.review.is_none()).count();
        studies.push(Listed { study, unreviewed, reviewed });
    }
    Ok(page::html(&ListPage { page, studies }))
}

/// Whether a script asked, which wants JSON.
fn wants_json(headers: &HeaderMap) -> bool {
    headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).is_some_and(|accept| accept.contains("json"))
}

/// Back to the list that the form stood on, with the answer in view.
fn back(page: &Page, id: &StudyId, query: &str, answer: Option<AnswerId>) -> Response {
    let plain = query.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
    let query = if plain { query } else { "" };
    let at = answer.map(|answer| format!("#answer-{answer}")).unwrap_or_default();
    Redirect::to(&page.url(&format!("{}/review?{query}{at}", studies::admin_path(id)))).into_response()
}

/// Body of a decision about an answer.
#[derive(Deserialize)]
pub(crate) struct Decision {
    /// `accepted`, `rejected`, or empty to take the decision back.
    #[serde(default)]
    state: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    back: String,
}

/// Data for the page's script.
#[derive(Serialize)]
struct Decided {
    state: Option<ReviewState>,
    reason: String,
    reviewer: String,
}

/// Longest reason.
const LONGEST_REASON: usize = 500;

/// `POST /studies/{study}/review/{answer}`: accepts it, rejects it, or takes either back.
pub(crate) async fn decide(
    Reviewer(actor): Reviewer,
    State(state): State<AppState>,
    Path((id, answer)): Path<(StudyId, AnswerId)>,
    page: Page,
    headers: HeaderMap,
    Form(sent): Form<Decision>,
) -> Result<Response> {
    let decision = match (sent.state.as_str(), ReviewState::parse(&sent.state)) {
        ("", _) => None,
        (_, Some(state)) => Some(state),
        _ => return Err(Error::change("state", "An answer is accepted or rejected.")),
    };
    let reason = sent.reason.trim();
    if decision == Some(ReviewState::Rejected) && reason.is_empty() {
        return Err(Error::change("reason", "Say in a few words why you reject it."));
    }
    if reason.chars().count() > LONGEST_REASON {
        return Err(Error::change("reason", format!("A reason may have {LONGEST_REASON} characters.")));
    }
    let reason = if decision == Some(ReviewState::Rejected) { reason } else { "" };
    state.store.review(&id, answer, decision.map(|state| (state, reason)), &actor.name).await?;
    if wants_json(&headers) {
        let decided = Decided { state: decision, reason: reason.to_owned(), reviewer: actor.name };
        return Ok(Json(decided).into_response());
    }
    Ok(back(&page, &id, &sent.back, Some(answer)))
}

/// Body of an adjudication: an answer, or words of the reviewer's own; neither takes it back.
#[derive(Deserialize)]
pub(crate) struct Adjudicated {
    answer: Option<AnswerId>,
    #[serde(default)]
    text: String,
    /// The answer that the form stood beside.
    beside: Option<AnswerId>,
    #[serde(default)]
    back: String,
}

/// `POST /studies/{study}/adjudicate/{execution}`: decides which description of an execution stands as the right one.
pub(crate) async fn adjudicate(
    Reviewer(actor): Reviewer,
    State(state): State<AppState>,
    Path((id, execution)): Path<(StudyId, ExecutionId)>,
    page: Page,
    headers: HeaderMap,
    Form(sent): Form<Adjudicated>,
) -> Result<Response> {
    let text = sent.text.replace("\r\n", "\n");
    if text.chars().count() > TEXT_LIMIT {
        return Err(Error::change("text", format!("A description may have {TEXT_LIMIT} characters.")));
    }
    let chosen = match (sent.answer, text.trim()) {
        (Some(answer), _) => Chosen::Answer(answer),
        (None, "") => Chosen::Nothing,
        (None, text) => Chosen::Words(text.to_owned()),
    };
    state.store.adjudicate(&id, execution, &chosen, &actor.name).await?;
    if wants_json(&headers) {
        let decided = state.store.adjudications(&id).await?.remove(&execution);
        return Ok(Json(decided).into_response());
    }
    Ok(back(&page, &id, &sent.back, sent.beside))
}

/// Body of the form that has an agent carry descriptions out.
#[derive(Deserialize)]
pub(crate) struct Asked {
    agent: RunId,
    #[serde(default)]
    back: String,
}

/// `POST /studies/{study}/agreement`: has an agent carry out what several teachers said of the same executions.
pub(crate) async fn work_out_agreement(
    Reviewer(actor): Reviewer,
    State(state): State<AppState>,
    Path(id): Path<StudyId>,
    page: Page,
    Form(asked): Form<Asked>,
) -> Result<Response> {
    state.store.study(&id).await?;
    review::work_out_agreement(&state, &id, &asked.agent, &actor.name).await?;
    Ok(back(&page, &id, &asked.back, None))
}

/// The agreement of one teacher with the others.
pub(crate) fn agreement_with_others(known: &Known, teacher: TeacherId) -> Agreement {
    agreement::with_others(&known.overlapping(), teacher)
}
