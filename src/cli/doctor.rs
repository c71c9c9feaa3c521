//! `iliad doctor` checks the installation and gives advice about each problem.

use super::runtime;
use super::settings::Listen;
use crate::app::start;
use crate::command_line::settings::Common;
use crate::command_line::{CliResult, Exit};
use crate::config::server::{DatabaseAddress, DeviceChoice, ServerConfig};
use crate::output::{json, out, print};
use crate::store::Store;
use crate::web::listener;
use serde::Serialize;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

const AFTER: &str = "\
Looks at the data folder, the database, the free disk space, the models and pages in this build, the device, the \
port, who may steer and how many connections there is room for, with the same settings a server would have. Nothing is changed, but an older database is brought up to date.

Examples:
  iliad doctor                            one line each, with what to do about problems
  iliad doctor --data-dir /srv/iliad      of another data folder
  iliad doctor --json                     as one line of JSON

Ends with code 0 when all is in order, 1 when something is not.";

/// Flags of `iliad doctor`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER)]
pub(super) struct Args {
    /// Write the findings as one line of JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub listen: Listen,
    #[command(flatten)]
    pub common: Common,
}

/// Below this much free space people's words and checkpoints are in danger.
const ENOUGH_DISK: u64 = 1 << 30;

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    ok: bool,
    /// The finding.
    found: String,
    /// The advice; none where all is in order.
    advice: Option<String>,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Check {
        Check { name, ok: true, found: found.into(), advice: None }
    }

    fn problem(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Check {
        Check { name, ok: false, found: found.into(), advice: Some(advice.into()) }
    }

    fn trouble(name: &'static str, trouble: start::Trouble) -> Check {
        Check::problem(name, trouble.found, trouble.advice)
    }
}

/// All findings.
#[derive(Debug, Serialize)]
struct Findings {
    ok: bool,
    checks: Vec<Check>,
}

/// Carries out `iliad doctor`.
pub(super) fn run(args: &Args) -> CliResult {
    let settings = args.common.load_with(args.listen.given())?;
    let checks = vec![
        folder(&settings.data_dir),
        runtime()?.block_on(database(&settings.database())),
        disk(&settings.data_dir),
        models(&crate::family::shipped::shipped_models()),
        pages(&crate::web::vendor_files()),
        device(settings.device),
        port(&settings),
        steering(&settings),
        connections(&settings),
    ];
    let findings = Findings { ok: checks.iter().all(|check| check.ok), checks };
    if args.json {
        out!("{}", json::line(&findings)?)?;
    } else {
        print(format_args!("{}", table(&findings)))?;
    }
    Ok(if findings.ok { Exit::Done } else { Exit::Failed })
}

/// One line a check; advice stands on a line of its own below.
fn table(findings: &Findings) -> String {
    let mut text = String::new();
    for Check { name, ok, found, advice } in &findings.checks {
        text += &format!("{:<8} {name:<12} {found}\n", if *ok { "ok" } else { "PROBLEM" });
        if let Some(advice) = advice {
            text += &format!("{:<8} {:<12} {advice}\n", "", "");
        }
    }
    text
}

/// The nearest folder that exists: the data folder, or where it would be made.
fn nearest(folder: &Path) -> PathBuf {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    absolute.ancestors().find(|path| path.exists()).unwrap_or(Path::new(".")).to_owned()
}

fn folder(data_dir: &Path) -> Check {
    const NAME: &str = "data folder";
    let shown = data_dir.display();
    let at = nearest(data_dir);
    let runs = Some(data_dir.join("runs")).filter(|runs| runs.is_dir());
    let folders = [Some(at.clone()), runs];
    let tried = folders.iter().flatten().try_for_each(|folder| start::probe(folder).map_err(|error| (error, folder)));
    match tried {
        Ok(()) if data_dir.is_dir() => Check::ok(NAME, format!("{shown} can be written")),
        Ok(()) => Check::ok(NAME, format!("{shown} can be made (at the first start)")),
        Err((error, folder)) => Check::trouble(NAME, start::folder_trouble(&error, folder)),
    }
}

