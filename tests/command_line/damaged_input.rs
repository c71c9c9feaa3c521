//! Files and numbers from outside that are not as they should be: every command names the file and what is wrong with it,
//! and ends with code 1 or 2. A panic would be 101, running out of memory 134.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn run(home: &Path, arguments: &str, input: &[u8]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iliad"));
    for (variable, _) in std::env::vars().filter(|(name, _)| name.starts_with("ILIAD_")) {
        command.env_remove(variable);
    }
    command.current_dir(home).args(arguments.split(' '));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(input);
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    (status.code().unwrap_or(-1), String::from_utf8_lossy(&stderr).into_owned())
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), Default::default());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// Contents that may stand in place of a JSON file, a compressed one or a checkpoint.
fn damages() -> Vec<(&'static str, Option<Vec<u8>>)> {
    let whole = packed(&b"[1,2,3,4,5,6,7,8,9] ".repeat(100));
    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0x55;
    vec![
        ("a folder", None),
        ("nothing", Some(Vec::new())),
        ("one byte", Some(vec![0])),
        ("not UTF-8", Some(b"\xff\xfe{\x00}\x00".to_vec())),
        ("a mark alone", Some(b"\xef\xbb\xbf".to_vec())),
        ("half a document", Some(b"{\"train\": [".to_vec())),
        ("another document", Some(b"[[[\"a\"]]]".to_vec())),
        ("half a gzip file", Some(whole[..whole.len() / 2].to_vec())),
        ("a damaged gzip file", Some(flipped)),
        ("a gzip file of something else", Some(packed(b"\xff\xfe"))),
        ("deep brackets", Some(b"[".repeat(100_000))),
        ("a length without end", Some(u64::MAX.to_le_bytes().repeat(4))),
    ]
}

