//! The files for those who deploy it are what they say: unit, container, archive, bill of materials.

use crate::{Server, iliad, wait_for};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const UNIT: &str = include_str!("../../docs/deploy/iliad.service");
const DOCKERFILE: &str = include_str!("../../docs/deploy/Dockerfile");
const GUIDE: &str = include_str!("../../docs/deploy.md");

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs a program that may not be installed; `None` where it is not.
fn program(name: &str, arguments: &[&str]) -> Option<Output> {
    let output = Command::new(name).args(arguments).current_dir(root()).output();
    match output {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            println!("skipped: {name} is not installed");
            None
        }
        Err(error) => panic!("{name}: {error}"),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_unit_of_systemd_is_whole_and_hardened() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("iliad.service");
    std::fs::write(&file, UNIT.replace("/usr/local/bin/iliad", env!("CARGO_BIN_EXE_iliad"))).unwrap();
    let file = file.to_str().unwrap();
    let Some(verified) = program("systemd-analyze", &["verify", file]) else { return };
    let told = text(&verified.stdout) + &text(&verified.stderr);
    // It looks at the units of the machine, too; ours is what is judged.
    let ours: Vec<_> = told.lines().filter(|line| line.contains("iliad.service")).collect();
    assert!(ours.is_empty(), "{told}");
    let judged =
        program("systemd-analyze", &["security", "--offline=true", "--threshold=20", "--no-pager", file]).unwrap();
    let told = text(&judged.stdout) + &text(&judged.stderr);
    if told.contains("unrecognized option") || told.contains("Unknown option") {
        println!("skipped: this systemd judges no files");
        return;
    }
    assert!(judged.status.success(), "its exposure is above 2.0:\n{told}");
}

/// The instructions of the last stage, with lines that go on put together.
fn last_stage() -> Vec<String> {
    let joined = DOCKERFILE.replace("\\\n", " ");
    let lines = joined.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let lines: Vec<String> = lines.map(str::to_owned).collect();
    let last = lines.iter().rposition(|line| line.starts_with("FROM ")).unwrap();
    assert!(lines.iter().filter(|line| line.starts_with("FROM ")).count() > 1, "it is built in stages");
    lines[last..].to_vec()
}

#[test]
fn the_container_runs_as_nobody_special_and_says_how_it_is() {
    let stage = last_stage();
    let one = |word: &str| stage.iter().find(|line| line.starts_with(word)).unwrap_or_else(|| panic!("no {word}"));
    let user = one("USER ");
    assert!(!user.contains("root") && !user.contains(" 0"), "{user}");
    assert_eq!(one("VOLUME "), "VOLUME /data");
    assert!(one("ENV ").contains("ILIAD_DATA_DIR=/data"));
    let asked = one("HEALTHCHECK ");
    assert!(asked.ends_with("CMD [\"iliad\", \"ready\"]"), "{asked}");
    assert!(GUIDE.contains("--volume iliad-data:/data"), "the guide names the volume");
    // The list of what stays out of the image must not leave out what the build needs.
    let ignored = std::fs::read_to_string(root().join("docs/deploy/Dockerfile.dockerignore")).unwrap();
    for needed in
        ["src", "templates", "static", "migrations", "model_store", "docs", ".sqlx", "Cargo.lock", "README.md"]
    {
        assert!(!ignored.lines().any(|line| line.trim_matches('/') == needed), "{needed} is left out of the build");
    }
}

#[test]
fn the_program_says_whether_a_server_is_ready() {
    let server = Server::start("", &["--base-path", "/iliad"], &[]);
    let port = server.address.rsplit(':').next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let ready = |arguments: &[&str]| {
        let Output { status, stdout, stderr } = iliad(folder.path(), "").arg("ready").args(arguments).output().unwrap();
        (status.code(), text(&stdout), text(&stderr))
    };
    wait_for("readiness", || ready(&["--port", port, "--base-path", "/iliad"]).0 == Some(0));
    let (_, said, _) = ready(&["--port", port, "--base-path", "/iliad", "--address", "0.0.0.0"]);
    assert!(said.contains("\"status\":\"ready\"") && said.contains("\"trainer\":\"ok\""), "{said}");
    let nobody = crate::free_port().to_string();
    let (code, _, told) = ready(&["--port", &nobody]);
    assert!(code == Some(1) && told.contains("does not answer"), "{told}");
}

/// An archive of `program`; its bytes.
fn archive(folder: &Path, program_file: &Path, name: &str) -> Option<Vec<u8>> {
    let (script, to) = (root().join("docs/deploy/archive"), folder.join(name));
    let paths = [script.as_path(), program_file, to.as_path()].map(|path| path.to_str().unwrap());
    let made = program("bash", &[paths[0], "--program", paths[1], "--output", paths[2]])?;
    assert!(made.status.success(), "{}{}", text(&made.stdout), text(&made.stderr));
    Some(std::fs::read(to).unwrap())
}

#[cfg(target_os = "linux")]
#[test]
fn an_archive_that_is_made_twice_is_the_same() {
    if program("python3", &["--version"]).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // The content makes no difference to the script, and the program of the tests takes a minute to pack.
    let file = folder.path().join("program");
    std::fs::write(&file, "a program").unwrap();
    let Some(first) = archive(folder.path(), &file, "first.tar.gz") else { return };
    // Another file with the same content, of another time.
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, "a program").unwrap();
    let second = archive(folder.path(), &file, "second.tar.gz").unwrap();
    assert!(first == second, "two archives of one program differ");
    let listed = program("tar", &["-tzf", folder.path().join("first.tar.gz").to_str().unwrap()]).unwrap();
    let listed = text(&listed.stdout);
    for file in ["/iliad\n", "/iliad.service\n", "/nginx.conf\n", "/Caddyfile\n", "/sbom.cdx.json\n", "/MIT.txt\n"] {
        assert!(listed.contains(file), "{file:?} is not among\n{listed}");
    }
}

#[test]
fn the_bill_of_materials_names_every_package() {
    let script: PathBuf = root().join("docs/deploy/sbom");
    let Some(made) = program("python3", &[script.to_str().unwrap()]) else { return };
    assert!(made.status.success(), "{}", text(&made.stderr));
    let bill: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
    assert_eq!((bill["bomFormat"].as_str(), bill["specVersion"].as_str()), (Some("CycloneDX"), Some("1.5")));
    let components = bill["components"].as_array().unwrap();
    let find = |purl: &str| components.iter().find(|one| one["purl"].as_str().is_some_and(|p| p.starts_with(purl)));
    for package in ["pkg:cargo/axum@", "pkg:cargo/tokio@", "pkg:cargo/candle-core@", "pkg:npm/d3@", "pkg:npm/three@"] {
        let component = find(package).unwrap_or_else(|| panic!("{package} is not in the bill"));
        assert!(component["hashes"][0]["content"].as_str().is_some_and(|hash| hash.len() >= 64), "{component}");
    }
    // Tests and benchmarks are not part of the program.
    assert!(find("pkg:cargo/proptest@").is_none());
}