async fn database(address: &DatabaseAddress) -> Check {
    const NAME: &str = "database";
    if !address.exists() {
        return Check::ok(NAME, "none yet; it is made at the first start");
    }
    let looked = Store::reading(address, async |store| {
        store.check().await?;
        Ok((store.run_count().await?, store.export_count(None).await?))
    });
    match looked.await.flatten() {
        Ok((runs, answers)) => Check::ok(NAME, {
            let count = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
            format!("{address} is whole: {}, {}", count(runs, "run"), count(answers, "answer"))
        }),
        Err(error) => Check::trouble(NAME, start::database_trouble(&error, address)),
    }
}

fn disk(data_dir: &Path) -> Check {
    const NAME: &str = "disk";
    match fs4::available_space(nearest(data_dir)) {
        Ok(free) if free >= ENOUGH_DISK => Check::ok(NAME, format!("{:.1} GiB free", gib(free))),
        Ok(free) => {
            let advice = "make room: a run that cannot write its checkpoints or people's words stops";
            Check::problem(NAME, format!("only {:.2} GiB free", gib(free)), advice)
        }
        Err(e) => Check::problem(NAME, format!("the free space is not known ({e})"), "look at the disk by hand"),
    }
}

fn gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}

fn models(shipped: &[(String, Vec<u8>)]) -> Check {
    const NAME: &str = "teacher";
    if shipped.is_empty() {
        let advice = "take a complete copy of the project and build again, or make one with `iliad teacher train`";
        return Check::problem(NAME, "this build holds no simulated teacher", advice);
    }
    for (name, bytes) in shipped {
        if let Err(e) = safetensors::SafeTensors::deserialize(bytes) {
            let advice = "take a fresh copy of the project and build again";
            return Check::problem(NAME, format!("the model {name} in this build cannot be read ({e})"), advice);
        }
    }
    let names: Vec<&str> = shipped.iter().map(|(name, _)| name.as_str()).collect();
    Check::ok(NAME, format!("{} in this build can be read", names.join(", ")))
}

fn pages(files: &[(String, usize)]) -> Check {
    const NAME: &str = "pages";
    let advice = "install Node.js and build again; the build fetches what the pages need";
    if files.is_empty() {
        return Check::problem(NAME, "this build lacks the scripts that pages need", advice);
    }
    match files.iter().find(|(_, size)| *size == 0) {
        Some((name, _)) => Check::problem(NAME, format!("{name} in this build is empty"), advice),
        None => Check::ok(NAME, format!("{} third-party files in this build", files.len())),
    }
}

fn device(choice: DeviceChoice) -> Check {
    const NAME: &str = "device";
    let number = match choice {
        DeviceChoice::Cpu => None,
        DeviceChoice::Auto => Some(0),
        DeviceChoice::Cuda(number) => Some(number),
    };
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let cpu = format!("cpu with {cores} cores");
    let Some(number) = number else { return Check::ok(NAME, cpu) };
    match candle_core::Device::new_cuda(number) {
        Ok(_) => Check::ok(NAME, format!("cuda:{number}")),
        Err(_) if choice == DeviceChoice::Auto => Check::ok(NAME, cpu),
        Err(_) if !crate::nn::device::GPU_SUPPORT => {
            let advice = "build with `--features cuda` (docs/gpu.md), or use --device cpu";
            Check::problem(NAME, format!("{choice} is asked for, but this build uses the CPU alone"), advice)
        }
        Err(e) => {
            Check::problem(NAME, format!("{choice} cannot be used ({e})"), "look at nvidia-smi, or use --device cpu")
        }
    }
}

fn port(settings: &ServerConfig) -> Check {
    const NAME: &str = "port";
    let address = SocketAddr::new(settings.address, settings.port);
    match TcpListener::bind(address) {
        Ok(_) if settings.port == 0 => Check::ok(NAME, format!("any free port of {}", settings.address)),
        Ok(_) => Check::ok(NAME, format!("{address} is free")),
        Err(e)
            if e.kind() == std::io::ErrorKind::AddrInUse && start::is_iliad(address, settings.base_path.as_str()) =>
        {
            Check::ok(NAME, format!("an Iliad server is running on {address}"))
        }
        Err(error) => Check::trouble(NAME, start::listen_trouble(&error, settings)),
    }
}

/// Who may steer: nothing can be wrong with it, but it may not be what was meant.
fn steering(settings: &ServerConfig) -> Check {
    Check::ok("steering", settings.steering().to_string())
}

