//! Whole pages as snapshots (`tests/web/snapshots/`), so that a change of the HTML is seen where it is reviewed. Only pages
//! whose content does not depend on the course of a run are compared.

use crate::{Reply, Server};
use iliad::config::run::TeacherMode;
use iliad::web::WebSettings;
use insta::{Settings, assert_snapshot};

/// Compares a page; parts that differ from call to call are replaced by their names first.
fn assert_page(name: &str, reply: &Reply) {
    let mut settings = Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.add_filter(r"/static/[0-9a-f]{16}/", "/static/VERSION/");
    settings.add_filter(r"\d{1,2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}", "MOMENT");
    settings.add_filter(r"(?s)<time [^>]*>.*?</time>", "<time>");
    let text = reply.text.replace(concat!("Iliad ", env!("CARGO_PKG_VERSION")), "Iliad VERSION");
    settings.bind(|| assert_snapshot!(name, format!("{}\n{text}", reply.status)));
}

#[tokio::test]
async fn pages_look_as_they_did() {
    let server = Server::new().await;
    assert_page("guide", &server.page("/teach/study/guide", "").await);
    assert_page("not_found", &server.page("/nothing", "").await);
    assert_page("no_answers_yet", &server.page("/teach/study/answers", "").await);
    crate::support::ended_run(&server.state.store, crate::support::run_row("kept", TeacherMode::Human)).await;
    assert_page("ended_run", &server.page("/runs/kept", "").await);
}

#[tokio::test]
async fn the_page_of_the_access_token_looks_as_it_did() {
    let settings = WebSettings { access_token: Some("sesame".to_owned()), loopback: false, ..WebSettings::default() };
    let server = Server::with(settings, TeacherMode::Human).await;
    assert_page("access", &server.page("/access?next=/runs", "").await);
}
