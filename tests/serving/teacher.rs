//! Somebody who teaches over HTTP, as the page does: the same answer is sent again under the same key.

use crate::{Server, ask, wait_for};
use serde_json::{Value, json};

/// Flags of a server whose run people teach.
pub const TAUGHT_BY_PEOPLE: [&str; 2] = ["--set", r#"teacher.mode={"mode":"human"}"#];

pub struct Teacher {
    address: String,
    pub run: String,
    cookie: String,
}

impl Teacher {
    /// Somebody new on a server whose run can be taught; waits for it.
    pub fn of(server: &Server) -> Teacher {
        let mut run = String::new();
        wait_for("the run", || {
            let (_, runs) = ask(&server.address, "GET", "/api/runs", &[], "");
            let runs = body(&runs);
            run = runs[0]["id"].as_str().unwrap_or_default().to_owned();
            runs[0]["status"]["state"] == "running"
        });
        let (_, page) = ask(&server.address, "GET", &format!("/teach/{run}"), &[], "");
        let cookie = page.split("iliad_teacher=").nth(1).unwrap_or_else(|| panic!("a visitor gets a cookie: {page}"));
        let cookie = format!("iliad_teacher={}", cookie.split(';').next().unwrap());
        Teacher { address: server.address.clone(), run, cookie }
    }

    /// This person on another server of the same data.
    pub fn moved_to(&self, server: &Server) -> Teacher {
        Teacher { address: server.address.clone(), run: self.run.clone(), cookie: self.cookie.clone() }
    }

    fn post(&self, path: &str, what: &Value) -> (u16, Value) {
        let head = [("content-type", "application/json"), ("cookie", self.cookie.as_str())];
        let (status, told) =
            ask(&self.address, "POST", &format!("/api/runs/{}/{path}", self.run), &head, &what.to_string());
        (status, body(&told))
    }

    /// Something to describe; waits for it.
    pub fn lease(&self) -> Value {
        let mut leased = Value::Null;
        wait_for("something to describe", || {
            leased = self.post("lease", &json!({ "except": [] })).1;
            leased["execution"].is_number()
        });
        leased
    }

    /// Sends an answer; status and reply.
    pub fn answer(&self, leased: &Value, text: &str) -> (u16, Value) {
        let said = json!({
            "client_key": leased["client_key"], "execution": leased["execution"], "kind": "described", "text": text,
        });
        self.post("answers", &said)
    }

    /// The status of the run.
    pub fn status(&self) -> Value {
        body(&ask(&self.address, "GET", &format!("/api/runs/{}", self.run), &[], "").1)["status"].clone()
    }
}

/// The body of a response, as JSON; null where it is none.
pub fn body(response: &str) -> Value {
    let text = response.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    serde_json::from_str(text).unwrap_or_default()
}
