//! A study as its teachers meet it: they join, read, qualify, teach, and end. One address, `/study/{study}`, always shows what
//! comes next for who asks; so a reload, a dropped connection or another day lead back to the right place.

use crate::family::Audience;
use crate::ids::StudyId;
use crate::registry::AnyFamily;
use crate::store::{Joining, Participant, Person, SELF, Study};
use crate::study::{Entry, Estimate, ParticipantState, StudyState};
use crate::web::error::{Error, Result};
use crate::web::extractors::input::{Form, Path, Query};
use crate::web::extractors::visitor::{Browser, Guest, Returned};
use crate::web::format;
use crate::web::handlers::study_questions;
use crate::web::page::panel::Panel;
use crate::web::page::run_view::RunView;
use crate::web::page::{self, Page, markdown};
use crate::web::services::participation::{self, Next};
use crate::web::services::qualification;
use crate::web::state::AppState;
use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;

/// Names that platforms and invitations put into the link, and the joining form hands on. MTurk writes its own in another way.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Arrival {
    invitation: String,
    #[serde(rename = "PROLIFIC_PID")]
    prolific_pid: String,
    #[serde(rename = "STUDY_ID")]
    prolific_study: String,
    #[serde(rename = "SESSION_ID")]
    prolific_session: String,
    #[serde(rename = "workerId")]
    worker: String,
    #[serde(rename = "hitId")]
    hit: String,
    #[serde(rename = "assignmentId")]
    assignment: String,
    /// Sent by the form of somebody who agrees.
    agree: Option<String>,
}

/// Longest name that a platform gives.
const LONGEST_NAME: usize = 128;

/// A name from a link; platforms make theirs of ASCII's letters, digits and marks. One that is empty or too long is none.
fn name(text: &str) -> Option<String> {
    let text = text.trim();
    let fits = (1..=LONGEST_NAME).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    fits.then(|| text.to_owned())
}

impl Arrival {
    fn person(&self, entry: Entry) -> Person {
        let [person, study, session] = match entry {
            Entry::Prolific => [&self.prolific_pid, &self.prolific_study, &self.prolific_session],
            Entry::Mturk => [&self.worker, &self.hit, &self.assignment],
            Entry::Link | Entry::Invitation => return Person::default(),
        };
        Person {
            platform_person: name(person),
            platform_study: name(study),
            platform_session: name(session),
            invitation: None,
        }
    }

    fn invitation(&self) -> Option<String> {
        name(&self.invitation)
    }

    /// MTurk shows a task before it is taken, with this in the place of the assignment.
    fn is_preview(&self) -> bool {
        self.assignment == "ASSIGNMENT_ID_NOT_AVAILABLE"
    }

    /// Names and values of the form's hidden fields.
    fn fields(&self, entry: Entry) -> Vec<(&'static str, String)> {
        let fields = match entry {
            Entry::Link => Vec::new(),
            Entry::Invitation => vec![("invitation", &self.invitation)],
            Entry::Prolific => vec![
                ("PROLIFIC_PID", &self.prolific_pid),
                ("STUDY_ID", &self.prolific_study),
                ("SESSION_ID", &self.prolific_session),
            ],
            Entry::Mturk => {
                vec![("workerId", &self.worker), ("hitId", &self.hit), ("assignmentId", &self.assignment)]
            }
        };
        fields.into_iter().map(|(field, value)| (field, value.clone())).collect()
    }
}

