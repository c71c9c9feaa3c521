//! A simulated person in a study: from the link to the code, through the same pages and addresses as everybody.

use super::client::{Client, Reply};
use super::tally::Tally;
use crate::ids::{ExecutionId, RunId};
use crate::protocol::Medium;
use crate::rng::{Stream, stream};
use crate::store::{Participant, Store, Study};
use crate::study::{Entry, ParticipantState};
use crate::teacher::people::{AnswersAsPeople, SimulatedAnswer};
use anyhow::Context;
use rand::RngExt;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long somebody waits for something to teach, or for a researcher, before they give up. It is not divided by the speed: the
/// server does not become quicker.
const PATIENCE: Duration = Duration::from_secs(180);
/// Time between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(300);
/// Longest time without renewing a lease.
const RENEW: Duration = Duration::from_secs(60);
/// Words that a person reads in a second.
const WORDS_A_SECOND: f64 = 3.3;
/// How often a request is sent again that got no answer, or was told to wait.
const TRIES: u64 = 5;
/// Share of attention checks that are answered at random.
const INATTENTION: f64 = 0.02;

/// The people of a run, one at a time.
pub(super) type PeopleOfRun = Mutex<Box<dyn AnswersAsPeople>>;

/// State that all simulated people share.
pub(super) struct Stage {
    pub(super) study: Study,
    pub(super) store: Store,
    pub(super) people: BTreeMap<RunId, PeopleOfRun>,
    /// People are quicker by this factor.
    pub(super) speed: f64,
    /// Share of people who leave early. Pages are reloaded, and connections lost, in a share of the answers that is half as large.
    pub(super) drops: f64,
    pub(super) seed: u64,
    pub(super) tally: Tally,
}

/// How somebody's part ended, as they see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The page of the end, whatever it says.
    Ended,
    /// They went away without a word.
    Vanished,
}

/// A person.
pub(super) struct Person {
    number: u64,
    client: Client,
    stage: Arc<Stage>,
    draws: Stream,
    /// Answers after which they leave, and whether they say so.
    leaves: Option<(u64, bool)>,
    given: u64,
    /// Seconds of active work, as a person of the real world would need them.
    seconds: f64,
}

/// The report of a simulated person.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report {
    pub(super) end: End,
    /// Minutes that it would take a person of the real world, with all that is read.
    pub(super) minutes: f64,
}

enum Next {
    GoOn,
    Vanished,
}

/// The text between two marks.
fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let rest = text.split_once(before)?.1;
    Some(rest.split_once(after)?.0)
}

