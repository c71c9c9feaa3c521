//! `iliad accounts`: from the machine itself, for somebody who has locked themselves out.

use super::{iliad, run};
use iliad::store::{Joined, Role, Store};
use std::path::Path;
use std::time::Duration;

/// A data folder with an owner, Ada, and a researcher, Eve.
fn filled(home: &Path) {
    with_store(home, async |store: &Store| {
        for (name, role) in [("Ada", Role::Owner), ("Eve", Role::Researcher)] {
            store.invite(name, role, None, Duration::from_secs(60)).await.unwrap();
            let Joined::Account(id) = store.join(name, name, "no hash yet").await.unwrap() else { panic!("{name}") };
            store.open_session(id, name, "Firefox on Linux").await.unwrap();
        }
    });
}

fn with_store<T>(home: &Path, work: impl AsyncFnOnce(&Store) -> T) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let store = Store::open(&home.join("iliad-data").join("iliad.sqlite")).await.unwrap();
        let done = work(&store).await;
        store.close().await;
        done
    })
}

fn accounts(home: &Path, arguments: &[&str]) -> (i32, String, String) {
    run(iliad(home).arg("accounts").args(arguments))
}

#[test]
fn accounts_are_listed_and_named_however_they_are_written() {
    let home = tempfile::tempdir().unwrap();
    let (code, _, told) = accounts(home.path(), &["list"]);
    assert!(code == 2 && told.contains("there is no database in iliad-data"), "{told}");
    filled(home.path());
    let (code, listed, _) = accounts(home.path(), &["list"]);
    assert_eq!(code, 0);
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines.len() == 2 && lines[0].starts_with("Ada  owner") && lines[1].contains("last seen"), "{listed}");
    let (_, json, _) = accounts(home.path(), &["list", "--json"]);
    let first: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!((first["name"].as_str(), first["role"].as_str()), (Some("Ada"), Some("owner")));
    assert!(!listed.contains("hash") && !json.contains("hash"));
    let (code, _, told) = accounts(home.path(), &["disable", "Eva"]);
    assert!(code == 2 && told.contains("no account called \"Eva\" (did you mean `Eve`?)"), "{told}");
    let (code, _, told) = accounts(home.path(), &["disable", "EVE"]);
    assert!(code == 0 && told.contains("Eve can sign in no longer"), "{told}");
    assert!(accounts(home.path(), &["list"]).1.contains("disabled"));
    assert_eq!(with_store(home.path(), async |store: &Store| store.session("Eve").await.unwrap()), None);
    assert_eq!(accounts(home.path(), &["enable", "eve"]).0, 0);
    let (code, _, told) = accounts(home.path(), &["disable", "ada"]);
    assert!(code == 2 && told.contains("the last owner who can sign in"), "{told}");
}

#[test]
fn a_new_password_is_printed_once_and_signs_out() {
    let home = tempfile::tempdir().unwrap();
    filled(home.path());
    let (code, printed, told) = accounts(home.path(), &["reset-password", "ada"]);
    assert_eq!(code, 0, "{told}");
    let password = printed.trim().to_owned();
    assert!(password.len() == 23 && !told.contains(&password), "{printed}{told}");
    let (hash, session) = with_store(home.path(), async |store: &Store| {
        (store.credentials("Ada").await.unwrap().unwrap().password_hash, store.session("Ada").await.unwrap())
    });
    assert_eq!(session, None);
    let fits = iliad::credentials::verify(password, Some(hash));
    assert!(tokio::runtime::Runtime::new().unwrap().block_on(fits).unwrap());
}

#[test]
fn an_invitation_is_a_link_to_the_server_of_the_settings() {
    let home = tempfile::tempdir().unwrap();
    with_store(home.path(), async |_: &Store| ());
    let (code, _, told) = accounts(home.path(), &["invite", "--role", "reviewer"]);
    assert!(code == 2 && told.contains("the first account has to be an owner's"), "{told}");
    let (code, _, told) = accounts(home.path(), &["invite", "--role", "king"]);
    assert!(code == 2 && told.contains("owner, researcher, reviewer, teacher"), "{told}");
    let mut command = iliad(home.path());
    let (code, link, told) = run(command.env("ILIAD_PORT", "9000").args(["accounts", "invite", "--role", "owner"]));
    assert_eq!(code, 0, "{told}");
    let token =
        link.trim().strip_prefix("http://127.0.0.1:9000/invite/").unwrap_or_else(|| panic!("{link}")).to_owned();
    assert!(!told.contains(&token), "{told}");
    let role = with_store(home.path(), async |store: &Store| store.invited_role(&token).await.unwrap());
    assert_eq!(role, Some(Role::Owner));
}
