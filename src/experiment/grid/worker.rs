//! A run of a grid in a process of its own. What it tells comes as lines of JSON on its standard output; it saves and ends when its
//! standard input ends, so also when the process that started it is gone.

use super::{Cell, News};
use crate::run::Event;
use crate::trainer::FinalReport;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// News of the one run of a worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "news", content = "of", rename_all = "lowercase")]
enum Line {
    Event(Event),
    Complete(FinalReport),
    Stopped,
    Failed(String),
}

impl Line {
    /// The line for some news; what nobody beside the run listens to has none.
    fn of(news: &News<'_>) -> Option<Line> {
        Some(match news {
            News::Already | News::Begins => return None,
            News::Event(event @ (Event::Status(_) | Event::Log { .. } | Event::Evaluating { .. })) => {
                Line::Event((*event).clone())
            }
            News::Event(_) => return None,
            News::Complete(report) => Line::Complete((*report).clone()),
            News::Stopped => Line::Stopped,
            News::Failed(error) => Line::Failed(format!("{error:#}")),
        })
    }
}

/// Tells the news of this process's run to the process that started it.
pub fn tell(news: &News<'_>) {
    if let Some(line) = Line::of(news)
        && let Ok(mut text) = serde_json::to_vec(&line)
    {
        text.push(b'\n');
        // Whoever listened may be gone; the run then ends because its input has ended.
        let mut out = crate::output::Stdout::lock();
        let _ = out.write_all(&text).and_then(|()| out.flush());
    }
}

/// Sets `stop` once the standard input has ended.
pub fn stop_with_input(stop: &'static AtomicBool) {
    std::thread::spawn(move || {
        let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
        stop.store(true, Ordering::Relaxed);
    });
}

/// Carries a run out in a process of its own; `None` when it was stopped before its end.
pub(super) fn carry_out(
    cell: &Cell,
    mut command: Command,
    over: &(dyn Fn() -> bool + Sync),
    listener: &(dyn Fn(&Cell, News<'_>) + Send + Sync),
) -> anyhow::Result<Option<FinalReport>> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().context("a process for the run cannot be started")?;
    let mut input = child.stdin.take();
    let output = child.stdout.take().context("the process of the run has no output")?;
    let told = std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut last = None;
            for text in BufReader::new(output).lines() {
                match serde_json::from_str(&text?) {
                    Ok(Line::Event(event)) => listener(cell, News::Event(&event)),
                    Ok(line) => last = Some(line),
                    // Something that a library printed.
                    Err(_) => {}
                }
            }
            anyhow::Ok(last)
        });
        while !reader.is_finished() {
            if over() {
                input = None;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        reader.join().map_err(|_| anyhow::anyhow!("the reader of the run's process broke"))?
    });
    drop(input);
    let status = child.wait()?;
    match told? {
        Some(Line::Complete(report)) => Ok(Some(report)),
        Some(Line::Stopped) => Ok(None),
        Some(Line::Failed(error)) => Err(anyhow::anyhow!(error)),
        Some(Line::Event(_)) | None => Err(anyhow::anyhow!("its process ended with {status}")),
    }
}
