//! A server that several people teach over HTTP while it also trains with the simulated teacher, killed again and again.

use super::Moments;
use super::audit::Books;
use crate::cli::study::rehearse::client::{Address, Client};
use crate::ids::{AnswerId, RunId};
use crate::run::Source;
use crate::store::Store;
use crate::trainer::{checkpoint, description_log};
use anyhow::Context;
use serde::Serialize;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How long a server may take to begin, to learn what is left, and to end.
const PATIENCE: Duration = Duration::from_secs(300);

/// Pause between two tries of whoever waits.
const AGAIN: Duration = Duration::from_millis(40);

/// Settings of the run: it never ends by itself, people and the simulated teacher share it, and checkpoints come often.
const SETTINGS: [&str; 4] = [
    r#"teacher.mode={"mode":"mixed","share":0.5}"#,
    "schedule.episodes=0",
    "schedule.checkpoint_every=15",
    "schedule.evaluate_every=60",
];

/// The outcome of this part.
#[derive(Debug, Serialize)]
pub(super) struct Taught {
    /// Kills.
    pub(super) kills: u64,
    /// People.
    pub(super) teachers: u64,
    /// Answers that the server said it had stored.
    pub(super) acknowledged: usize,
    /// Answers of these that were sent more than once, because no reply came.
    pub(super) sent_again: usize,
    /// Kills that came before the server took requests.
    pub(super) while_starting: u64,
    /// Updates of the run.
    pub(super) updates: u64,
    /// The faults, a sentence each.
    pub(super) faults: Vec<String>,
}

/// The books that the teachers keep.
#[derive(Default)]
struct Seen {
    books: Mutex<Books>,
    again: Mutex<usize>,
}

/// A server of this program. It is killed with the value.
struct Server(Child);

impl Server {
    fn start(data: &Path, port: u16, seed: u64) -> anyhow::Result<Server> {
        let mut command = Command::new(std::env::current_exe().context("this program cannot find itself")?);
        for (variable, _) in std::env::vars_os() {
            if variable.to_string_lossy().starts_with("ILIAD_") {
                command.env_remove(variable);
            }
        }
        command.args(["serve", "--preset", "regex/tiny", "--seed", &seed.to_string(), "--port", &port.to_string()]);
        command.args(SETTINGS.map(|setting| ["--set", setting]).concat());
        command.args(["--log-level", "error", "--device", "cpu", "--rate-limits", "false", "--data-dir"]).arg(data);
        command.current_dir(data).stdin(Stdio::null()).stdout(Stdio::null());
        Ok(Server(command.spawn().context("the server cannot be started")?))
    }

    /// Kills it as the system does when it has no memory left: nothing is written any more.
    fn kill(&mut self) -> anyhow::Result<()> {
        self.0.kill()?;
        self.0.wait()?;
        Ok(())
    }