#[derive(Template)]
#[template(path = "study/join.html")]
struct JoinPage {
    page: Page,
    study: Study,
    summary: String,
    consent: String,
    estimate: Estimate,
    goal: u64,
    fields: Vec<(&'static str, String)>,
    /// Why nobody can join now, or this person cannot.
    problem: Option<String>,
    /// Whether the form is shown.
    open: bool,
}

#[derive(Template)]
#[template(path = "study/guidelines.html")]
struct GuidelinesPage {
    page: Page,
    study: Study,
    guidelines: String,
    title: &'static str,
    lead: &'static str,
    example: Option<Example>,
    /// Whether people teach in words, so that examples are quoted.
    in_words: bool,
    good: Vec<(String, String)>,
    poor: Vec<(String, String)>,
    /// Where somebody goes on who has begun and only looks again.
    again: Option<String>,
}

/// The family's example.
struct Example {
    family: &'static dyn AnyFamily,
    heading: &'static str,
    /// The request, where people see it.
    request: Option<String>,
    html: String,
}

#[derive(Template)]
#[template(path = "study/end.html")]
struct EndPage {
    page: Page,
    study: Study,
    title: &'static str,
    /// Sentences of the program's own.
    words: String,
    /// The researcher's text.
    thanks: String,
    given: u64,
    code: Option<String>,
    return_address: Option<String>,
    /// The label of a button that leads on, with the own path that it is posted to.
    on: Option<(&'static str, String)>,
    /// Whether the page asks again by itself, as something else may come next at any time.
    waits: bool,
    /// Whether the person may take part and can see their answers.
    answers: Option<String>,
}

/// `GET /study/{study}`: whatever comes next.
pub(crate) async fn page(
    State(state): State<AppState>,
    Path(id): Path<StudyId>,
    Query(arrival): Query<Arrival>,
    page: Page,
    Guest(visitor): Guest,
) -> Result<Response> {
    let study = state.store.study(&id).await?;
    let who = match &visitor {
        Some(visitor) => state.store.participant(&id, visitor.teacher.id).await?,
        None => None,
    };
    match who {
        None => joining(page, study, &arrival, None),
        Some(who) => here(&state, page, study, who).await,
    }
}

fn joining(page: Page, study: Study, arrival: &Arrival, problem: Option<String>) -> Result<Response> {
    if study.state == StudyState::Draft && !page.steering {
        return Err(Error::NotFound("the study"));
    }
    let entry = study.settings.entry;
    let closed = match study.state {
        StudyState::Draft => {
            Some("This study is a draft. Only you can see this page; open the study to let people join.")
        }
        StudyState::Open => None,
        StudyState::Paused => Some("This study takes a break. Please come back later."),
        StudyState::Closed => Some("This study has ended. Thank you for your interest."),
    };
    let lacking = match entry {
        Entry::Invitation if arrival.invitation().is_none() => {
            Some("This study is by invitation. Open the link that was sent to you.")
        }
        Entry::Prolific | Entry::Mturk if arrival.is_preview() => {
            Some("This is a preview. Accept the task first; this page then lets you begin.")
        }
        Entry::Prolific | Entry::Mturk if arrival.person(entry).platform_person.is_none() => Some(
            "This study is open to people who come from its platform. Open it by the link that the platform shows you.",
        ),
        _ => None,
    };
    let open = closed.is_none() && lacking.is_none();
    let problem = problem.or_else(|| closed.or(lacking).map(str::to_owned));
    Ok(page::html(&JoinPage {
        summary: markdown::html(&study.settings.summary),
        consent: markdown::html(&study.settings.consent),
        estimate: Estimate::of(&study.settings, None),
        goal: participation::goal(&study).unwrap_or(0),
        fields: arrival.fields(entry),
        page,
        study,
        problem,
        open,
    }))
}

/// Answers with the page that comes next for a participant.
async fn here(state: &AppState, page: Page, study: Study, who: Participant) -> Result<Response> {
    let given = state.store.answers_in_study(&study.id, who.teacher).await?;
    let closed = matches!(study.state, StudyState::Paused | StudyState::Closed);
    let state_of_who = match who.state {
        // Who ended keeps their code, whatever became of the study.
        ended @ (ParticipantState::Finished | ParticipantState::ScreenedOut | ParticipantState::Left) => ended,
        _ if closed => return Ok(ended(page, study, &who, given)),
        other => other,
    };
    match state_of_who {
        ParticipantState::Guidelines => guidelines(state, page, study, &who, false).await,
        ParticipantState::Qualifying => match qualification::next_item(state, &study, &who).await? {
            Some(item) => study_questions::qualify(state, page, study, item, String::new(), None),
            None => {
                let who = qualification::decide(state, &study, &who).await?;
                Box::pin(here(state, page, study, who)).await
            }
        },
        ParticipantState::Teaching => {
            let to = match participation::next(state, &study, &who, given).await? {
                Next::Finish => {
                    let who = participation::end(state, &study, &who, ParticipantState::Finished).await?;
                    return Ok(ended(page, study, &who, given));
                }
                Next::Check => format!("{}/check", participation::path(&study.id)),
                Next::Teach(run) => participation::teach_path(&run),
                Next::Nothing => return Ok(ended(page, study, &who, given)),
            };
            Ok(Redirect::to(&page.url(&to)).into_response())
        }
        _ => Ok(ended(page, study, &who, given)),
    }
}

/// The guidelines, in the words of the medium in which the participant teaches.
async fn guidelines(state: &AppState, page: Page, study: Study, who: &Participant, again: bool) -> Result<Response> {
    let arm = who.arm.and_then(|arm| study.arms.get(arm as usize)).or(study.arms.first());
    let view = match arm {
        Some(arm) => Some(RunView::load(state, &arm.run).await?),
        None => None,
    };
    let mut shown = GuidelinesPage {
        guidelines: markdown::html(&study.settings.guidelines),
        again: again.then(|| participation::path(&study.id)),
        title: "How to teach",
        lead: "",
        example: None,
        in_words: true,
        good: Vec::new(),
        poor: Vec::new(),
        page,
        study,
    };
    if let Some(view) = view {
        let (panel, guide) = (Panel::of(&view), view.family.guide());
        let (title, lead, heading) = panel.guide();
        let html = view.family.render(&guide.view, Audience::Teacher)?;
        (shown.title, shown.lead, shown.in_words) = (title, lead, panel.describes());
        let request = match panel.describes() {
            true => None,
            // A good description of the example is a request for it.
            false => guide.good.first().map(|(request, _)| request.clone()),
        };
        shown.example = Some(Example { family: view.family, heading, request, html });
        (shown.good, shown.poor) = if panel.describes() { (guide.good, guide.poor) } else { panel.advice() };
    }
    let own = |list: &[crate::study::WordedExample]| {
        list.iter().map(|example| (example.text.clone(), example.why.clone())).collect::<Vec<_>>()
    };
    if shown.in_words {
        shown.good.extend(own(&shown.study.settings.good));
        shown.poor.extend(own(&shown.study.settings.poor));
    }
    Ok(page::html(&shown))
}

/// The page of who has nothing to do here now: they finished, wait, were screened out, left, or the study rests.
fn ended(page: Page, study: Study, who: &Participant, given: u64) -> Response {
    let code = who.completion_code.clone();
    let paused = "The study takes a break. Everything you gave is stored. Come back to this page later.";
    let (title, words) = match (who.state, study.state) {
        (ParticipantState::Finished, _) => {
            ("Thank you, that was all", "You gave everything that was asked of you. It is stored.")
        }
        (ParticipantState::ScreenedOut, _) if who.attention_missed > u64::from(study.settings.attention.misses) => (
            "Thank you for trying",
            "Too many of the questions in between were answered wrongly, so the study ends here for you. What you gave before is stored.",
        ),
        (ParticipantState::ScreenedOut, _) => (
            "Thank you for trying",
            "The descriptions at the beginning did not say enough for somebody else to do the same, so the study ends here for you.",
        ),
        (ParticipantState::Left, _) => ("You have left the study", "Everything you gave before is stored."),
        (ParticipantState::Waiting, StudyState::Open) => (
            "Somebody reads what you wrote",
            "The people who run this study look at your descriptions before you go on. Come back to this page later: it leads you on as soon as they have.",
        ),
        (_, StudyState::Paused) => ("The study takes a break", paused),
        (_, StudyState::Closed) => {
            ("The study has ended", "It ended before you were done. Everything you gave is stored. Thank you.")
        }
        _ => (
            "Nothing to teach just now",
            "The people who run this study have to add a run to it. Come back to this page later.",
        ),
    };
    let again = (who.state == ParticipantState::Left && study.state == StudyState::Open)
        .then(|| ("Go on after all", format!("{}/back", participation::path(&study.id))));
    let finished = who.state == ParticipantState::Finished;
    page::html(&EndPage {
        thanks: if finished { markdown::html(&study.settings.completion.thanks) } else { String::new() },
        return_address: code.as_deref().and_then(|code| study.settings.return_address(code)),
        answers: (given > 0).then(|| format!("{}/answers", participation::path(&study.id))),
        words: words.to_owned(),
        waits: who.state == ParticipantState::Waiting || study.state == StudyState::Paused,
        on: again,
        page,
        study,
        title,
        given,
        code,
    })
}

/// Back to the study's page, which shows what comes next.
pub(crate) fn onwards(page: &Page, study: &StudyId) -> Response {
    Redirect::to(&page.url(&participation::path(study))).into_response()
}

/// `POST /study/{study}/join`.
pub(crate) async fn join(
    State(state): State<AppState>,
    Path(id): Path<StudyId>,
    page: Page,
    Browser { token, visitor }: Browser,
    Form(arrival): Form<Arrival>,
) -> Result<Response> {
    let study = state.store.study(&id).await?;
    let entry = study.settings.entry;
    let person = arrival.person(entry);
    if matches!(entry, Entry::Prolific | Entry::Mturk) && (arrival.is_preview() || person.platform_session.is_none()) {
        return joining(page, study, &Arrival::default(), None);
    }
    let invitation = arrival.invitation().filter(|_| entry == Entry::Invitation);
    let known = match &visitor {
        Some(visitor) => state.store.participant(&id, visitor.teacher.id).await?,
        None => None,
    };
    if known.is_none() {
        let session = person.platform_person.as_deref().zip(person.platform_session.as_deref());
        if let Some((_, teacher)) = state.store.returning(&id, invitation.as_deref(), session).await? {
            state.store.add_browser(teacher, &token).await?;
            return Ok(onwards(&page, &id));
        }
    }
    let teacher = match visitor {
        Some(visitor) => visitor.teacher,
        None => state.store.teacher(&token).await?,
    };
    let joining_with = Joining { person, invitation, agreed: arrival.agree.is_some() };
    match state.store.join_study(&id, teacher.id, &joining_with).await {
        Ok(_) => Ok(onwards(&page, &id)),
        Err(error) => {
            let problem = Error::from(error).problem();
            if problem.status >= 500 {
                return Err(Error::Busy(problem.detail));
            }
            let again = joining(page, study, &arrival, Some(problem.detail.clone()))?;
            Ok((problem.status(), again).into_response())
        }
    }
}

/// The participant behind a request, and the study.
pub(crate) async fn participant(
    state: &AppState,
    id: &StudyId,
    visitor: Option<crate::web::extractors::visitor::Visitor>,
) -> Result<(Study, Participant)> {
    let study = state.store.study(id).await?;
    let visitor = visitor.ok_or(Error::NotFound("your part in this study"))?;
    let who = state.store.participant(id, visitor.teacher.id).await?;
    Ok((study, who.ok_or(Error::NotFound("your part in this study"))?))
}

/// `GET /study/{study}/guidelines`: to read them again.
pub(crate) async fn guidelines_again(
    State(state): State<AppState>,
    Path(id): Path<StudyId>,
    page: Page,
    Guest(visitor): Guest,
) -> Result<Response> {
    let (study, who) = participant(&state, &id, visitor).await?;
    guidelines(&state, page, study, &who, who.state != ParticipantState::Guidelines).await
}

/// `POST /study/{study}/begin`: the guidelines were read.
pub(crate) async fn begin(
    State(state): State<AppState>,
    Path(id): Path<StudyId>,
    page: Page,
    Returned(visitor): Returned,
) -> Result<Response> {
    let (study, who) = participant(&state, &id, visitor).await?;
    if who.state == ParticipantState::Guidelines {
        state.store.set_seen_guide(who.teacher).await?;
        let next = match qualification::items(&state, &study).await? {
            0 if study.settings.qualification.executions > 0 => {
                return Err(Error::Busy(
                    "The agent has nothing to show yet. Try again in a minute: this page leads you on.".to_owned(),
                ));
            }
            0 => ParticipantState::Teaching,
            _ => ParticipantState::Qualifying,
        };
        state.store.set_participant_state(&who, next, None, SELF).await?;
    }
    Ok(onwards(&page, &id))
}

/// `POST /study/{study}/leave`: the participant ends early.
pub(crate) async fn leave(
    State(state): State<AppState>,
    Path(id): Path<StudyId>,
    page: Page,
    Returned(visitor): Returned,
) -> Result<Response> {
    let (study, who) = participant(&state, &id, visitor).await?;
    if !matches!(who.state, ParticipantState::Finished | ParticipantState::ScreenedOut) {
        // Without a goal there is nothing to fall short of: whoever stops has finished.
        let given = state.store.answers_in_study(&id, who.teacher).await?;
        let done = participation::goal(&study).is_none() && given > 0 && who.state == ParticipantState::Teaching;
        let how = if done { ParticipantState::Finished } else { ParticipantState::Left };
        participation::end(&state, &study, &who, how).await?;
    }
    Ok(onwards(&page, &id))
}

/// `POST /study/{study}/back`: who left goes on.
pub(crate) async fn back(
    State(state): State<AppState>,
    Path(id): Path<StudyId>,
    page: Page,
    Returned(visitor): Returned,
) -> Result<Response> {
    let (study, who) = participant(&state, &id, visitor).await?;
    if who.state == ParticipantState::Left && study.state == StudyState::Open {
        if who.attention_missed > u64::from(study.settings.attention.misses) {
            participation::end(&state, &study, &who, ParticipantState::ScreenedOut).await?;
            return Ok(onwards(&page, &id));
        }
        // They take up the first thing that is still before them; whether the qualification was passed is decided anew.
        let answered = state.store.qualification_answers(who.id).await?.len() as u64;
        let next = match qualification::items(&state, &study).await? {
            0 => ParticipantState::Teaching,
            items if answered < items => ParticipantState::Guidelines,
            _ => ParticipantState::Qualifying,
        };
        state.store.rejoin_study(who.id, next, study.settings.places).await?;
    }
    Ok(onwards(&page, &id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_platforms_are_taken_by_entry_and_bounded() {
        let arrival = Arrival {
            prolific_pid: " 5f1 ".into(),
            prolific_session: "s".into(),
            worker: "A1".into(),
            assignment: "ASSIGNMENT_ID_NOT_AVAILABLE".into(),
            invitation: "x".repeat(LONGEST_NAME + 1),
            ..Arrival::default()
        };
        assert_eq!(arrival.person(Entry::Prolific).platform_person.as_deref(), Some("5f1"));
        assert_eq!(arrival.person(Entry::Prolific).platform_study, None);
        assert_eq!(arrival.person(Entry::Mturk).platform_person.as_deref(), Some("A1"));
        assert_eq!(arrival.person(Entry::Link), Person::default());
        assert!(arrival.is_preview() && arrival.invitation().is_none());
        assert_eq!(name("a\u{0}b"), None);
    }
}
