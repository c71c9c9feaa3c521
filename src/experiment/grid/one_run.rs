//! A run of a grid in a thread of this process.

use super::{Cell, Finished, Listener, News, Plan};
use crate::registry::AnyFamily;
use crate::run::Command;
use crate::trainer::{FinalReport, Launch, checkpoint};
use anyhow::Context;
use std::sync::Arc;
use std::time::Duration;

/// Carries one run out; `None` when it was stopped before its end.
pub(super) fn carry_out(
    cell: &Cell,
    plan: &Plan,
    over: &(dyn Fn() -> bool + Sync),
    listener: &Arc<Listener>,
) -> anyhow::Result<Option<FinalReport>> {
    let trainer: &'static dyn AnyFamily =
        plan.registry.family(&cell.config.family).context("the task family is gone")?;
    trainer.check(&cell.config)?;
    // A handle each: streams and memory pools of one run do not wait for another's.
    let device = crate::nn::device::open(&plan.device)?;
    let label = crate::nn::device::describe(&device);
    let (told, teller) = (listener.clone(), cell.clone());
    let launch = Launch {
        id: cell.name.replace(' ', "-").into(),
        config: cell.config.clone(),
        folder: cell.folder.clone(),
        device,
        store: None,
        teacher: None,
        listener: Some(Box::new(move |event| told(&teller, News::Event(event)))),
    };
    let (handle, thread) = trainer.spawn(launch)?;
    let mut asked = false;
    while !thread.is_finished() {
        if !asked && over() {
            asked = true;
            // A run that has just ended needs no command.
            let _ = handle.commands.send(if plan.conclude { Command::Conclude } else { Command::Shutdown });
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let report = match thread.join().map_err(|_| anyhow::anyhow!("the trainer's thread broke"))? {
        Ok(report) => report,
        // Stopped while it warmed up: it begins again.
        Err(_) if asked && checkpoint::list(&cell.folder).is_empty() => return Ok(None),
        Err(error) => return Err(error),
    };
    let complete = report.complete;
    if complete || plan.conclude {
        Finished { config: cell.config.clone(), report: report.clone(), device: label }.write(&cell.folder)?;
    }
    Ok(complete.then_some(report))
}