/// The number of connections that fit beside the open files.
fn connections(settings: &ServerConfig) -> Check {
    const NAME: &str = "connections";
    let descriptors = listener::raise_descriptors();
    let limits = start::connection_limits(settings, descriptors);
    let found = format!("{} at once, {} of one address ({descriptors} open files)", limits.in_all, limits.per_address);
    if limits.in_all < 64 {
        return Check::problem(NAME, found, "raise the limit of open files (`ulimit -n`) for more visitors at once");
    }
    Check::ok(NAME, found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::server::{Flags, ServerConfig};
    use std::io::{Read, Write};

    fn settings(port: u16) -> ServerConfig {
        let flags = Flags { file: None, given: vec![("port", port.to_string())] };
        ServerConfig::resolve(&flags, |_| None, Path::new("nowhere")).unwrap()
    }

    #[test]
    fn a_folder_is_probed_and_left_as_it_was() {
        let home = tempfile::tempdir().unwrap();
        assert!(folder(home.path()).found.ends_with("can be written"));
        let inner = home.path().join("a").join("b");
        assert!(folder(&inner).found.contains("can be made"));
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
        let file = home.path().join("file");
        std::fs::write(&file, "x").unwrap();
        let check = folder(&file.join("data"));
        assert!(!check.ok && check.found.contains("is a file"), "{check:?}");
    }

    #[tokio::test]
    async fn the_database_is_looked_through() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("iliad.sqlite");
        assert!(database(&path.as_path().into()).await.ok);
        assert!(!path.exists(), "none is made by looking");
        Store::open(&path).await.unwrap().close().await;
        let check = database(&path.as_path().into()).await;
        assert!(check.ok && check.found.ends_with("0 runs, 0 answers"), "{check:?}");
        std::fs::write(&path, "no database").unwrap();
        let check = database(&path.as_path().into()).await;
        assert!(!check.ok && check.found.contains("is no database"), "{check:?}");
    }

    #[test]
    fn a_taken_port_says_by_whom() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = listener.local_addr().unwrap().port();
        let answering = std::thread::spawn(move || {
            for body in ["{\"status\":\"ok\"}", "hello"] {
                let (mut stream, _) = listener.accept().unwrap();
                let mut asked = Vec::new();
                while !asked.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    asked.push(byte[0]);
                }
                assert!(asked.starts_with(b"GET /healthz HTTP/1.1\r\n"));
                stream.write_all(format!("HTTP/1.1 200 OK\r\n\r\n{body}").as_bytes()).unwrap();
            }
            listener
        });
        assert!(port(&settings(taken)).found.starts_with("an Iliad server is running"));
        let other = port(&settings(taken));
        assert!(!other.ok && other.found.contains("taken by another program"), "{other:?}");
        drop(answering.join().unwrap());
        assert!(port(&settings(0)).ok);
    }

    #[test]
    fn missing_or_damaged_parts_of_the_build_are_problems() {
        assert!(!models(&[]).ok && !pages(&[]).ok);
        let damaged = models(&[("teacher.safetensors".into(), b"not a model".to_vec())]);
        assert!(!damaged.ok && damaged.found.contains("teacher.safetensors"), "{damaged:?}");
        let tensors: Vec<(String, safetensors::tensor::TensorView<'_>)> = Vec::new();
        let good = safetensors::serialize(tensors, None).unwrap();
        assert!(models(&[("teacher.safetensors".into(), good)]).ok);
        assert!(!pages(&[("plot.js".into(), 0)]).ok);
        assert!(pages(&[("plot.js".into(), 10)]).ok);
    }

    #[test]
    fn the_cpu_is_always_there_and_a_missing_gpu_is_said() {
        assert!(device(DeviceChoice::Cpu).ok && device(DeviceChoice::Auto).ok);
        let check = device(DeviceChoice::Cuda(97));
        assert!(!check.ok && check.advice.is_some(), "{check:?}");
    }

    #[test]
    fn every_problem_comes_with_advice() {
        let findings =
            Findings { ok: false, checks: vec![Check::ok("a", "fine"), Check::problem("b", "bad", "mend it")] };
        assert_eq!(
            table(&findings),
            "ok       a            fine\nPROBLEM  b            bad\n                      mend it\n"
        );
        let json = serde_json::to_value(&findings).unwrap();
        assert_eq!(json["checks"][1]["advice"], "mend it");
        assert_eq!((&json["ok"], &json["checks"][0]["advice"]), (&false.into(), &serde_json::Value::Null));
    }
}