    /// Whether it has ended by itself.
    fn ended(&mut self) -> anyhow::Result<bool> {
        Ok(self.0.try_wait()?.is_some())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// Kills the server as often as asked while people teach, and audits what is left.
pub(super) async fn carry_out(data: &Path, teachers: u64, moments: &Moments) -> anyhow::Result<Taught> {
    // Every server takes the same port, so that browsers find the next one.
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let address = Address::read(&format!("http://127.0.0.1:{port}")).map_err(anyhow::Error::msg)?;
    let mut server = Server::start(data, port, moments.seed)?;
    let run = ready(&address, &mut server).await?;
    let (seen, stop) = (Arc::new(Seen::default()), CancellationToken::new());
    let people: Vec<_> = (0..teachers)
        .map(|number| tokio::spawn(teach(number, address.clone(), run.clone(), seen.clone(), stop.clone())))
        .collect();
    let mut while_starting = 0;
    for kill in 0..moments.kills {
        let moment = moments.of("kill of a server", kill);
        tokio::time::sleep(moment).await;
        if server.ended()? {
            anyhow::bail!("the server ended by itself, {kill} kills after the first start; it says why above")
        }
        while_starting += u64::from(tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err());
        server.kill()?;
        server = Server::start(data, port, moments.seed)?;
    }
    ready(&address, &mut server).await?;
    // Everybody gives a last answer to a server that stays.
    tokio::time::sleep(Duration::from_secs(1)).await;
    stop.cancel();
    for person in people {
        person.await?;
    }
    let updates = learnt_everything(data, &run).await?;
    end(server).await?;
    let mut books = std::mem::take(&mut *seen.books.lock().unwrap_or_else(PoisonError::into_inner));
    close(&mut books, data, &run).await?;
    let sent_again = *seen.again.lock().unwrap_or_else(PoisonError::into_inner);
    let (kills, acknowledged, faults) = (moments.kills, books.acknowledged.len(), books.faults());
    Ok(Taught { kills, teachers, acknowledged, sent_again, while_starting, updates, faults })
}

/// Waits until the run can be taught; its id.
async fn ready(address: &Address, server: &mut Server) -> anyhow::Result<RunId> {
    let begun = Instant::now();
    let mut client = Client::new(address.clone(), None);
    loop {
        if let Ok(reply) = client.page("/api/runs").await
            && let Some(run) = reply.json().get(0)
            && run["status"]["state"] == "running"
        {
            return Ok(run["id"].as_str().context("the run has no id")?.into());
        }
        if server.ended()? {
            anyhow::bail!("the server did not start; it says why above")
        }
        anyhow::ensure!(begun.elapsed() < PATIENCE, "the run did not begin within {} seconds", PATIENCE.as_secs());
        tokio::time::sleep(AGAIN).await;
    }
}

/// Teaches until told to stop, whatever becomes of the server.
async fn teach(number: u64, address: Address, run: RunId, seen: Arc<Seen>, stop: CancellationToken) {
    let mut client = Client::new(address, None);
    while client.page(&format!("/teach/{run}")).await.is_err() && !stop.is_cancelled() {
        tokio::time::sleep(AGAIN).await;
    }
    let mut given = 0;
    while !stop.is_cancelled() {
        tokio::time::sleep(AGAIN).await;
        let Ok(reply) = client.post(&format!("/api/runs/{run}/lease"), &json!({ "except": [] })).await else {
            continue;
        };
        let leased = reply.json();
        if leased["execution"].is_null() {
            continue;
        }
        given += 1;
        // Words that no other answer has, so that each is known wherever it turns up.
        let text = format!("person {number} says {given} , that every [ e ] was removed");
        let body = json!({
            "client_key": leased["client_key"], "execution": leased["execution"], "kind": "described", "text": text,
        });
        seen.books.lock().unwrap_or_else(PoisonError::into_inner).sent.push(text.clone());
        let mut tries = 0;
        loop {
            tries += 1;
            let sent = client.post(&format!("/api/runs/{run}/answers"), &body).await;
            match sent.map(|reply| (reply.status, reply.json())) {
                Ok((200 | 201, thanks)) => {
                    if let Some(key) = thanks["answer"].as_i64() {
                        seen.books.lock().unwrap_or_else(PoisonError::into_inner).acknowledged.insert(text, key);
                        *seen.again.lock().unwrap_or_else(PoisonError::into_inner) += usize::from(tries > 1);
                    }
                    break;
                }
                // Refused for good; nothing was promised.
                Ok((400..500, _)) => break,
                Ok(_) | Err(_) => tokio::time::sleep(AGAIN).await,
            }
        }
    }
}

/// Waits until no answer is left that an update will use; the last update.
async fn learnt_everything(data: &Path, run: &RunId) -> anyhow::Result<u64> {
    let begun = Instant::now();
    let look = async |store: Store| -> anyhow::Result<Option<u64>> {
        let left = store.unused_answers(run, 1).await?;
        Ok(if left.is_empty() { store.last_update(run).await? } else { None })
    };
    loop {
        if let Some(update) = Store::reading(&data.join("iliad.sqlite"), look).await?? {
            return Ok(update);
        }
        anyhow::ensure!(
            begun.elapsed() < PATIENCE,
            "the answers were not learnt from in {} seconds",
            PATIENCE.as_secs()
        );
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Ends a server in an orderly way.
async fn end(mut server: Server) -> anyhow::Result<()> {
    let asked = Command::new("kill").args(["-TERM", &server.0.id().to_string()]).status()?;
    anyhow::ensure!(asked.success(), "the server cannot be asked to end");
    let begun = Instant::now();
    while !server.ended()? {
        anyhow::ensure!(begun.elapsed() < PATIENCE, "the server did not end");
        tokio::time::sleep(AGAIN).await;
    }
    Ok(())
}

/// Fills in what the files say.
async fn close(books: &mut Books, data: &Path, run: &RunId) -> anyhow::Result<()> {
    let read = async |store: Store| -> anyhow::Result<Vec<(i64, String, Option<u64>)>> {
        store.check().await?;
        let (mut rows, mut last) = (Vec::new(), AnswerId::default());
        loop {
            let page = store.export_page(Some(run), last, 1000).await?;
            let Some(end) = page.last() else { return Ok(rows) };
            last = end.answer;
            let human = page.into_iter().filter(|row| row.source == Source::Human);
            rows.extend(human.map(|row| (row.answer.0, row.text, row.used_in_update)));
        }
    };
    books.stored = Store::using(&data.join("iliad.sqlite"), read).await??;
    let folder = crate::app::run_folder(data, run);
    let log = std::fs::read_to_string(folder.join(description_log::FILE_NAME))?;
    for line in log.lines() {
        let episode: Value = serde_json::from_str(line).context("the log of descriptions is damaged")?;
        let words = episode["example"]["words"].as_str().or(episode["words"].as_str()).unwrap_or_default();
        // Those of the simulated teacher are not people's.
        if words.starts_with("person ") {
            books.learnt.push(words.to_owned());
        }
    }
    let (found, complaints) = checkpoint::newest(&folder)?;
    anyhow::ensure!(complaints.is_empty(), "{}", complaints.join("; "));
    books.counted = found.context("the run has no checkpoint")?.0.counters.human;
    Ok(())
}
