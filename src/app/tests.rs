//! The form of all settings, over the real presets.

use super::manager::tests::{asked, server};
use crate::config::run::TeacherMode;
use crate::ids::RunId;
use crate::run::RunState;
use axum::Router;
use axum::http::Request;

async fn page(router: &Router, path: &str) -> (u16, String) {
    asked(router, Request::get(path).header("accept", "text/html"), String::new()).await
}

async fn form(router: &Router, path: &str, body: &str) -> (u16, String) {
    let request =
        Request::post(path).header("accept", "text/html").header("content-type", "application/x-www-form-urlencoded");
    asked(router, request, body.to_owned()).await
}

/// The piece of a page that is about a setting.
fn field<'a>(page: &'a str, key: &str) -> &'a str {
    let at = page.find(&format!("data-key=\"{key}\"")).unwrap_or_else(|| panic!("{key} is not in the form"));
    let begin = page[..at].rfind("<div").unwrap();
    let rest = &page[at + 1..];
    &page[begin..at + 1 + rest.find("data-key=").unwrap_or(rest.len())]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_shows_every_setting_with_its_meaning_and_starts_what_it_says() {
    let home = tempfile::tempdir().unwrap();
    let (manager, router) = server(home.path()).await;
    let (status, text) = page(&router, "/runs/new?preset=regex%2Ftiny").await;
    assert_eq!(status, 200, "{text}");
    let lambda = field(&text, "algorithm.mixing.lambda");
    assert!(
        lambda.contains("paper: 0.5") && lambda.contains("value=\"0.5\"") && !lambda.contains("differs"),
        "{lambda}"
    );
    let batch = field(&text, "algorithm.batch");
    assert!(
        batch.contains("Episodes per iteration") && batch.contains("<span class=\"unit\">episodes</span>"),
        "{batch}"
    );
    assert!(field(&text, "algorithm.name").contains("<option value=\"epoch-adel\""));
    assert!(field(&text, "model.reference_padding").contains("type=\"checkbox\""));
    // The form marks settings that differ from the preset. A wrong one has its problem beside its field, and keeps what was typed.
    let sent = "preset=regex%2Ftiny&seed=5&mode=simulated&s.algorithm.batch=0&s.pool.size=7&s.schedule.keep=many";
    let (status, text) = form(&router, "/runs/new", sent).await;
    assert_eq!(status, 422);
    assert!(field(&text, "algorithm.batch").contains("lie between 1 and 4096"), "{}", field(&text, "algorithm.batch"));
    assert!(
        field(&text, "schedule.keep").contains("value=\"many\"") && field(&text, "schedule.keep").contains("wrong")
    );
    assert!(
        field(&text, "pool.size").contains("setting differs\"") && field(&text, "pool.size").contains("value=\"7\"")
    );
    let (status, told) = form(&router, "/runs/new/check", sent).await;
    assert!(status == 200 && told.contains("algorithm.batch") && told.contains("schedule.keep"), "{told}");
    assert!(manager.store().runs().await.unwrap().is_empty());
    let sent = "preset=regex%2Ftiny&seed=5&mode=mixed&share=25&s.algorithm.batch=8&s.schedule.episodes=8&s.model.reference_padding=false&s.model.reference_padding=true&s.model.pretrained=none&s.algorithm.pretrain_updates=1&s.teacher.models=shipped";
    assert_eq!(form(&router, "/runs/new", sent).await.0, 303);
    let run = manager.store().runs().await.unwrap().remove(0);
    let differences = run.config["differences"].as_object().unwrap();
    let changed: Vec<&str> = differences.keys().map(String::as_str).collect();
    assert_eq!((run.seed, run.teacher), (5, TeacherMode::Mixed { share: 0.25 }));
    for key in ["algorithm.batch", "model.reference_padding", "schedule.episodes", "model.pretrained"] {
        assert!(changed.contains(&key), "{changed:?}");
    }
    assert!(!changed.contains(&"teacher.models"), "{changed:?}");
    // Again with changes, and as a file.
    let (_, text) = page(&router, &format!("/runs/new?from={}", run.id)).await;
    assert!(text.contains("Again with changes") && text.contains("name=\"seed\" id=\"seed\" type=\"text\" inputmode=\"numeric\" pattern=\"[0-9]+\" maxlength=\"16\" value=\"6\""));
    assert!(
        field(&text, "algorithm.batch").contains("value=\"8\"") && field(&text, "algorithm.batch").contains("differs")
    );
    let (status, file) = page(&router, &format!("/runs/{}/settings.toml", run.id)).await;
    assert!(status == 200 && file.contains("family = \"regex\"") && file.contains("batch = 8"), "{file}");
    let encoded: String = file.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let (status, text) = form(&router, "/runs/new/file", &format!("settings={encoded}")).await;
    assert!(status == 200 && field(&text, "algorithm.batch").contains("value=\"8\""), "{status}");
    let (status, text) = form(&router, "/runs/new/file", "settings=a+%3D").await;
    assert!(status == 422 && text.contains("line 1 is not TOML"), "{status}");
    let unknown = "family+%3D+%22regex%22%0Apreset+%3D+%22tiny%22%0Alamda+%3D+2";
    let (status, text) = form(&router, "/runs/new/file", &format!("settings={unknown}")).await;
    assert!(status == 422 && text.contains("There is no setting lamda."), "{status}");
    manager.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preset_that_needs_data_asks_for_the_folder() {
    let home = tempfile::tempdir().unwrap();
    let (_, router) = server(home.path()).await;
    let (_, list) = page(&router, "/runs").await;
    assert!(list.contains("/runs/new?preset=nav/paper\">Name it"), "{list}");
    for preset in ["nav/paper", "regex/paper"] {
        let (status, text) = page(&router, &format!("/runs/new?preset={preset}")).await;
        assert_eq!(status, 200);
        let path = field(&text, "task.path");
        assert!(path.contains("wrong") && path.contains("iliad data import"), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_for_an_agent_elsewhere_that_a_command_made_is_taken_up() {
    let home = tempfile::tempdir().unwrap();
    let (manager, router) = server(home.path()).await;
    let id = RunId::from("outside-1");
    manager.store().create_run(&super::outside::row(id.clone(), false)).await.unwrap();
    manager.host_new_outside_runs().await;
    let hosted = manager.runs.get(&id).map(|handle| handle.status.borrow().state.clone());
    assert_eq!(hosted, Some(RunState::Running));
    let (status, text) = page(&router, "/import").await;
    assert!(status == 200 && text.contains("<option value=\"outside-1\">"), "{text}");
}
