//! `iliad token`: the tokens of programs, from the machine itself.

use super::{iliad, run};
use iliad::store::{Scope, Store};
use std::path::Path;

fn with_store<T>(home: &Path, work: impl AsyncFnOnce(&Store) -> T) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let store = Store::open(&home.join("iliad-data").join("iliad.sqlite")).await.unwrap();
        let done = work(&store).await;
        store.close().await;
        done
    })
}

fn token(home: &Path, arguments: &[&str]) -> (i32, String, String) {
    run(iliad(home).arg("token").args(arguments))
}

#[test]
fn tokens_are_made_listed_and_revoked() {
    let home = tempfile::tempdir().unwrap();
    let (code, _, told) = token(home.path(), &["list"]);
    assert!(code == 2 && told.contains("there is no database in iliad-data"), "{told}");
    with_store(home.path(), async |_: &Store| {});
    let (code, made, told) = token(home.path(), &["create", "robot", "--scope", "agent,read", "--days", "0"]);
    assert!(code == 0 && made.starts_with("iliad_") && told.contains("`iliad token revoke 1`"), "{made} {told}");
    let known = with_store(home.path(), async |store: &Store| store.api_token(made.trim()).await.unwrap()).unwrap();
    assert_eq!((known.name.as_str(), known.scopes), ("robot", vec![Scope::Read, Scope::Agent]));
    let (_, listed, _) = token(home.path(), &["list"]);
    assert!(listed.contains("1  robot  read,agent  last used") && !listed.contains(made.trim()), "{listed}");
    let (_, json, _) = token(home.path(), &["list", "--json"]);
    let first: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!(
        (first["key"].as_i64(), first["scopes"][1].as_str(), first["expires_at"].as_str()),
        (Some(1), Some("agent"), None)
    );
    let (code, _, told) = token(home.path(), &["create", "x", "--scope", "everything"]);
    assert!(code == 2 && told.contains("no scope"), "{told}");
    let (code, _, told) = token(home.path(), &["create", " "]);
    assert!(code == 2 && told.contains("1 to 100 characters"), "{told}");
    let (code, _, told) = token(home.path(), &["revoke", "1"]);
    assert!(code == 0 && told.contains("robot"), "{told}");
    assert_eq!(with_store(home.path(), async |store: &Store| store.api_token(made.trim()).await.unwrap()), None);
    let (code, _, told) = token(home.path(), &["revoke", "1"]);
    assert!(code == 2 && told.contains("there is no token 1"), "{told}");
}
