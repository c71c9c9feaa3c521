//! Letting the student walk: the model scores the moves, the environment says what is seen next.

use crate::nn::layers::Grad;
use crate::nn::sample::{draws, pick};
use crate::rng::Stream;
use crate::task::nav::model::student::{Lesson, NavStudent};
use crate::task::nav::model::views::ViewTable;
use crate::task::nav::model::walk::{Observation, Scene, Walk};
use candle_core::{DType, Result, Tensor, bail};

/// A batch of walkers somewhere.
pub trait Environment {
    /// The observation of each walker now. Those that stopped are asked as well; what they see is not looked at.
    fn observe(&mut self) -> Result<Vec<Observation>>;

    /// Each walker acts: 0 stops, i makes move i − 1 of what it sees. Those that stopped get 0 from then on.
    fn act(&mut self, actions: &[u32]) -> Result<()>;

    /// Where each walker stands among the poses of the views' ways, if the views have them: a GPU then leads them by
    /// itself, and they are only told what they did.
    fn poses(&self) -> Option<Vec<u32>> {
        None
    }
}

/// How to walk.
#[derive(Clone, Copy, Debug)]
pub struct RollOut {
    /// Decisions at most (paper: 10). The last one is to stop, whatever the policy says.
    pub horizon: usize,
    /// Sampled actions; else the likeliest.
    pub sample: bool,
    /// Whether the logits are kept with their history, so that one can learn from the walk without reading it again.
    pub grad: Grad,
}

/// The result of a roll-out.
#[derive(Debug)]
pub struct Rolled {
    /// The walks; each ends with action 0.
    pub walks: Vec<Walk>,
    /// Whether the policy stopped by itself; else the horizon did.
    pub stopped: Vec<bool>,
    /// Logits `[B, A]` of each step (A differs), with their history if it was asked for.
    pub logits: Vec<Tensor>,
}

impl Rolled {
    /// The loss of a lesson whose targets are for the steps of these walks.
    ///
    /// # Errors
    /// When the lesson has other sizes.
    pub fn loss(&self, lesson: &Lesson) -> Result<Tensor> {
        let n = self.walks.len();
        if lesson.targets.len() != n * self.logits.len() {
            bail!("a lesson of {} targets for {} steps of {n} walks", lesson.targets.len(), self.logits.len())
        }
        let mut total: Option<Tensor> = None;
        for (t, logits) in self.logits.iter().enumerate() {
            let own = |all: &[u32]| all[t * n..(t + 1) * n].to_vec();
            let weights = |all: &[f32]| if all.is_empty() { Vec::new() } else { all[t * n..(t + 1) * n].to_vec() };
            let step = Lesson {
                targets: own(&lesson.targets),
                weights: weights(&lesson.weights),
                entropy: weights(&lesson.entropy),
            };
            let loss = step.loss(logits)?;
            total = Some(match total {
                Some(total) => (total + loss)?,
                None => loss,
            });
        }
        match total {
            Some(total) => Ok(total),
            None => bail!("a roll-out without a step"),
        }
    }
}

impl NavStudent {
    /// Leads the environment's walkers, one request (as read) for each; where they have been is for the environment to say.
    pub fn lead(
        &self,
        requests: &[Vec<u32>],
        environment: &mut dyn Environment,
        views: &ViewTable,
        (horizon, sample): (usize, bool),
        stream: &mut Stream,
    ) -> Result<()> {
        self.lead_by(requests, environment, views, horizon, &draws(horizon * requests.len(), |_| !sample, stream))
    }

    /// As [`NavStudent::lead`], by numbers that were drawn before ([`draws`]): one for each decision of each walker, `[horizon, N]`.
    pub fn lead_by(
        &self,
        requests: &[Vec<u32>],
        environment: &mut dyn Environment,
        views: &ViewTable,
        horizon: usize,
        draws: &[f32],
    ) -> Result<()> {
        if draws.len() != horizon * requests.len() {
            bail!("{} numbers for {horizon} decisions of {} walkers", draws.len(), requests.len())
        }
        if self.params.device().is_cuda()
            && let Some(poses) = environment.poses()
            && let Some(steps) = self.lead_on_gpu(requests, &poses, views, horizon, draws)?
        {
            return steps.iter().try_for_each(|actions| environment.act(actions));
        }
        self.rolled(requests, environment, views, (horizon, Grad::Off), draws).map(drop)
    }

    /// Walks from where the environment's walkers are, one request (as read) for each.
    pub fn roll_out(
        &self,
        requests: &[Vec<u32>],
        environment: &mut dyn Environment,
        views: &ViewTable,
        how: RollOut,
        stream: &mut Stream,
    ) -> Result<Rolled> {
        let draws = draws(how.horizon * requests.len(), |_| !how.sample, stream);
        self.rolled(requests, environment, views, (how.horizon, how.grad), &draws)
    }

    fn rolled(
        &self,
        requests: &[Vec<u32>],
        environment: &mut dyn Environment,
        views: &ViewTable,
        (horizon, grad): (usize, Grad),
        draws: &[f32],
    ) -> Result<Rolled> {
        let (n, device) = (requests.len(), self.params.device());
        let draws = Tensor::from_slice(draws, (horizon, n), device)?;
        let mut run = self.begin(requests, 1, horizon, 4, grad)?;
        let mut rolled = Rolled { walks: vec![Walk::default(); n], stopped: vec![false; n], logits: Vec::new() };
        let mut going = vec![true; n];
        let mut chosen = Tensor::zeros((n, self.sizes.features + 4), DType::F32, device)?;
        for t in 0..horizon {
            let observations = environment.observe()?;
            if observations.len() != n {
                bail!("{} observations of {n} walkers", observations.len())
            }
            let seen: Vec<_> = observations.iter().zip(&going).map(|(o, going)| going.then_some(o)).collect();
            let scene = Scene::new(&seen, views)?;
            let output = run.step(&run.given_next(&chosen)?, views, &scene.places)?;
            let logits = run.scores(&output, &scene, views)?;
            let last = t + 1 == horizon;
            let actions =
                if last { Tensor::zeros(n, DType::U32, device)? } else { pick(&logits.detach(), &draws.get(t)?)? };
            let made = actions.to_vec1::<u32>()?;
            chosen = scene.chosen(&actions, views)?;
            rolled.logits.push(logits);
            for (b, observation) in observations.into_iter().enumerate().filter(|(b, _)| going[*b]) {
                rolled.walks[b].seen.push(observation);
                rolled.walks[b].actions.push(made[b]);
            }
            environment.act(&made)?;
            for b in 0..n {
                if going[b] && made[b] == 0 {
                    going[b] = false;
                    rolled.stopped[b] = !last;
                }
            }
            if !going.contains(&true) {
                break;
            }
        }
        Ok(rolled)
    }
}
