//! The start of a run: everything is loaded from its newest checkpoint or made anew, and the loop is started.

use super::checkpoint::{self, Header};
use super::clock::Clock;
use super::commands::CommandQueue;
use super::curve::{Curve, OpenedCurve};
use super::description_log::DescriptionLog;
use super::event_sink::EventSink;
use super::gradient_steps::UpdateInterrupted;
use super::loading::Loading;
use super::meters::Speed;
use super::practice::{self, PracticeProgress};
use super::progress::Progress;
use super::query_selector::QuerySelector;
use super::replay_buffer::ReplayBuffer;
use super::store_writer::StoreWriter;
use super::supply::Supply;
use super::training_loop::{RunContext, Trainer};
use super::transient::Transient;
use super::validation::ValidationTracker;
use super::{FinalReport, Launch, rebuild};
use crate::algorithm::{self, Algorithm, Learning};
use crate::config::run::{AlgorithmName, Feedback, TeacherMode, not_by_people};
use crate::family::Family;
use crate::ids::RunId;
use crate::output::lock::FolderLock;
use crate::protocol::{DescribedEpisode, evaluation};
use crate::run::{Command, RunState};
use crate::store::Store;
use anyhow::Context;

/// Trains a run from its newest checkpoint, or from the beginning, until it ends. `ending` is set to the command that ends
/// the run once it is being carried out.
pub(super) fn train<K: Family>(
    family: &'static K,
    launch: Launch,
    mut commands: CommandQueue<'_>,
    events: &mut EventSink,
    ending: &mut Option<Command>,
) -> anyhow::Result<FinalReport> {
    let folder = launch.folder;
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let _lock = lock(&folder)?;
    checkpoint::remove_partial_files(&folder).with_context(|| format!("cannot tidy up in {}", folder.display()))?;
    let (found, complaints) = checkpoint::newest(&folder)?;
    complaints.into_iter().for_each(|complaint| events.log(complaint));
    // How long a run goes on is the one setting that may be changed between two starts.
    let episodes = launch.config.schedule.episodes;
    let mut config = found.as_ref().map_or(launch.config, |(header, _)| header.config.clone());
    config.schedule.episodes = episodes;
    if let Some((header, _)) = &found {
        show_progress(header, events);
    }
    let device = crate::nn::device::label(&launch.device);
    let mut loading = Loading::begin(&folder, &config, &device, found.is_some());
    loading.step("Loading the task", events);
    let world = family.world(&config, &loading.telling(events))?;
    loading.step("Loading the agent", events);
    let name = config.algorithm.name;
    let described = name.feedback() == Feedback::Descriptions;
    let teacher = if described { family.teacher(&config, &world, &launch.device)? } else { None };
    let (agent, header, tensors) = match found {
        Some((header, tensors)) => {
            (family.agent_from(&config, &world, &header.blueprint, &launch.device)?, Some(header), Some(tensors))
        }
        None => {
            let mut new = family.agent(&config, &world, &launch.device)?;
            if !new.pretrained {
                if config.algorithm.pretrain_updates > 0 {
                    loading.step("Warming up: practising the form of executions, without any description", events);
                }
                let completed = algorithm::pretrain(&*world, &mut *new.agent, &config, |share| {
                    loading.tell(share, events);
                    !commands.end_requested()
                })?;
                if !completed {
                    return ended_in_pretraining(&launch.id, name, launch.store.as_ref(), &mut commands, events);
                }
            }
            if config.algorithm.prior_examples > 0 {
                loading.step("Warming up: reading requests of the training tasks", events);
            }
            let taught = algorithm::teach_prior(&*world, &mut *new.agent, &config, |share| {
                loading.tell(share, events);
                !commands.end_requested()
            })?;
            if !taught {
                return ended_in_pretraining(&launch.id, name, launch.store.as_ref(), &mut commands, events);
            }
            (new.agent, None, None)
        }
    };
    let mut algorithm = algorithm::build(world.clone(), agent, &config)?;
    if let (Some(header), Some(tensors)) = (&header, tensors) {
        let state = header.algorithm_state();
        algorithm.restore(&tensors, &state).context("the checkpoint does not fit the run")?;
    }
    loading.finish();
    let counters = header.as_ref().map(|h| h.counters).unwrap_or_default();
    let mut mode = launch.teacher.or(header.as_ref().map(|h| h.teacher)).unwrap_or(config.teacher.mode);
    let store = launch.store.map(|(store, runtime)| StoreWriter::new(store, runtime, launch.id.clone()));
    let run = RunContext { family, id: launch.id, config, folder, world };
    let (description_log, replay_buffer) = open_descriptions(&run, &counters, &mut *algorithm, store.as_ref(), events)?;
    let curve = open_curve(&run, counters.update, store.as_ref(), events)?;
    if !name.taught_by_people() && mode != TeacherMode::Simulated {
        anyhow::bail!("{}", not_by_people(name))
    }
    if described && teacher.is_none() && !name.taught_by_people() {
        anyhow::bail!("{} needs the simulated teacher, and teacher.models has none", name.typed())
    }
    if described && teacher.is_none() && mode != TeacherMode::Human {
        events.log("There is no simulated teacher for this run, so people teach.");
        mode = TeacherMode::Human;
    }
    if store.is_none() && mode != TeacherMode::Simulated {
        anyhow::bail!("people can only teach a run that the server carries on; start it with `iliad serve`")
    }
    let (meters, kind_counts, told) =
        header.as_ref().map(|h| (h.meters.clone(), h.kind_counts.clone(), h.told.clone())).unwrap_or_default();
    let clock = Clock::starting_at(header.as_ref().map_or(0.0, |h| h.seconds));
    let mut trainer = Trainer {
        algorithm,
        teacher,
        mode,
        progress: Progress { counters, meters, speed: Speed::default(), clock, waiting: 0 },
        description_log,
        replay_buffer,
        store,
        selector: QuerySelector::new(&run.config, kind_counts, told),
        supply: Supply::starting_at(counters.next.unwrap_or(counters.episodes).max(counters.episodes)),
        commands,
        validation: header.as_ref().map_or_else(
            || ValidationTracker::new(&family.levels()),
            |header| ValidationTracker::of(header, &family.levels()),
        ),
        events,
        curve,
        practice: PracticeProgress::default(),
        recovering: false,
        tries: 0,
        run,
    };
    if header.as_ref().is_some_and(|h| h.counters.next.is_none()) {
        trainer.recount_episodes()?;
    }
    if trainer.validation.due {
        trainer.events.publish_state(RunState::Starting { what: TESTING.into(), done: None, seconds_left: None });
        trainer.validate()?;
    }
    if header.is_none() {
        trainer.checkpoint()?;
    }
    match trainer.train() {
        Ok(end) => {
            *ending = Some(end.command());
            trainer.finish(end)
        }
        Err(error) if error.is::<UpdateInterrupted>() => trainer.interrupt(),
        Err(error) => Err(error),
    }
}