/// Sources of walks that can be imported.
fn houses(folder: &Path) {
    std::fs::create_dir_all(folder.join("connectivity")).unwrap();
    let viewpoint = |id: &str, x: u8, near: &str| {
        let pose = format!("[1,0,0,{x},0,1,0,0,0,0,1,1.5,0,0,0,1]");
        format!(r#"{{"image_id":"{id}","pose":{pose},"included":true,"visible":{near},"unobstructed":{near}}}"#)
    };
    let house = format!("[{},{}]", viewpoint("a", 0, "[false,true]"), viewpoint("b", 2, "[true,false]"));
    std::fs::write(folder.join("connectivity/h_connectivity.json"), house).unwrap();
    let path =
        r#"[{"path_id":1,"scan":"h","heading":0,"distance":2,"path":["a","b"],"instructions":["go","go on","walk"]}]"#;
    for name in ["train", "val_seen", "val_unseen"] {
        std::fs::write(folder.join(format!("R2R_{name}.json")), path).unwrap();
    }
}

#[test]
fn damaged_files_are_named_by_every_command_that_reads_them() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    houses(&at("houses"));
    // The file that is damaged, the command that reads it, and other files that it needs.
    let rows: &[(&str, &str)] = &[
        ("bad.safetensors", "evaluate bad.safetensors"),
        ("bad.safetensors", "dev fixture bad.safetensors"),
        ("bad.safetensors", "train --set teacher.models=bad.safetensors --device cpu --run-dir run"),
        ("bad.safetensors", "train --set model.pretrained=bad.safetensors --device cpu --run-dir run"),
        ("l3/templates.json", "data import-l3 l3 -o new"),
        ("l3b/corpus.json", "data import-l3 l3b -o new"),
        ("r2r/connectivity/h_connectivity.json", "data import-r2r r2r -o new"),
        ("boxes/h_a.json", "data import-r2r houses --boxes boxes -o new"),
        ("features.tsv", "data import-r2r houses --features features.tsv -o new"),
        ("corpus/corpus.json.gz", "data describe corpus"),
        ("corpus/corpus.json.gz", "train --set task.world=corpus --set task.path=corpus --device cpu --run-dir run"),
        ("nav/graphs.json.gz", "nav score --nav-data nav"),
        ("nav/graphs.json.gz", "nav actions --nav-data nav"),
        ("results/a.json", "report --results results"),
        ("run-of/best.safetensors", "report --run run-of"),
        ("run-of/best.safetensors", "train --run-dir run-of --resume --device cpu"),
        ("data/iliad.sqlite", "export --data-dir data"),
        ("bad.toml", "--config bad.toml --print-config"),
    ];
    for (name, command) in rows {
        for (what, bytes) in damages() {
            let path = at(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            match &bytes {
                None => std::fs::create_dir(&path).unwrap(),
                Some(bytes) => std::fs::write(&path, bytes).unwrap(),
            }
            let (code, told) = run(home.path(), command, b"");
            // An empty TOML file is a file of no settings; an empty database is a new one; what is in a folder is no file.
            let fine = match *name {
                "bad.toml" => ["nothing", "a mark alone", "another document"].contains(&what),
                // The store's own tests hold how it treats a database of which nothing is left.
                "data/iliad.sqlite" => ["nothing", "one byte"].contains(&what),
                "l3/templates.json" | "l3b/corpus.json" => what == "a folder",
                _ => false,
            };
            assert!((0..3).contains(&code), "{command} with {what} ended with {code}: {told}");
            assert!(!told.contains("panicked"), "{command} with {what}: {told}");
            if !fine {
                assert!([1, 2].contains(&code), "{command} with {what} ended with {code}: {told}");
                let file = name.rsplit('/').next().unwrap();
                let folder = name.split('/').next().unwrap();
                assert!(told.contains(file) || told.contains(folder), "{command} with {what} names no file: {told}");
            }
            if path.is_dir() {
                std::fs::remove_dir_all(&path).unwrap()
            } else {
                std::fs::remove_file(&path).unwrap()
            }
            for left in ["new", "run"] {
                assert!(!at(left).join("words.txt.gz").exists() && !at(left).join("r2r.json.gz").exists(), "{command}");
                let _ = std::fs::remove_dir_all(at(left));
            }
            let _ = std::fs::remove_file(at("data/iliad.sqlite-wal"));
            let _ = std::fs::remove_file(at("data/iliad.sqlite-shm"));
            assert!(
                !std::fs::read_dir(home.path()).unwrap().any(|e| e
                    .unwrap()
                    .file_name()
                    .to_string_lossy()
                    .ends_with(".part"))
            );
        }
    }
}

#[test]
fn lines_with_a_mark_and_windows_ends_are_read_and_bad_ones_named() {
    let home = tempfile::tempdir().unwrap();
    let good = "{\"expression\": \"()(n)()@c\", \"word\": \"embolden\"}\r\n";
    assert_eq!(run(home.path(), "execute regex", format!("\u{feff}{good}{good}").as_bytes()), (0, String::new()));
    let (code, told) = run(home.path(), "execute regex", format!("{good}\u{feff}{good}").as_bytes());
    assert!(code == 2 && told.starts_with("line 2: "), "{told}");
    let (code, told) = run(home.path(), "execute regex", b"\xff\xfe\n\0\n");
    assert!(code == 2 && told.contains("line 1: it is not UTF-8") && told.contains("line 2: "), "{told}");
}

#[test]
fn absurd_numbers_are_told_what_is_taken() {
    let home = tempfile::tempdir().unwrap();
    for (arguments, part) in [
        ("train --seed -1", "a whole number from 0 to 9007199254740991"),
        ("train --seed 1e9", "a whole number"),
        ("train --seed 18446744073709551615", "a whole number"),
        ("train --set seed=18446744073709551615", "the seed is a whole number"),
        ("nav house --seed 99999999999999999999", "a whole number"),
        ("--port -1", "is no port; use a number from 0"),
        ("--port 70000", "is no port; use a number from 0"),
        ("doctor --port x", "is no port"),
        ("evaluate x --limit -3", "a whole number"),
        ("teacher train -o x --batch 1000000000000000", "a whole number from 1 to 4096"),
        ("teacher train -o x --seconds nan", "a number of seconds"),
        ("reproduce regex --table main --seconds -5", "a number of seconds"),
        ("reproduce regex --table main --seeds 1,-2", "a whole number"),
        ("dev bench --samples 99999999999999", "a whole number"),
        ("dev theory --epochs 1000000 --starts 100", "are the most"),
        ("theory --actions 0", "1..=200"),
        ("train --set algorithm.batch=-1", "`algorithm.batch=-1` cannot be used"),
        ("train --set model.hidden=1000000000000", "model.hidden lies between"),
    ] {
        let (code, told) = run(home.path(), arguments, b"");
        assert!(code == 2 && told.contains(part), "{arguments} ended with {code}: {told}");
    }
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "nothing was written");
}

#[test]
fn slips_are_told_what_was_meant() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("slip.toml"), "data-dir = \"x\"\n").unwrap();
    for (arguments, part) in [
        ("train --preset tinny", "did you mean `regex/tiny`?"),
        ("train --preset nav/smal", "did you mean `nav/small`?"),
        ("train --set algorithm.bach=3", "did you mean `algorithm.batch`?"),
        ("train --set algorithm.name=dager", "did you mean `dagger`?"),
        ("train --set task.world=builtn", "did you mean `builtin`?"),
        ("train --set model.leters=plain", "did you mean `model.letters`?"),
        ("pretrain -o x --preset papr", "did you mean `regex/paper`?"),
        ("presets tinny", "did you mean `regex/tiny`?"),
        ("reproduce regexx --table main", "did you mean `regex`?"),
        ("reproduce regex --table mian", "'main'"),
        ("reproduce regex --table main --row adell", "did you mean `adel`?"),
        ("evaluate x --split tets", "'test'"),
        ("bench --preset tiny --only update", "did you mean `updates`?"),
        ("--config slip.toml --print-config", "did you mean `data_dir`?"),
        ("trian", "'train'"),
    ] {
        let (code, told) = run(home.path(), arguments, b"");
        assert!(code == 2 && told.contains(part), "{arguments} ended with {code}: {told}");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_iliad"));
    let told = command.env("ILIAD_ACCES_TOKEN", "correct-horse-battery").arg("--print-config").output().unwrap();
    let words = String::from_utf8(told.stderr).unwrap();
    assert_eq!(told.status.code(), Some(2));
    assert!(words.contains("ILIAD_ACCES_TOKEN") && words.contains("did you mean ILIAD_ACCESS_TOKEN?"), "{words}");
}
