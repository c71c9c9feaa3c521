//! Secrets stay out of the log, and so do guesses at them, one by one.

use crate::{Server, ask};
use std::collections::BTreeMap;

const TOKEN: &str = "a-token-that-nobody-guesses";
const PASSWORD: &str = "four-words-in-a-row";
const WRONG: &str = "a-password-that-is-wrong";
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
const OWN: (&str, &str) = ("sec-fetch-site", "same-origin");

/// The value of the cookie that a response sets.
fn cookie(answer: &str, name: &str) -> String {
    let rest = answer.split(&format!("{name}=")).nth(1).unwrap_or_else(|| panic!("no {name} in {answer}"));
    rest.split(';').next().unwrap().to_owned()
}

#[test]
fn no_secret_is_logged_at_any_level() {
    let server = Server::with_log("trace", &[], &[("ILIAD_ACCESS_TOKEN", TOKEN)]);
    let said = server.said.join("\n");
    let welcome =
        said.split("/welcome/").nth(1).expect("the first owner gets a link").split_whitespace().next().unwrap();
    let welcome = welcome.to_owned();
    let at = server.address.clone();
    let form =
        |path: &str, head: &[(&str, &str)], body: &str| ask(&at, "POST", path, &[&[FORM, OWN], head].concat(), body);
    let mut secrets = BTreeMap::from([("access token", TOKEN.to_owned()), ("password", PASSWORD.to_owned())]);
    secrets.insert("wrong password", WRONG.to_owned());
    secrets.insert("link", welcome.clone());

    assert_eq!(ask(&at, "GET", &format!("/welcome/{welcome}"), &[], "").0, 200);
    let joined = form("/invite", &[], &format!("token={welcome}&name=ada&password={PASSWORD}&again={PASSWORD}"));
    assert_eq!(joined.0, 303, "{}", joined.1);
    assert_eq!(form("/sign-in", &[], &format!("name=ada&password={WRONG}")).0, 401);
    let signed_in = form("/sign-in", &[], &format!("name=ada&password={PASSWORD}"));
    let session = cookie(&signed_in.1, "iliad_session");
    secrets.insert("session", session.clone());
    let signed = format!("iliad_session={session}");
    let made = form("/tokens", &[("cookie", &signed)], "name=robot&scope-read=on&days=30");
    let token = made.1.split("iliad_").find(|rest| rest.bytes().take(32).filter(u8::is_ascii_hexdigit).count() == 32);
    let token = token.unwrap_or_else(|| panic!("{}", made.1))[..32].to_owned();
    secrets.insert("token of a program", token.clone());
    let bearer = format!("Bearer iliad_{token}");
    assert_eq!(ask(&at, "GET", "/api/v1/runs", &[("authorization", &bearer)], "").0, 200);
    let guess = "0123456789abcdef".repeat(2);
    secrets.insert("guess", guess.clone());
    assert_eq!(ask(&at, "GET", "/api/v1/runs", &[("authorization", &format!("Bearer iliad_{guess}"))], "").0, 401);
    let entered = form("/access", &[], &format!("token={TOKEN}"));
    secrets.insert("access cookie", cookie(&entered.1, "iliad_access"));
    let invited = form("/people/invites", &[("cookie", &signed)], "role=reviewer&days=3");
    let link = invited.1.split("/invite/").nth(1).unwrap_or_else(|| panic!("{}", invited.1))[..32].to_owned();
    assert_eq!(ask(&at, "GET", &format!("/invite/{link}"), &[], "").0, 200);
    secrets.insert("invitation", link);

    let (_, runs) = ask(&at, "GET", "/api/v1/runs", &[("authorization", &bearer)], "");
    let run = runs.split("\"id\":\"").nth(1).unwrap_or_else(|| panic!("{runs}")).split('"').next().unwrap();
    let page = ask(&at, "GET", &format!("/teach/{run}"), &[], "").1;
    let teacher = cookie(&page, "iliad_teacher");
    let head = [OWN, ("content-type", "application/json"), ("cookie", &format!("iliad_teacher={teacher}"))];
    assert_eq!(ask(&at, "POST", &format!("/api/v1/runs/{run}/lease"), &head, "{}").0, 200);
    secrets.insert("teacher's cookie", teacher);

    let log = server.log();
    assert!(log.contains("request") && log.contains("/api/v1/runs"), "it logs requests: {log}");
    for (name, secret) in secrets {
        assert!(
            !log.contains(&secret),
            "the {name} is in the log: {}",
            log.lines().find(|l| l.contains(&secret)).unwrap()
        );
    }
}

#[test]
fn guesses_run_out_and_share_lines_of_the_log() {
    let server = Server::with_log("info", &[], &[("ILIAD_ACCESS_TOKEN", TOKEN)]);
    let mut refused = 0;
    for number in 0..200 {
        let guess = format!("Bearer guess-number-{number}");
        let (status, _) = ask(&server.address, "GET", "/api/v1/runs", &[("authorization", &guess)], "");
        assert!([401, 429].contains(&status), "{status}");
        refused += usize::from(status == 429);
    }
    assert!(refused > 100, "{refused} of 200 guesses were not looked at");
    let log = server.log();
    let lines = log.lines().filter(|line| line.contains("wrong access tokens")).count();
    assert!((1..20).contains(&lines), "{lines} lines tell of 200 guesses:\n{log}");
    assert!(log.lines().count() < 60, "{log}");
}
