//! Attention checks in each medium: what is asked, and which choices there are.

use crate::support::{Bench, TTL, answer, execution, run};
use iliad::ids::{RunId, StudyId};
use iliad::protocol::Medium;
use iliad::store::{AttentionItem, Choice, Joining, NewAnswer, Response, StudyArm};
use iliad::study::{StudySettings, StudyState};
use serde_json::json;

/// The check after a teacher has answered all of nine executions, in a run of an algorithm. `respond` makes the text and the
/// response of an episode.
async fn check(algorithm: &str, respond: impl Fn(u64) -> (String, Response)) -> Option<AttentionItem> {
    let bench = Bench::new().await;
    let (run_id, study): (RunId, StudyId) = ("taught".into(), "words".into());
    let mut row = run("taught");
    row.config = json!({"algorithm": {"name": algorithm}});
    bench.store.create_run(&row).await.unwrap();
    let settings = StudySettings { title: "Words".into(), ..StudySettings::default() };
    let arms = [StudyArm { run: run_id.clone(), name: "words".into() }];
    bench.store.create_study(&study, &settings, &arms, "secret", "a test").await.unwrap();
    bench.store.set_study_state(&study, StudyState::Open, "a test").await.unwrap();
    let teacher = bench.teacher("ada").await;
    let who = bench.store.join_study(&study, teacher, &Joining::default()).await.unwrap();
    let offered: Vec<_> = (1..=9).map(|episode| execution(episode, 0)).collect();
    bench.store.offer(&run_id, &offered).await.unwrap();
    for _ in 1..=9 {
        let leased = bench.store.lease(&run_id, teacher, &[], TTL).await.unwrap().unwrap();
        let (text, response) = respond(leased.episode);
        let given = NewAnswer { response, ..answer(leased.execution, teacher, &text) };
        bench.store.answer(&given).await.unwrap();
    }
    let item = bench.store.attention_item(&study, (who.id, teacher), 0).await.unwrap();
    let again = bench.store.attention_item(&study, (who.id, teacher), 0).await.unwrap();
    assert_eq!(format!("{item:?}"), format!("{again:?}"), "a reload asks the same");
    item
}

/// The choices, and the place of the right one among them.
fn right(item: &AttentionItem) -> (usize, &Choice) {
    assert_eq!(item.choices.len(), 3);
    let at = item.choices.iter().position(|(key, _)| *key == item.right).expect("the right one is a choice");
    (at, &item.choices[at].1)
}

#[tokio::test]
async fn a_description_is_looked_for_among_executions() {
    let item = check("adel", |episode| (format!("sentence {episode}"), Response::Text)).await;
    let item = item.unwrap();
    let episode = item.text.strip_prefix("sentence ").unwrap();
    assert_eq!(item.medium, Medium::Description);
    let Choice::View(view) = right(&item).1 else { panic!("{item:?}") };
    assert_eq!(view["pairs"][0][1], format!("emboldec{episode}"));
}

#[tokio::test]
async fn a_demonstration_is_looked_for_among_ones_own() {
    let shown = |episode| (format!("shown {episode}"), Response::Demonstration(json!({"episode": episode})));
    let item = check("dagger", shown).await.unwrap();
    let episode = item.text.strip_prefix("request ").unwrap();
    assert_eq!(item.medium, Medium::Demonstration);
    let Choice::Demonstration(words) = right(&item).1 else { panic!("{item:?}") };
    assert_eq!(*words, format!("shown {episode}"));
    let all: Vec<_> = item.choices.iter().map(|(_, choice)| format!("{choice:?}")).collect();
    assert!(all.iter().all(|one| all.iter().filter(|other| one == *other).count() == 1), "{all:?}");
}

#[tokio::test]
async fn a_rating_is_asked_about_where_it_was_the_best() {
    let one =
        |best: Vec<u64>| move |episode| (String::new(), Response::Rating(f64::from(u8::from(best.contains(&episode)))));
    let item = check("reinforce-binary", one(vec![2])).await.unwrap();
    assert_eq!((item.medium, item.text.as_str()), (Medium::Rating, "request 2"));
    let Choice::View(view) = right(&item).1 else { panic!("{item:?}") };
    assert_eq!(view["pairs"][0][1], "emboldec2");
    assert!(check("reinforce-binary", one(vec![])).await.is_none(), "nothing was right, so nothing can be asked");
}
