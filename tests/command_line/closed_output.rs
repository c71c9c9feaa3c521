//! Every command with an output that nobody reads, or that is full: it ends quietly, or with a sentence, and never panics.
//!
//! The rows are held against `iliad --help`, so a new command without a row fails.
#![cfg(unix)]

use iliad::run::{EpisodeRow, Source};
use iliad::store::{Role, Store, StudyArm};
use iliad::study::StudySettings;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A command as it is typed, what it reads, and the code that it ends with when all goes well.
struct Row {
    arguments: &'static str,
    input: &'static str,
    code: i32,
}

const fn row(arguments: &'static str) -> Row {
    Row { arguments, input: "", code: 0 }
}

const SMALL: &str = "--preset tiny --device cpu --log-level off";

/// The rows; `SMALL` stands for the flags of a small run.
const ROWS: &[Row] = &[
    row("--help"),
    row("-h"),
    row("--version"),
    row("--print-config"),
    row("help train"),
    row("teacher train --help"),
    row("serve --print-config"),
    row("train SMALL --run-dir RUN --json"),
    row("evaluate checkpoint --limit 4"),
    row("evaluate checkpoint --limit 4 --json"),
    row("evaluate checkpoint --limit 4 --by operation"),
    row("teacher train SMALL --executor-updates 1 --describer-updates 1 --batch 2 -o teacher.safetensors"),
    row("pretrain SMALL --set algorithm.pretrain_updates=1 -o policy.safetensors"),
    row("presets"),
    row("presets regex/tiny"),
    row("presets --json"),
    row("reproduce regex --table main --preset tiny --collect --results results"),
    row("reproduce regex --table main --preset tiny --plan shell -o NEW"),
    row("data import-l3 l3 -o NEW"),
    row("data import-l3 l3 -o NEW --json"),
    row("data import-r2r r2r -o NEW"),
    row("data describe"),
    row("data describe --json"),
    Row { arguments: "execute regex", input: r#"{"expression": "()(n)()@c", "word": "embolden"}"#, code: 0 },
    Row { arguments: "execute regex", input: "nonsense", code: 2 },
    Row { arguments: "nav score --nav-data nav", input: r#"{"scan":"h","path":["a"],"reference":["a"]}"#, code: 0 },
    Row {
        arguments: "nav actions --nav-data nav",
        input: r#"{"scan":"h","viewpoint":"a","heading_index":0}"#,
        code: 0,
    },
    row("nav house --seed 7"),
    Row { arguments: "dev fixture FIXTURE", input: "", code: -1 },
    // Its work has a test of its own; here it is refused before it begins.
    Row { arguments: "dev kills --kills 0", input: "", code: 2 },
    row("dev theory --epochs 3"),
    row("dev theory --epochs 3 --json"),
    row("dev theory --epochs 3 --plot -"),
    row("report --results results -o -"),
    row("report --results results -o /dev/stdout"),
    row("export"),
    row("export --format csv"),
    row("export --schema"),
    row("export -o /dev/stdout"),
    // Without a file it is refused before it begins; what it does has tests of its own.
    Row { arguments: "import nothing.jsonl", input: "", code: -1 },
    row("import --episodes rows.jsonl"),
    Row { arguments: "import --episodes bad.jsonl --dry-run", input: "", code: 2 },
    row("model import shipped.safetensors --preset tiny --as policy -o imported.safetensors"),
    Row {
        arguments: "model import shipped.safetensors --preset tiny --as teacher -o t.safetensors",
        input: "",
        code: 2,
    },
    row("token create robot --scope read"),
    row("token list"),
    Row { arguments: "token revoke 1", input: "", code: -1 },
    row("dev bench --preset tiny --device cpu --only updates --samples 1 --each 1 --warm 1 --batch 4"),
    row("accounts list"),
    row("accounts invite"),
    row("accounts disable Ada"),
    row("accounts enable Ada"),
    row("accounts reset-password Ada"),
    row("study list"),
    row("study show words"),
    Row { arguments: "study create --file - --id new", input: "title = 'Words'", code: 0 },
    row("study state words open"),
    // A rehearsal has a test of its own; here it is refused before it begins.
    Row { arguments: "study rehearse --file nothing.toml", input: "", code: -1 },
    row("backup -o NEW"),
    row("restore backup --data-dir NEW"),
    Row { arguments: "doctor --port 0 --device cpu", input: "", code: -1 },
    Row { arguments: "doctor --port 0 --device cpu --json", input: "", code: -1 },
    // No server is there; what it says of one has tests of its own.
    Row { arguments: "ready --port 9", input: "", code: -1 },
];

fn iliad(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iliad"));
    for (variable, _) in std::env::vars().filter(|(name, _)| name.starts_with("ILIAD_")) {
        command.env_remove(variable);
    }
    command.current_dir(home);
    command
}

/// A folder with everything that the rows read.
fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    for folder in ["results", "l3", "r2r/connectivity", "nav", "iliad-data"] {
        std::fs::create_dir_all(at(folder)).unwrap();
    }
    std::fs::write(at("rows.jsonl"), r#"{"request": "go", "text": "It went."}"#).unwrap();
    std::fs::write(at("bad.jsonl"), "[]\n").unwrap();
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("model_store/shipped/regex-tiny-policy.safetensors");
    std::fs::copy(shipped, at("shipped.safetensors")).unwrap();
    std::fs::write(at("results/speed.json"), r#"{"value": 41.7, "unit": "lines/min"}"#).unwrap();
    let examples =
        r#"[["<moon>","<mooc>"],["<banana>","<bacaca>"],["<melon>","<meloc>"],["<nine>","<cice>"],["<sun>","<suc>"]]"#;
    let item = format!(r#"[{{"re":"<()(n)()@c","hint":["<","n","is","c",">"],"examples":{examples}}}]"#);
    std::fs::write(at("l3/corpus.json"), format!(r#"{{"train":{item},"val":{item},"test":{item}}}"#)).unwrap();
    let pose = |x: f64| format!("[1,0,0,{x},0,1,0,0,0,0,1,1.5,0,0,0,1]");
    let viewpoint = |id: &str, x: f64, near: &str| {
        let pose = pose(x);
        format!(r#"{{"image_id":"{id}","pose":{pose},"included":true,"visible":{near},"unobstructed":{near}}}"#)
    };
    let house = format!("[{},{}]", viewpoint("a", 0.0, "[false,true]"), viewpoint("b", 2.0, "[true,false]"));
    std::fs::write(at("r2r/connectivity/h_connectivity.json"), house).unwrap();
    for name in ["train", "val_seen", "val_unseen"] {
        let path = r#"[{"path_id":1,"scan":"h","heading":0,"distance":2,"path":["a","b"],"instructions":["go on","go on","walk"]}]"#;
        std::fs::write(at(&format!("r2r/R2R_{name}.json")), path).unwrap();
    }
    let graphs = r#"{"h":{"viewpoints":[{"id":"a","x":0,"y":0,"z":1,"included":true}],"edges":[]}}"#;
    let mut packed = flate2::write::GzEncoder::new(File::create(at("nav/graphs.json.gz")).unwrap(), Default::default());
    packed.write_all(graphs.as_bytes()).unwrap();
    packed.finish().unwrap();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let store = Store::open(&at("iliad-data/iliad.sqlite")).await.unwrap();
        let run = super::stored_run();
        store.create_run(&run).await.unwrap();
        let row = EpisodeRow {
            episode: 1,
            update: Some(1),
            request: "replace n with c".into(),
            view: serde_json::json!({"pairs": [["a", "b"]]}),
            summary: "()(n)()@c".into(),
            source: Some(Source::Simulated),
            description: "replace every n".into(),
            candidates: vec![],
            success: true,
            reference: None,
        };
        store.record_simulated(&"regex-tiny-1".into(), &[row]).await.unwrap();
        let day = Duration::from_secs(86_400);
        for (token, name, role) in [("1", "Olga", Role::Owner), ("2", "Ada", Role::Researcher)] {
            store.invite(token, role, None, day).await.unwrap();
            store.join(token, name, "a hash").await.unwrap();
        }
        let settings = StudySettings { title: "Words".into(), ..StudySettings::default() };
        let arms = [StudyArm { run: run.id, name: "words".into() }];
        store.create_study(&"words".into(), &settings, &arms, "secret", "me").await.unwrap();
        store.close().await;
    });
    let backed_up = iliad(home.path()).args(["backup", "-o", "backup"]).output().unwrap();
    assert!(backed_up.status.success(), "{backed_up:?}");
    home
}

fn words(arguments: &str) -> Vec<String> {
    let small =
        format!("{SMALL} --set schedule.episodes=32 --set schedule.evaluate_every=1 --set schedule.evaluate_tasks=4");
    let trains = arguments.starts_with("train");
    let small = if trains { small } else { SMALL.to_owned() };
    arguments.replace("SMALL", &small).split(' ').map(str::to_owned).collect()
}

/// Runs a row in `home` with these streams; its code, and what it said on the error stream if that is read.
fn run(home: &Path, row: &Row, number: usize, out: Stdio, err: Stdio) -> (i32, String) {
    let fresh =
        |word: String| if ["NEW", "RUN", "new"].contains(&word.as_str()) { format!("{word}-{number}") } else { word };
    let mut command = iliad(home);
    command.args(words(row.arguments).into_iter().map(fresh));
    let mut child = command.stdin(Stdio::piped()).stdout(out).stderr(err).spawn().unwrap();
    // A program that ended before reading everything is judged by its exit.
    let _ = child.stdin.take().unwrap().write_all(row.input.as_bytes());
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    (status.code().unwrap_or(-1), String::from_utf8_lossy(&stderr).into_owned())
}

/// A pipe whose reader has gone.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

fn full() -> Option<Stdio> {
    Some(File::options().write(true).open("/dev/full").ok()?.into())
}

/// All commands that do something, from the program's own help.
fn commands(home: &Path, path: &str, into: &mut BTreeSet<String>) {
    let arguments: Vec<&str> = path.split_whitespace().chain(["--help"]).collect();
    let help = String::from_utf8(iliad(home).args(&arguments).output().unwrap().stdout).unwrap();
    let list = help.split_once("\nCommands:\n").map(|(_, rest)| rest.split("\n\n").next().unwrap_or_default());
    let names = list.into_iter().flat_map(str::lines).filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<&str> = names.filter_map(|line| line.split_whitespace().next()).filter(|n| *n != "help").collect();
    if names.is_empty() {
        into.insert(path.trim().to_owned());
    }
    for name in names {
        commands(home, &format!("{path} {name}"), into);
    }
}

#[test]
fn every_command_has_a_row() {
    let home = tempfile::tempdir().unwrap();
    let mut all = BTreeSet::new();
    commands(home.path(), "", &mut all);
    assert!(all.len() >= 20, "{all:?}");
    let lacking: Vec<&String> = all
        .iter()
        .filter(|c| !ROWS.iter().any(|row| format!("{} ", row.arguments).starts_with(&format!("{c} "))))
        .collect();
    assert!(lacking.is_empty(), "these commands need rows: {lacking:?}");
}

#[test]
fn a_closed_pipe_is_no_error_and_a_full_device_is_told() {
    let home = home();
    let trained = iliad(home.path()).args(words("train SMALL --run-dir run")).output().unwrap();
    assert!(trained.status.success(), "{trained:?}");
    std::fs::copy(home.path().join("run/best.safetensors"), home.path().join("checkpoint")).unwrap();
    for (number, row) in ROWS.iter().enumerate() {
        // The repository holds no numeric fixture to check.
        if row.arguments.contains("FIXTURE") {
            continue;
        }
        let (code, told) = run(home.path(), row, 2 * number, closed(), Stdio::piped());
        let natural = if row.code < 0 { code } else { row.code };
        assert!([0, natural].contains(&code), "{} ended with {code}: {told}", row.arguments);
        assert!((0..3).contains(&code), "{}: {code}", row.arguments);
        assert!(!told.contains("panicked") && !told.contains("ipe"), "{}: {told}", row.arguments);

        // These say what they did on the other stream.
        const NO_RESULT: [&str; 8] = [
            "accounts disable Ada",
            "accounts enable Ada",
            "study state words open",
            "study rehearse --file nothing.toml",
            "import nothing.jsonl",
            "token revoke 1",
            "ready --port 9",
            "dev kills --kills 0",
        ];
        if NO_RESULT.contains(&row.arguments) {
            continue;
        }
        let Some(device) = full() else { continue };
        let (code, told) = run(home.path(), row, 2 * number + 1, device, Stdio::piped());
        assert_eq!(code, 1, "{}: {told}", row.arguments);
        assert!(told.contains("cannot write to the standard output: No space left"), "{}: {told}", row.arguments);
        assert!(!told.contains("panicked"), "{}: {told}", row.arguments);
    }
}

#[test]
fn nobody_listening_to_the_notes_changes_nothing() {
    let home = home();
    for arguments in ["frobnicate", "export --run other", "evaluate nothing", "train --preset tinny", "execute regex"] {
        let row = Row { arguments, input: "nonsense", code: 2 };
        for err in [Some(closed()), full()].into_iter().flatten() {
            let (code, _) = run(home.path(), &row, 0, Stdio::null(), err);
            assert_eq!(code, 2, "{arguments}");
        }
    }
    for arguments in ["export -o all.csv", "report --results results", "dev theory --plot a.svg --epochs 3"] {
        for (number, err) in [Some(closed()), full()].into_iter().flatten().enumerate() {
            let (code, _) = run(home.path(), &row(arguments), 100 + number, Stdio::null(), err);
            assert_eq!(code, 0, "{arguments}");
        }
    }
    // With a log that somebody would read.
    let arguments = "train --preset tiny --device cpu --set schedule.episodes=32 --log-level debug --run-dir RUN";
    assert_eq!(run(home.path(), &row(arguments), 200, Stdio::null(), closed()).0, 0);
}

#[test]
fn what_is_named_with_o_may_be_a_device_and_stays_one() {
    if full().is_none() {
        println!("skipped: there is no /dev/full here");
        return;
    }
    let home = home();
    for (number, arguments) in [
        "export -o /dev/full",
        "report --results results -o /dev/full",
        "dev theory --epochs 3 --plot /dev/full",
        "nav house --plan /dev/full",
        "pretrain SMALL --set algorithm.pretrain_updates=1 -o /dev/full",
        "teacher train SMALL --executor-updates 1 --describer-updates 1 --batch 2 -o /dev/full",
    ]
    .into_iter()
    .enumerate()
    {
        let (code, told) = run(home.path(), &row(arguments), number, Stdio::null(), Stdio::piped());
        assert_eq!(code, 1, "{arguments}: {told}");
        assert!(told.contains("/dev/full") && told.contains("No space left"), "{arguments}: {told}");
    }
    use std::os::unix::fs::FileTypeExt;
    assert!(std::fs::metadata("/dev/full").unwrap().file_type().is_char_device());
}

/// A server is there for its pages: it says on the other stream where it is.
#[test]
fn a_server_serves_although_its_announcement_has_no_room() {
    let Some(device) = full() else {
        println!("skipped: there is no /dev/full here");
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let arguments = ["--port", "0", "--preset", "tiny", "--device", "cpu", "--log-level", "off"];
    let mut command = iliad(home.path());
    let mut child = command.args(arguments).stdout(device).stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = child.stderr.take().unwrap();
    let mut told = String::new();
    let mut byte = [0];
    while !told.contains("http://") || !told.ends_with('\n') {
        match errors.read(&mut byte) {
            Ok(1) => told.push(char::from(byte[0])),
            _ => break,
        }
    }
    let address = told.split("http://").nth(1).map(|rest| rest.split('/').next().unwrap_or_default().to_owned());
    let answer = address.and_then(|address| {
        let mut stream = std::net::TcpStream::connect(address).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(60))).ok()?;
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    });
    let running = child.try_wait().unwrap().is_none();
    let _ = child.kill();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(running && answer.is_some_and(|answer| answer.starts_with("HTTP/1.1 200")), "{told}");
    assert!(told.contains("cannot write to the standard output"), "{told}");
}

#[test]
fn success_is_told_by_kind_of_task() {
    let home = home();
    let trained = iliad(home.path()).args(words("train SMALL --run-dir run")).output().unwrap();
    assert!(trained.status.success(), "{trained:?}");
    let evaluate = |arguments: &str| {
        let all = format!("evaluate run/best.safetensors {arguments}");
        iliad(home.path()).args(all.split(' ')).output().unwrap()
    };
    let found: serde_json::Value = serde_json::from_slice(&evaluate("--by operation --json").stdout).unwrap();
    let groups = found["groups"].as_array().unwrap();
    let names: Vec<&str> = groups.iter().filter_map(|g| g["group"].as_str()).collect();
    assert_eq!((found["by"].as_str(), names), (Some("operation"), vec!["insert", "delete", "replace", "double"]));
    let tasks: u64 = groups.iter().filter_map(|g| g["success"]["n"].as_u64()).sum();
    assert_eq!(Some(tasks), found["success"]["n"].as_u64());
    let table = String::from_utf8(evaluate("--by place").stdout).unwrap();
    assert!(table.contains("success by place\n  beginning") && table.contains("  anywhere"), "{table}");
    let slip = evaluate("--by plase");
    let told = String::from_utf8(slip.stderr).unwrap();
    assert!(slip.status.code() == Some(2) && told.contains("did you mean `place`?"), "{told}");

    // Another way of acting than the run's, and nothing else.
    let voted = evaluate("--set model.votes=3 --json --limit 20");
    let found: serde_json::Value = serde_json::from_slice(&voted.stdout).unwrap();
    assert_eq!(
        (&found["set"], &found["success"]["n"]),
        (&serde_json::json!(["model.votes=3"]), &serde_json::json!(20))
    );
    for (setting, sentence) in [
        (
            "model.hidden=32",
            "model.hidden is part of what was learned; only how the agent acts can be set: model.votes",
        ),
        ("model.votes=many", "expected usize"),
        ("model.votes=99", "votes"),
    ] {
        let slip = evaluate(&format!("--set {setting}"));
        let told = String::from_utf8(slip.stderr).unwrap();
        assert!(slip.status.code() == Some(2) && told.contains(sentence), "{setting}: {told}");
    }
}