/// The step that follows loading: what it still takes is told by its own events.
const TESTING: &str = "Testing the agent";

/// Loading takes a while, and pages show meanwhile what the checkpoint says.
fn show_progress(header: &Header, events: &mut EventSink) {
    let (c, best) = (header.counters, header.best.map(|(rate, _)| rate));
    events.change_status(|s| {
        (s.update, s.episodes, s.seconds) = (c.update, c.episodes, header.seconds);
        (s.descriptions_human, s.descriptions_simulated) = (c.human, c.simulated);
        (s.validation, s.best_validation) = (header.validation, best);
    });
}

/// The described episodes of a run: the log of all, and the buffer of those that are replayed.
type Descriptions<W> = (DescriptionLog<W>, ReplayBuffer<W>);

/// Opens the description log, which is rebuilt from the store where it was lost, and gives its newest episodes to the
/// algorithm and the replay buffer.
fn open_descriptions<K: Family>(
    run: &RunContext<K>,
    counters: &checkpoint::Counters,
    algorithm: &mut dyn Algorithm<K::World>,
    store: Option<&StoreWriter>,
    events: &EventSink,
) -> anyhow::Result<Descriptions<K::World>> {
    let (config, lines) = (&run.config, counters.recorded);
    let a = &config.algorithm;
    let (capacity, collected) = match algorithm.learning() {
        Learning::Descriptions(_) | Learning::Demonstrations(_) => (practice::buffer_capacity(a), 0),
        Learning::Epochs(algorithm) => (0, algorithm.collected()),
        Learning::Episodes(_) | Learning::Ratings(_) => (0, 0),
    };
    let keep = capacity.max(collected);
    let (log, newest) = match (DescriptionLog::open(&run.folder, lines, keep), store) {
        (Ok(opened), _) => opened,
        (Err(error), Some(store)) if Transient::of(&error).is_none() => {
            let place = (run.folder.as_path(), counters.update, lines);
            let source = (store.store(), &run.id);
            let rebuilt = store.wait(rebuild::description_log(run.family, &*run.world, config, source, place));
            rebuilt.with_context(|| format!("{error:#}; it cannot be made again from the database"))?;
            events.log(format!(
                "The record of descriptions was made again from the database, all {lines} of them: {error:#}"
            ));
            DescriptionLog::open(&run.folder, lines, keep)?
        }
        (Err(error), _) => return Err(error),
    };
    if let Learning::Epochs(algorithm) = algorithm.learning() {
        let described: Vec<DescribedEpisode<K::World>> =
            newest.iter().skip(newest.len().saturating_sub(collected)).cloned().collect();
        algorithm.restore_collected(described);
    }
    Ok((log, ReplayBuffer::new(capacity, newest, lines)))
}

