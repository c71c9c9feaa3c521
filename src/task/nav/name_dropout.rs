//! Dropout of names: in a step of learning some names of things are hidden from all views of all houses at once, as environment dropout
//! does with features of photographs (Tan, Yu and Bansal, 2019). It is as if the step were in other houses, so that the agent relies less on the
//! things of those that it knows.

use super::agent::NavAgent;
use crate::rng::Stream;
use crate::task::nav::model::views::ViewTable;
use candle_core::Result;
use rand::RngExt;

impl NavAgent {
    /// The views of a step that varies what it learns from.
    pub(super) fn varied_views(&self, stream: &mut Stream) -> Result<ViewTable> {
        let views = &self.around.views;
        match factors(self.blueprint.name_dropout, self.around.named_features(), views.features(), stream) {
            Some(factors) => views.with_factors(&factors),
            None => Ok(views.clone()),
        }
    }
}

/// The factor of each of `features`, of which the first `named` are names: 0 with probability `dropout`, else 1/(1 − `dropout`), so
/// that they are as large as before on average. Without dropout nothing is drawn.
fn factors(dropout: f64, named: usize, features: usize, stream: &mut Stream) -> Option<Vec<f32>> {
    (dropout > 0.0).then(|| {
        let kept = (1.0 / (1.0 - dropout)) as f32;
        let name = |_| if stream.random_bool(dropout) { 0.0 } else { kept };
        let mut all: Vec<f32> = (0..named).map(name).collect();
        all.resize(features, 1.0);
        all
    })
}

#[cfg(test)]
mod tests {
    use super::super::agent::Blueprint;
    use super::super::environment::Around;
    use super::super::world::NavWorld;
    use super::super::{Start, Walk, setup};
    use super::*;
    use crate::nn::adam::Adam;
    use crate::protocol::{Agent, Augmentation, Example, Lesson, Split, World};
    use crate::rng::stream;
    use crate::task::nav::model::names::{CURRENT_VIEW, KEY, PREDICTOR_ACTION, STATE_INPUT, TEXT_INPUT, part};
    use candle_core::Device;
    use std::sync::Arc;

    const AUGMENTATION: Augmentation = Augmentation { word_dropout: 0.0, seed: 1, purpose: "test", counter: 3 };

    struct School {
        world: Arc<NavWorld>,
        starts: Vec<(Start, String)>,
        gold: Vec<Walk>,
        examples: Vec<Example<NavWorld>>,
    }

    fn school() -> School {
        let config = crate::testing::configure("nav/tiny", 1, &[]).unwrap();
        let world = setup::world(&config, &|_, _| {}).unwrap();
        let tasks: Vec<_> = (0..12).map(|index| world.task(Split::Train, index)).collect();
        let gold: Vec<_> = (0..12).map(|index| world.gold(Split::Train, index)).collect();
        let starts: Vec<_> = tasks.into_iter().map(|task| (task.start, task.request)).collect();
        let example = |((start, words), walk): (&(Start, String), &Walk)| Example {
            start: start.clone(),
            words: words.clone(),
            execution: walk.clone(),
        };
        let examples = starts.iter().zip(&gold).map(example).collect();
        School { world, starts, gold, examples }
    }

    fn agent(school: &School, dropout: f64) -> NavAgent {
        let set = [format!("model.name_dropout={dropout}")];
        let config = crate::testing::configure("nav/tiny", 1, &set).unwrap();
        let model = serde_json::from_value(config.model.clone()).unwrap();
        let around = Around::of(&school.world, "semantic", &Device::Cpu).unwrap();
        let plan = Blueprint::plan(&school.world, around.views.features(), &model).unwrap();
        let mut agent = NavAgent::new(plan, around, &mut stream(1, "init", 0)).unwrap();
        agent.begin_learning(1e-2).unwrap();
        agent
    }

    fn weights(agent: &NavAgent, name: &str) -> Vec<Vec<f32>> {
        agent.student.params.get(name).unwrap().to_vec2().unwrap()
    }

    fn bits(agent: &NavAgent) -> Vec<(String, Vec<u32>)> {
        let tensors = agent.params().snapshot().unwrap();
        let bits = |t: candle_core::Tensor| t.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        tensors.into_iter().map(|(name, t)| (name, bits(t).into_iter().map(f32::to_bits).collect())).collect()
    }

    /// Both lessons that are varied, one after the other.
    fn learn(agent: &mut NavAgent, school: &School) {
        let tasks: Vec<_> = school.starts.iter().map(|(start, request)| (start, request.as_str())).collect();
        agent.step(&Lesson::Varied(&[(&school.examples, 1.0)], AUGMENTATION)).unwrap();
        let (rolled, shown) = (&school.gold, &school.gold);
        agent.step(&Lesson::Imitation { tasks: &tasks, rolled, shown, augmentation: AUGMENTATION }).unwrap();
    }

