use super::bandit::{Fault, Sizes, draw};
use super::*;
use crate::rng;
use proptest::prelude::*;

/// Random worlds in which every start has σ_min > 0 (by far most have).
fn worlds() -> impl Strategy<Value = Bandit> {
    (1..6usize, 0..4usize, 1..4usize, any::<u64>())
        .prop_map(|(actions, more, starts, seed)| {
            Bandit::random(Sizes { actions, descriptions: actions + more, starts }, seed)
        })
        .prop_filter("σ_min > 0", |b| b.descriptions.iter().all(|p| singular::smallest(p) > 0.0))
}

fn facts(bandit: &Bandit) -> Vec<StartFacts> {
    (0..bandit.starts.len()).map(|s| StartFacts::new(bandit, s)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The main theorem, its sharper form, the potential lemma and the smoothness lemma, at every t in every start.
    #[test]
    fn what_the_appendix_says_holds(bandit in worlds()) {
        let (teacher, facts) = (bandit.consistent(), facts(&bandit));
        let mut learner = Learner::new(&bandit, &teacher);
        let mut before: Vec<Reading> = Vec::new();
        for t in 1..=200u64 {
            prop_assert_eq!(learner.t(), t);
            let readings: Vec<Reading> =
                facts.iter().enumerate().map(|(s, f)| Reading::of(&learner, &bandit, f, s)).collect();
            for (s, r) in readings.iter().enumerate() {
                prop_assert!(at_most(r.distance, r.bound), "t {} start {}: {} > {}", t, s, r.distance, r.bound);
                prop_assert!(at_most(r.distance, r.sharp_bound) && at_most(r.sharp_bound, r.bound));
                prop_assert!(at_most(r.policy_error, r.policy_bound), "{:?}", r);
                if let Some(before) = before.get(s) {
                    prop_assert!(at_most(r.potential - before.potential, -before.promised_fall), "{before:?} {r:?}");
                }
            }
            before = readings;
            learner.advance();
        }
    }

    #[test]
    fn the_average_policy_has_the_average_marginal(bandit in worlds()) {
        let teacher = bandit.consistent();
        let mut learner = Learner::new(&bandit, &teacher);
        let mut sum = vec![0.0; bandit.marginals[0].len()];
        for t in 1..=20 {
            learner.marginal(0).iter().zip(&mut sum).for_each(|(p, sum)| *sum += p);
            let mean: Vec<f64> = sum.iter().map(|p| p / f64::from(t)).collect();
            prop_assert!(l1(&mean, &learner.average_marginal(0)) < 1e-12);
            learner.advance();
        }
    }

    /// The inductive relation between marginals, as the lemma writes it.
    #[test]
    fn marginals_follow_from_marginals(bandit in worlds()) {
        let teacher = bandit.consistent();
        let mut learner = Learner::new(&bandit, &teacher);
        for _ in 0..5 {
            let now = learner.marginal(0);
            let (requests, described) = (bandit.requests(0), teacher[0].times(&now));
            let expected: Vec<f64> = (0..now.len())
                .map(|a| (0..requests.len()).map(|d| teacher[0].at(d, a) * now[a] * requests[d] / described[d]).sum())
                .collect();
            learner.advance();
            prop_assert!(l1(&expected, &learner.marginal(0)) < 1e-12);
        }
    }

    #[test]
    fn the_optimal_policy_is_fixed_and_the_true_marginal_finds_it_at_once(bandit in worlds()) {
        let teacher = bandit.consistent();
        for (s, facts) in facts(&bandit).iter().enumerate() {
            let optimal = bandit.optimal(s);
            let again = epochs::w(&bandit.requests(s), &teacher[s], &optimal);
            prop_assert!(facts.largest_error(&again) < 1e-12);
            prop_assert!(l1(&epochs::marginal(&bandit.requests(s), &optimal), &bandit.marginals[s]) < 1e-12);
        }
        prop_assert!(true_marginal_error(&bandit, &teacher, &facts(&bandit)).0 < 1e-12);
    }
}

/// A world whose teacher has a word of its own for every action.
fn identity(actions: usize, seed: u64) -> Bandit {
    let mut bandit = Bandit::random(Sizes { actions, descriptions: actions, starts: 2 }, seed);
    for p in &mut bandit.descriptions {
        *p = Matrix::new(actions, actions, |d, a| if d == a { 1.0 } else { 0.0 });
    }
    bandit
}

#[test]
fn with_a_word_for_every_action_one_epoch_is_enough() {
    for seed in 0..20 {
        let bandit = identity(4, seed);
        let (teacher, facts) = (bandit.consistent(), facts(&bandit));
        assert_eq!(facts[0].sigma_min, 1.0);
        let mut learner = Learner::new(&bandit, &teacher);
        learner.advance();
        for (s, facts) in facts.iter().enumerate() {
            assert!(l1(&learner.marginal(s), &bandit.marginals[s]) < 1e-12);
            assert!(facts.largest_error(&learner.evaluated(s)) < 1e-12);
        }
    }
}

#[test]
fn an_inconsistent_teacher_leads_elsewhere_and_further_the_more_it_is() {
    let (mut previous, strengths) = (0.0, [0.0, 0.15, 0.3]);
    for strength in strengths {
        let bandit = identity(4, 3);
        let teacher = bandit.inconsistent(Fault::Swapped, strength);
        let mut learner = Learner::new(&bandit, &teacher);
        for _ in 0..20_000 {
            learner.advance();
        }
        // The last marginal, not the average: time does not mend it.
        let left = distance(&bandit.marginals[0], &learner.marginal(0));
        if strength == 0.0 {
            assert!(left < 1e-12);
        } else {
            assert!(left > previous + 0.02, "{left} after {previous}");
            assert!(true_marginal_error(&bandit, &teacher, &facts(&bandit)).1 > 0.05);
        }
        previous = left;
    }
}

#[test]
fn sampled_epochs_come_near_the_exact_ones() {
    let bandit = Bandit::random(Sizes { actions: 3, descriptions: 5, starts: 2 }, 5);
    let teacher = bandit.consistent();
    let gap = |m: u64| {
        let (mut exact, mut sampled) = (Learner::new(&bandit, &teacher), Learner::new(&bandit, &teacher));
        for n in 1..=10 {
            exact.advance();
            sampled.advance_sampled(m, &mut rng::stream(1, "theory-epoch", n));
        }
        (0..2).map(|s| l1(&exact.average_marginal(s), &sampled.average_marginal(s))).fold(0.0, f64::max)
    };
    let (few, many) = (gap(200), gap(100_000));
    assert!(many < 0.02 && many < few, "{many} with many, {few} with few");
}

#[test]
fn fewer_descriptions_than_actions_make_the_bound_say_nothing() {
    let bandit = Bandit::random(Sizes { actions: 5, descriptions: 3, starts: 1 }, 1);
    let facts = StartFacts::new(&bandit, 0);
    assert_eq!((facts.sigma_min, facts.bound(9)), (0.0, f64::INFINITY));
}

#[test]
fn draws_follow_the_probabilities() {
    let mut stream = rng::stream(1, "test", 0);
    let mut counts = [0u32; 4];
    for _ in 0..20_000 {
        counts[draw([0.5, 0.0, 0.3, 0.2], &mut stream)] += 1;
    }
    assert!(counts[1] == 0 && counts[0].abs_diff(10_000) < 300 && counts[3].abs_diff(4_000) < 300, "{counts:?}");
}

#[test]
fn a_study_checks_every_epoch_and_repeats_itself() {
    let settings = StudySettings {
        sizes: Sizes { actions: 4, descriptions: 6, starts: 3 },
        epochs: 30,
        seed: 1,
        samples: 100,
        inconsistent: vec![0.2, 0.5],
    };
    let found = study(&settings);
    assert!(found.applies && found.bound_held && found.sharp_bound_held);
    assert!(found.potential_held && found.policy_bound_held);
    assert_eq!((found.checked, found.rows.len(), found.wrong.len()), (90, 30, 4));
    assert_eq!(found.chosen().iter().map(|r| r.t).collect::<Vec<_>>(), [1, 2, 5, 10, 20, 30]);
    let json = serde_json::to_string(&found).unwrap();
    assert_eq!(json, serde_json::to_string(&study(&settings)).unwrap());
    assert!(picture(&found).svg().contains("bound"));
}