/// The values of all radio buttons called `choice`.
fn choices(page: &str) -> Vec<String> {
    page.split("name=\"choice\" value=\"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())).collect()
}

impl Person {
    pub(super) fn new(number: u64, client: Client, stage: Arc<Stage>) -> Person {
        let mut draws = stream(stage.seed, "rehearsed person", number);
        let goal = u64::from(stage.study.settings.goal).max(2);
        let leaves = draws.random_bool(stage.drops).then(|| (draws.random_range(1..goal), draws.random_bool(0.5)));
        Person { number, client, stage, draws, leaves, given: 0, seconds: 0.0 }
    }

    /// Takes part from the link to the end.
    pub(super) async fn take_part(mut self) -> Report {
        // Nobody comes at the same moment as everybody else.
        let later = self.draws.random_range(0.0..30.0);
        self.pass(later).await;
        self.seconds = 0.0;
        let end = match self.whole_way().await {
            Ok(end) => end,
            Err(error) => {
                self.stage.tally.failed(format!("somebody could not go on: {error:#}"));
                End::Vanished
            }
        };
        Report { end, minutes: self.seconds / 60.0 }
    }

    /// Lets time pass that a person needs.
    async fn pass(&mut self, seconds: f64) {
        self.seconds += seconds;
        tokio::time::sleep(Duration::from_secs_f64(seconds / self.stage.speed)).await;
    }

    /// Reads a page as a person does.
    async fn read(&mut self, page: &str) {
        let main = between(page, "<main", "</main>").unwrap_or(page);
        let mut words = 0;
        let mut inside = false;
        let mut word = false;
        for c in main.chars() {
            match c {
                '<' => (inside, word) = (true, false),
                '>' => inside = false,
                c if !inside && c.is_alphanumeric() => {
                    words += u32::from(!word);
                    word = true;
                }
                _ => word = false,
            }
        }
        self.pass(f64::from(words) / WORDS_A_SECOND).await;
    }

    fn own(&self, rest: &str) -> String {
        format!("/study/{}{rest}", self.stage.study.id)
    }

    /// Names that a platform would put into the link.
    fn names(&self) -> Vec<(&'static str, String)> {
        let n = self.number;
        match self.stage.study.settings.entry {
            Entry::Link | Entry::Invitation => Vec::new(),
            Entry::Prolific => vec![
                ("PROLIFIC_PID", format!("rehearsed{n}")),
                ("STUDY_ID", "rehearsal".to_owned()),
                ("SESSION_ID", format!("session{n}")),
            ],
            Entry::Mturk => vec![
                ("workerId", format!("REHEARSED{n}")),
                ("hitId", "REHEARSAL".to_owned()),
                ("assignmentId", format!("ASSIGNMENT{n}")),
            ],
        }
    }

    /// Sends something again until there is an answer that is no trouble of the moment.
    async fn load(&mut self, path: &str) -> anyhow::Result<Reply> {
        let begun = Instant::now();
        let reply = self.client.page(path).await?;
        self.stage.tally.took("page", begun.elapsed());
        if reply.status >= 400 {
            self.stage.tally.failed(format!("GET {}: {}", shape(path), reply.status));
        }
        Ok(reply)
    }

    async fn send(&mut self, path: &str, fields: &[(&str, &str)]) -> anyhow::Result<Reply> {
        let begun = Instant::now();
        let reply = self.client.form(path, fields).await?;
        self.stage.tally.took("form", begun.elapsed());
        if reply.status >= 400 {
            self.stage.tally.failed(format!("POST {}: {}", shape(path), reply.status));
        }
        Ok(reply)
    }

    /// The participant that this person is; `None` before they have joined.
    async fn participant(&self) -> anyhow::Result<Option<Participant>> {
        let Some(cookie) = self.client.cookie("iliad_teacher") else { return Ok(None) };
        for token in cookie.split('.') {
            if let Some(teacher) = self.stage.store.known_teacher(token).await? {
                return Ok(self.stage.store.participant(&self.stage.study.id, teacher.id).await?);
            }
        }
        Ok(None)
    }

    async fn whole_way(&mut self) -> anyhow::Result<End> {
        let names = self.names();
        let pairs: Vec<String> = names.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let link = if pairs.is_empty() { self.own("") } else { format!("{}?{}", self.own(""), pairs.join("&")) };
        let first = self.load(&link).await?;
        self.read(&first.text).await;
        let mut fields: Vec<(&str, &str)> = names.iter().map(|(name, value)| (*name, value.as_str())).collect();
        fields.push(("agree", "yes"));
        let joined = self.send(&self.own("/join"), &fields).await?;
        anyhow::ensure!(joined.status == 303, "joining was refused");
        let mut waiting_since = None;
        loop {
            let page = self.load(&self.own("")).await?;
            if let Some(to) = page.location {
                waiting_since = None;
                let next = match to.strip_prefix("/teach/") {
                    Some(run) => self.teach(&RunId::from(run)).await?,
                    None if to.ends_with("/check") => self.check().await?,
                    None => anyhow::bail!("the study led to {to}"),
                };
                match next {
                    Next::GoOn => continue,
                    Next::Vanished => return Ok(End::Vanished),
                }
            }
            let who = self.participant().await?.context("who has joined is no participant")?;
            match who.state {
                ParticipantState::Guidelines => {
                    self.read(&page.text).await;
                    self.send(&self.own("/begin"), &[]).await?;
                }
                ParticipantState::Qualifying => self.qualify(&page.text).await?,
                ParticipantState::Waiting | ParticipantState::Teaching => {
                    let since = *waiting_since.get_or_insert_with(Instant::now);
                    if since.elapsed() > PATIENCE {
                        self.stage.tally.failed("somebody waited for three minutes and went away");
                        return Ok(End::Vanished);
                    }
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
                ParticipantState::Finished => {
                    if !page.text.contains("id=\"code\"") {
                        self.stage.tally.failed("somebody finished and saw no code");
                    }
                    return Ok(End::Ended);
                }
                ParticipantState::ScreenedOut | ParticipantState::Left => return Ok(End::Ended),
            }
        }
    }

    /// The answer of this person to an execution of a run.
    async fn answer(&self, run: &RunId, trace: Value) -> anyhow::Result<SimulatedAnswer> {
        let (stage, run, person, number) = (self.stage.clone(), run.clone(), self.number, self.given);
        // The describer computes for a while.
        let answered = tokio::task::spawn_blocking(move || {
            let people = stage.people.get(&run).context("the study has no such run")?;
            people.lock().unwrap_or_else(PoisonError::into_inner).answer(&trace, person, number)
        });
        answered.await?
    }

    async fn qualify(&mut self, page: &str) -> anyhow::Result<()> {
        let position = between(page, "name=\"position\" value=\"", "\"").context("the qualification has no place")?;
        let position = position.to_owned();
        let items = self.stage.store.qualification_items(&self.stage.study.id).await?;
        let item = items.get(position.parse::<usize>()?).context("there is no such execution in the qualification")?;
        let said = self.answer(&item.run.clone(), item.trace.clone()).await?;
        self.pass(said.seconds).await;
        let text = if said.text.is_empty() { "I would do the same." } else { said.text.as_str() };
        self.send(&self.own("/qualify"), &[("position", position.as_str()), ("text", text)]).await?;
        Ok(())
    }

    async fn check(&mut self) -> anyhow::Result<Next> {
        let page = self.load(&self.own("/check")).await?;
        let Some(at) = between(&page.text, "name=\"at\" value=\"", "\"").map(str::to_owned) else {
            return Ok(Next::GoOn);
        };
        self.pass(8.0).await;
        let who = self.participant().await?.context("who is checked is no participant")?;
        let item = self.stage.store.attention_item(&self.stage.study.id, (who.id, who.teacher), at.parse()?).await?;
        let all = choices(&page.text);
        let choice = match item {
            Some(item) if !self.draws.random_bool(INATTENTION) => item.right.to_string(),
            _ => all.get(self.draws.random_range(0..all.len().max(1))).context("a check has no choices")?.clone(),
        };
        self.stage.tally.happened("attention checks");
        self.send(&self.own("/check"), &[("at", at.as_str()), ("choice", choice.as_str())]).await?;
        Ok(Next::GoOn)
    }

    /// Teaches a run until something else comes.
    async fn teach(&mut self, run: &RunId) -> anyhow::Result<Next> {
        let page = format!("/teach/{run}");
        if self.load(&page).await?.location.is_some() {
            return Ok(Next::GoOn);
        }
        let mut idle = Instant::now();
        loop {
            let begun = Instant::now();
            let reply = self.client.post(&format!("/api/v1/runs/{run}/lease"), &json!({})).await?;
            self.stage.tally.took("lease", begun.elapsed());
            match reply.status {
                200 => {}
                // Something else comes first; the study's page says what.
                409 => {
                    tokio::time::sleep(LOOK_AGAIN).await;
                    return Ok(Next::GoOn);
                }
                status => {
                    self.stage.tally.failed(format!("lease: {status}"));
                    tokio::time::sleep(LOOK_AGAIN).await;
                    if idle.elapsed() > PATIENCE {
                        return Ok(Next::Vanished);
                    }
                    continue;
                }
            }
            let offer = reply.json();
            let Some(execution) = offer["execution"].as_i64().map(ExecutionId) else {
                if offer["study"]["next"].is_string() {
                    return Ok(Next::GoOn);
                }
                if idle.elapsed() > PATIENCE {
                    self.stage.tally.failed("there was nothing to teach for three minutes");
                    return Ok(Next::Vanished);
                }
                tokio::time::sleep(LOOK_AGAIN).await;
                continue;
            };
            idle = Instant::now();
            let trace = self.stage.store.trace(execution).await?;
            let answer = self.answer(run, trace).await?;
            self.work(run, execution, answer.seconds).await?;
            if self.draws.random_bool(self.stage.drops / 2.0) {
                self.stage.tally.happened("reloaded pages");
                self.load(&page).await?;
            }
            let on = self.give(run, execution, &offer["client_key"], &answer).await?;
            self.given += 1;
            if let Some((after, says_so)) = self.leaves
                && self.given >= after
            {
                if says_so {
                    self.stage.tally.happened("left early");
                    self.send(&self.own("/leave"), &[]).await?;
                    return Ok(Next::GoOn);
                }
                self.stage.tally.happened("went away without a word");
                return Ok(Next::Vanished);
            }
            if !on {
                return Ok(Next::GoOn);
            }
        }
    }

    /// Works on an execution for as long as a person would, and keeps the lease.
    async fn work(&mut self, run: &RunId, execution: ExecutionId, seconds: f64) -> anyhow::Result<()> {
        let mut left = Duration::from_secs_f64(seconds / self.stage.speed);
        self.seconds += seconds;
        while left > RENEW {
            tokio::time::sleep(RENEW).await;
            left -= RENEW;
            self.client.post(&format!("/api/v1/runs/{run}/executions/{execution}/renew"), &json!({})).await?;
        }
        tokio::time::sleep(left).await;
        Ok(())
    }

    /// Sends an answer until it is stored. Whether an execution of the same run comes next.
    async fn give(
        &mut self,
        run: &RunId,
        execution: ExecutionId,
        key: &Value,
        answer: &SimulatedAnswer,
    ) -> anyhow::Result<bool> {
        let path = format!("/api/v1/runs/{run}/answers");
        let mut body = json!({
            "client_key": key, "execution": execution, "active_ms": (answer.seconds * 1000.0).round() as u64,
            "kind": if answer.cannot { "cannot_describe" } else { "described" }, "text": answer.text,
        });
        if !answer.cannot {
            match self.medium(run) {
                Some(Medium::Demonstration) => body["demonstration"] = answer.demonstration.clone(),
                Some(Medium::Rating) => body["rating"] = answer.rating.into(),
                _ => {}
            }
        }
        if self.draws.random_bool(self.stage.drops / 2.0) {
            // The connection goes before the answer is whole, or before the reply comes; what is sent again is stored once.
            self.stage.tally.happened("lost connections");
            let share = if self.draws.random_bool(0.5) { 0.5 } else { 1.0 };
            self.client.break_off(&path, &body, share).await?;
        }
        for trial in 0..TRIES {
            let begun = Instant::now();
            let reply = match self.client.post(&path, &body).await {
                Ok(reply) => reply,
                Err(_) if trial + 1 < TRIES => {
                    self.stage.tally.happened("answers sent again");
                    continue;
                }
                Err(error) => return Err(error),
            };
            self.stage.tally.took("answer", begun.elapsed());
            let said = reply.json();
            match (reply.status, said["code"].as_str().unwrap_or_default()) {
                (200 | 201, _) => return Ok(!said["study"]["next"].is_string()),
                (409, "unconfirmed") => body["confirmed"] = true.into(),
                (422, "demonstration") => {
                    self.stage.tally.happened("demonstrations that the task refuses");
                    body["kind"] = "cannot_describe".into();
                    body["demonstration"] = Value::Null;
                }
                (409, "lease-lost" | "superseded") => {
                    self.stage.tally.happened("answers that came too late");
                    return Ok(true);
                }
                (status @ (429 | 503), code) => {
                    self.stage.tally.failed(format!("answer: {status} {code}"));
                    tokio::time::sleep(LOOK_AGAIN * 4).await;
                }
                (status, code) => {
                    self.stage.tally.failed(format!("answer: {status} {code}"));
                    return Ok(false);
                }
            }
        }
        self.stage.tally.failed("an answer could not be sent");
        Ok(false)
    }

    fn medium(&self, run: &RunId) -> Option<Medium> {
        Some(self.stage.people.get(run)?.lock().unwrap_or_else(PoisonError::into_inner).medium())
    }
}

/// An address without the names in it, so that errors of one kind are counted together.
fn shape(path: &str) -> String {
    let path = path.split('?').next().unwrap_or(path);
    let mut parts = path.splitn(4, '/');
    let (_, room, _, rest) = (parts.next(), parts.next().unwrap_or_default(), parts.next(), parts.next());
    rest.map_or_else(|| format!("/{room}/…"), |rest| format!("/{room}/…/{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_say_what_they_ask() {
        let page = r#"<main><input type="hidden" name="at" value="3"><input type="radio" name="choice" value="17" required>
            <input type="radio" name="choice" value="4" required></main>"#;
        assert_eq!(between(page, "name=\"at\" value=\"", "\""), Some("3"));
        assert_eq!(choices(page), ["17", "4"]);
        assert_eq!(shape("/study/words/check?x=1"), "/study/…/check");
        assert_eq!(shape("/teach/regex-1"), "/teach/…");
    }
}