    #[test]
    fn the_share_of_hidden_names_is_as_asked_and_the_rest_is_scaled() {
        let mut draws = stream(2, "factors", 0);
        let all = factors(0.2, 10_000, 10_012, &mut draws).unwrap();
        let hidden = all.iter().filter(|x| **x == 0.0).count();
        assert!((1800..2200).contains(&hidden), "{hidden}");
        assert!(all[..10_000].iter().all(|x| *x == 0.0 || *x == 1.25) && all[10_000..] == [1.0; 12]);
        let (mut used, mut unused) = (stream(2, "factors", 1), stream(2, "factors", 1));
        assert_eq!(factors(0.0, 300, 312, &mut used), None);
        assert_eq!(used.random::<u64>(), unused.random::<u64>(), "nothing is drawn");
    }

    #[test]
    fn without_it_steps_are_those_of_the_table_bit_for_bit() {
        let school = school();
        let (mut one, other) = (agent(&school, 0.0), agent(&school, 0.0));
        let mut adam = Adam::new(&other.student.params, 1e-2).unwrap();
        learn(&mut one, &school);
        // The student makes these steps on the table itself, too.
        let tasks: Vec<_> = school.starts.iter().map(|(start, request)| (start, request.as_str())).collect();
        let groups = [(school.examples.as_slice(), 1.0)];
        let (rolled, shown) = (&school.gold, &school.gold);
        for lesson in [
            Lesson::Likelihood(&groups),
            Lesson::Imitation { tasks: &tasks, rolled, shown, augmentation: AUGMENTATION },
        ] {
            let asked = other.lesson(&lesson).unwrap();
            assert!(asked.views.factors().is_none());
            other.student.step(&asked.batch, &asked.lesson, &other.around.views, &mut adam).unwrap();
        }
        assert_eq!(bits(&one), bits(&other));
        let mut varied = agent(&school, 0.3);
        learn(&mut varied, &school);
        assert_ne!(bits(&one), bits(&varied));
    }

    #[test]
    fn weights_that_read_hidden_names_alone_stay_as_they_are() {
        let school = school();
        let mut agent = agent(&school, 0.5);
        let (features, direction) = (agent.around.views.features(), agent.blueprint.sizes.direction);
        let hidden = agent.lesson(&Lesson::Varied(&[(&school.examples, 1.0)], AUGMENTATION)).unwrap().views;
        let hidden = hidden.factors().unwrap().to_vec1::<f32>().unwrap();
        // The first of the columns that read the views, in each of the weights that do.
        let reading = [
            (part(CURRENT_VIEW, KEY) + ".weight", 0),
            (format!("{TEXT_INPUT}.weight"), 0),
            (format!("{TEXT_INPUT}.weight"), features + direction),
            (format!("{STATE_INPUT}.weight"), agent.blueprint.sizes.hidden),
            (format!("{PREDICTOR_ACTION}.weight"), 0),
        ];
        let before = reading.clone().map(|(name, _)| weights(&agent, &name));
        // Both lessons hide the same: the draws of one step.
        learn(&mut agent, &school);
        for ((name, first), before) in reading.iter().zip(&before) {
            let after = weights(&agent, name);
            let changed = |j: usize| before.iter().zip(&after).any(|(b, a)| b[first + j] != a[first + j]);
            let of = |wanted: &dyn Fn(f32) -> bool| {
                (0..features).filter(|j| wanted(hidden[*j])).map(changed).collect::<Vec<_>>()
            };
            assert!(of(&|x| x == 0.0).iter().all(|changed| !changed), "{name} at {first}");
            assert!(of(&|x| x != 0.0).iter().any(|changed| *changed), "{name} at {first}");
        }
    }

    #[test]
    fn a_loss_without_augmentation_hides_nothing_and_one_with_it_always_the_same() {
        let school = school();
        let (plain, varied) = (agent(&school, 0.0), agent(&school, 0.5));
        let groups = [(school.examples.as_slice(), 1.0)];
        let loss = |agent: &NavAgent, lesson| agent.loss(&lesson).unwrap().to_scalar::<f32>().unwrap();
        assert_eq!(loss(&plain, Lesson::Likelihood(&groups)), loss(&varied, Lesson::Likelihood(&groups)));
        let at = |counter| Lesson::Varied(&groups, Augmentation { counter, ..AUGMENTATION });
        assert_eq!(loss(&varied, at(3)), loss(&varied, at(3)));
        assert_ne!(loss(&varied, at(3)), loss(&varied, at(4)));
        assert_ne!(loss(&varied, at(3)), loss(&plain, at(3)));
    }
}
