//! Copies of checkpoints in an object store: a lost folder of runs comes back, from a folder and from a server that speaks S3.

use crate::teacher::body;
use crate::{Server, ask, free_port, wait_for};
use serde_json::Value;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Flags of a run that begins to learn at once and writes a checkpoint every few updates.
pub const QUICK: [&str; 10] = [
    "--set",
    "schedule.evaluate_tasks=4",
    "--set",
    "algorithm.batch=4",
    "--set",
    "schedule.checkpoint_every=2",
    "--set",
    "algorithm.pretrain_updates=0",
    "--set",
    "schedule.evaluate_every=100000",
];

/// The first run of a server, once it is there.
pub fn first_run(server: &Server) -> String {
    let mut run = String::new();
    wait_for("the run", || {
        let runs = body(&ask(&server.address, "GET", "/api/runs", &[], "").1);
        run = runs[0]["id"].as_str().unwrap_or_default().to_owned();
        runs[0]["status"]["state"] == "running"
    });
    run
}

/// The update of a run, as a server tells it.
pub fn update(server: &Server, run: &str) -> u64 {
    let told = body(&ask(&server.address, "GET", &format!("/api/runs/{run}"), &[], "").1);
    told["status"]["update"].as_u64().unwrap_or(0)
}

/// Waits until a copy knows a later update than `after`; that update.
pub fn wait_for_copy(manifest: impl Fn() -> Value, after: u64) -> u64 {
    let mut copied = 0;
    wait_for("a later copy", || {
        copied = manifest()["update"].as_u64().unwrap_or(0);
        copied > after
    });
    copied
}

/// The manifest of a run in a folder.
pub fn manifest(copies: &Path, run: &str) -> Value {
    let text = std::fs::read_to_string(copies.join(run).join("manifest.json")).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Trains, is killed, loses its folder of runs, goes on from the copy, and ends with a last copy.
fn comes_back(environment: &[(&str, &str)], manifest: &dyn Fn(&str) -> Value) {
    let data = tempfile::tempdir().unwrap();
    let flags = [&QUICK[..], &["--data-dir", data.path().to_str().unwrap()]].concat();
    let server = Server::start("", &flags, environment);
    let run = first_run(&server);
    let first = wait_for_copy(|| manifest(&run), 0);
    let copied = wait_for_copy(|| manifest(&run), first);
    drop(server);
    std::fs::remove_dir_all(data.path().join("runs")).unwrap();

    let mut server = Server::with_log("info", &flags, environment);
    assert_eq!(first_run(&server), run);
    wait_for("training", || update(&server, &run) > copied);
    let log = server.log();
    let told = log.split("from the copy of its checkpoint at update ").nth(1).unwrap_or_else(|| panic!("{log}"));
    let from: u64 = told.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap();
    assert!(from >= copied, "{log}");
    let (_, figures) = ask(&server.address, "GET", "/metrics", &[], "");
    assert!(figures.contains("iliad_checkpoint_copies_waiting"), "{figures}");
    assert!(figures.contains("\niliad_checkpoint_copy_failures_total 0"), "{figures}");

    // The last checkpoint is copied before the program ends, and only what the manifest names is left.
    assert!(Command::new("kill").args(["-TERM", &server.id().to_string()]).status().unwrap().success());
    assert_eq!(server.wait().code(), Some(0));
    let folder = data.path().join("runs").join(&run);
    let mut here: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("update-"))
        .collect();
    here.sort();
    assert_eq!(*here.last().unwrap(), format!("update-{:08}.safetensors", manifest(&run)["update"].as_u64().unwrap()));
}

#[test]
fn a_lost_folder_of_runs_comes_back_from_another_folder() {
    let copies = tempfile::tempdir().unwrap();
    let address = format!("file://{}", copies.path().display());
    comes_back(&[("ILIAD_CHECKPOINTS", &address)], &|run| manifest(copies.path(), run));
    let run = std::fs::read_dir(copies.path()).unwrap().next().unwrap().unwrap().path();
    let objects = std::fs::read_dir(run.join("files")).unwrap().count();
    let named = manifest(copies.path(), &run.file_name().unwrap().to_string_lossy());
    assert_eq!(objects, named["files"].as_array().unwrap().len());
}

/// A server that speaks S3; it ends with the value.
struct Bucket {
    child: Child,
    address: String,
}

impl Bucket {
    /// `None` where `tests/run` has not installed moto.
    fn start() -> Option<Bucket> {
        let tools = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("tools/moto");
        let program = tools.join("bin/moto_server");
        if !program.is_file() {
            eprintln!("skipped: moto, a server that speaks S3, is not installed ({})", program.display());
            return None;
        }
        let port = free_port();
        let mut command = Command::new("python3");
        command.arg(program).args(["-H", "127.0.0.1", "-p", &port.to_string()]).env("PYTHONPATH", &tools);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        let mut bucket = Bucket { child, address: format!("127.0.0.1:{port}") };
        wait_for("moto", || {
            assert_eq!(bucket.child.try_wait().unwrap(), None, "moto goes on");
            TcpStream::connect(&bucket.address).is_ok()
        });
        let (status, told) = ask(&bucket.address, "PUT", "/laboratory", &[], "");
        assert_eq!(status, 200, "{told}");
        Some(bucket)
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_lost_folder_of_runs_comes_back_from_a_bucket() {
    let Some(bucket) = Bucket::start() else { return };
    let endpoint = format!("http://{}", bucket.address);
    let environment = [
        ("ILIAD_CHECKPOINTS", "s3://laboratory/first/floor"),
        ("AWS_ENDPOINT_URL", &endpoint),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "somebody"),
        ("AWS_SECRET_ACCESS_KEY", "not-a-secret-of-anybody"),
    ];
    // moto refuses strangers, and takes everybody for no stranger who claims to have signed.
    let signed = "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0";
    let manifest = |run: &str| {
        let path = format!("/laboratory/first/floor/{run}/manifest.json");
        body(&ask(&bucket.address, "GET", &path, &[("authorization", signed)], "").1)
    };
    comes_back(&environment, &manifest);
}

#[test]
fn addresses_that_cannot_be_used_are_refused_without_their_secrets() {
    let plain = [("AWS_ENDPOINT_URL", "http://127.0.0.1:9"), ("AWS_SECRET_ACCESS_KEY", "hush-hush")];
    for (address, word, code) in [
        ("s3://somebody:hush-hush@bucket", "AWS_SECRET_ACCESS_KEY", Some(2)),
        ("/srv/checkpoints", "file:///some/folder", Some(2)),
        ("s3://bucket/prefix", "AWS_ALLOW_HTTP=true", Some(1)),
        ("file:///dev/null/folder", "cannot be used", Some(1)),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = crate::iliad(folder.path(), "");
        command.args(["serve", "--port", "0", "--device", "cpu", "--checkpoints", address]).envs(plain);
        let refused = command.env_remove("AWS_ALLOW_HTTP").output().unwrap();
        let told = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), code, "{address}: {told}");
        assert!(told.contains(word) && !told.contains("hush-hush"), "{address}: {told}");
    }
}