/// Opens the curve, which is rebuilt from the store where points were lost.
fn open_curve<K: Family>(
    run: &RunContext<K>,
    update: u64,
    store: Option<&StoreWriter>,
    events: &EventSink,
) -> anyhow::Result<Curve> {
    let OpenedCurve { curve, whole } = Curve::open(&run.folder, update)?;
    match store {
        Some(store) if !whole => {
            let count = store.wait(rebuild::curve((store.store(), &run.id), &run.folder, update))?;
            events.log(format!(
                "The file of the curve was lost or damaged; its {count} points were taken from the database."
            ));
            Ok(Curve::open(&run.folder, update)?.curve)
        }
        _ => Ok(curve),
    }
}

/// Locks the run's folder, so that no second trainer writes into it.
fn lock(folder: &std::path::Path) -> anyhow::Result<FolderLock> {
    let path = folder.join("run.lock");
    FolderLock::acquire(&path)
        .with_context(|| format!("cannot write {}", path.display()))?
        .with_context(|| format!("another program is training the run in {}", folder.display()))
}

/// Ends a run that was told to end while it was pretrained: nothing has been learnt that could be saved.
fn ended_in_pretraining(
    id: &RunId,
    algorithm: AlgorithmName,
    store: Option<&(Store, tokio::runtime::Handle)>,
    commands: &mut CommandQueue<'_>,
    events: &mut EventSink,
) -> anyhow::Result<FinalReport> {
    if let Some((store, runtime)) = store
        && commands.stop_requested()
    {
        runtime.block_on(store.set_active(id, false))?;
    } else if store.is_none() {
        anyhow::bail!("stopped while warming up; nothing was learnt yet")
    }
    events.publish_state(RunState::Stopped);
    let none = evaluation::rate(0, 0);
    Ok(FinalReport {
        run: id.clone(),
        algorithm,
        feedback: algorithm.feedback(),
        validation: none,
        test: none,
        validation_smoothed: None,
        reached: Vec::new(),
        best_update: 0,
        updates: 0,
        episodes: 0,
        descriptions: 0,
        seconds: 0.0,
        complete: false,
    })
}
