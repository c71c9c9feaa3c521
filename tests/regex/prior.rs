//! The prior of word edits inside an agent: it decides with the network's votes, and an older checkpoint keeps its table.

use candle_core::Device;
use iliad::family::Family;
use iliad::protocol::{Agent, Decoding, Example, Split, World};
use iliad::registry::Registry;
use iliad::rng::stream;
use iliad::task::regex::family::RegexFamily;
use iliad::task::regex::world::RegexWorld;
use iliad::task::regex::{Edit, Words};
use std::sync::Arc;

/// An agent of the tiny world with a prior and an untrained network.
fn agent(more: &[&str]) -> (Arc<RegexWorld>, Box<dyn Agent<RegexWorld>>) {
    let mut set = vec!["teacher.models=none".to_owned(), "model.pretrained=none".into(), "model.prior=ngrams".into()];
    set.extend(more.iter().map(|one| (*one).to_owned()));
    let config = Registry::builtin().configure("tiny", 1, &set).unwrap();
    let world = RegexFamily.world(&config, &|_, _| {}).unwrap();
    let agent = RegexFamily.agent(&config, &world, &Device::Cpu).unwrap().agent;
    (world, agent)
}

/// Teaches the prior the requests of some training tasks.
fn teach(world: &RegexWorld, agent: &mut dyn Agent<RegexWorld>) {
    let example = |index| {
        let task = world.task(Split::Train, index);
        Example { start: task.start, words: task.request, execution: world.gold(Split::Train, index) }
    };
    let examples: Vec<Example<RegexWorld>> = (0..100).map(example).collect();
    for _ in 0..5 {
        agent.prior().unwrap().learn(&examples).unwrap();
    }
}

fn act(world: &RegexWorld, agent: &dyn Agent<RegexWorld>) -> Vec<Edit> {
    let tasks: Vec<_> = (0..60).map(|index| world.task(Split::Validation, index)).collect();
    let asked: Vec<(&Words, &str)> = tasks.iter().map(|task| (&task.start, task.request.as_str())).collect();
    agent.act(&asked, Decoding::Greedy, &mut stream(1, "prior test", 0)).unwrap()
}

fn right(world: &RegexWorld, edits: &[Edit]) -> usize {
    let gold = |index| world.gold(Split::Validation, index).outputs;
    edits.iter().enumerate().filter(|(index, edit)| edit.outputs.is_some() && edit.outputs == gold(*index)).count()
}

/// The votes of an untrained network have nothing in common, so they do not outweigh a prior that was taught.
#[test]
fn the_prior_and_the_votes_decide_together() {
    let (world, mut agent) = agent(&["model.votes=2", "model.network_weight=0.5"]);
    assert_eq!(right(&world, &act(&world, &*agent)), 0, "an untaught prior decides nothing");
    teach(&world, &mut *agent);
    let edits = act(&world, &*agent);
    assert_eq!(edits, act(&world, &*agent), "a request is carried out alike each time");
    let right = right(&world, &edits);
    assert!(right >= 30, "{right} of 60");
}

#[test]
fn an_agent_takes_over_the_table_of_a_checkpoint_but_no_other_edits() {
    let (world, mut taught) = agent(&[]);
    let mut other = taught.blueprint();
    other["prior"]["large"] = true.into();
    taught.restore_blueprint(&other).unwrap();
    assert_eq!(taught.blueprint()["prior"], other["prior"]);
    teach(&world, &mut *taught);
    let edits = act(&world, &*taught);
    assert!(right(&world, &edits) > 0);
    // Resumed: a new agent takes over the blueprint first, and then the weights.
    let weights = taught.params().snapshot().unwrap();
    let (_, mut resumed) = agent(&[]);
    resumed.restore_blueprint(&other).unwrap();
    resumed.params().load(&weights).unwrap();
    assert_eq!(act(&world, &*resumed), edits);

    other["prior"]["patterns"].as_array_mut().unwrap().pop();
    assert!(resumed.restore_blueprint(&other).unwrap_err().contains("another prior"));
}
