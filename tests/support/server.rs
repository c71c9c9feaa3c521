//! Serves the web application with a made-up run behind it: `cargo run --example test_server -- --port 0 --data-dir DIR`.
//! Prints its address as `iliad serve` does.

#[path = "mod.rs"]
mod support;

use iliad::app::webhooks::{Delivery, deliver};
use iliad::config::run::TeacherMode;
use iliad::store::Store;
use iliad::task::nav::family::NAV;
use iliad::task::nav::world::NavWorld;
use iliad::web::{WebSettings, serve};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let given = |name: &str| arguments.iter().position(|a| a == name).and_then(|at| arguments.get(at + 1).cloned());
    let port: u16 = given("--port").map_or(Ok(0), |port| port.parse())?;
    let folder = PathBuf::from(given("--data-dir").ok_or("--data-dir is missing")?);
    std::fs::create_dir_all(&folder)?;
    let mut settings = WebSettings { base_path: given("--base-path").unwrap_or_default(), ..WebSettings::default() };
    if let Some(seconds) = given("--lease-seconds") {
        settings.lease_ttl = Duration::from_secs(seconds.parse()?);
    }
    let mode = match given("--teacher").as_deref() {
        Some("simulated") => TeacherMode::Simulated,
        Some("mixed") => TeacherMode::Mixed { share: 0.3 },
        _ => TeacherMode::Human,
    };
    settings.pictures = given("--nav-panoramas").map(PathBuf::from);
    settings.corpora = Some(folder.join("corpora"));
    let store = Store::open(&folder.join("iliad.sqlite")).await?;
    let mut state = support::app_state(store.clone(), settings);
    state.families = iliad::registry::Registry::builtin().families();
    let mut row = support::run_row("study", mode);
    row.family = "regex".to_owned();
    let earlier = iliad::store::Run { id: "earlier".into(), ..row.clone() };
    support::ended_run(&store, earlier).await;
    state.runs.add(support::start_run(&store, row).await);
    // Real houses for the pages that show them; they are there as long as their world is.
    let world = given("--nav-data").map(|data| NavWorld::load(data.as_ref()).map(Arc::new)).transpose()?;
    world.iter().for_each(|world| NAV.houses().remember(world));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("Iliad is ready at http://{}{}/", listener.local_addr()?, state.settings.base_path);
    let shutdown = state.shutdown.clone();
    tokio::spawn(async move {
        let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
        }
        shutdown.cancel();
        std::io::Result::Ok(())
    });
    let delivery = Delivery { private: true, ..Delivery::default() };
    tokio::spawn(deliver(store, delivery, state.shutdown.clone()));
    serve(state, listener).await?;
    Ok(())
}
