//! Fetches the pages' third-party files from npm, by the lockfile, and leaves them where `src/web/assets.rs` embeds them.
//! With the feature `cuda` it also compiles the GPU kernels, so that no start of the program has to.
//!
//! Runs npm only when the lockfile changed. Nothing is written outside of Cargo's own build folder.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// (file in the package, name in the vendor folder).
/// three.js is two modules, and the first imports the second by its own name. 0.185 is the last that comes minified.
const FILES: [(&str, &str); 8] = [
    ("d3/dist/d3.min.js", "d3.js"),
    ("d3/LICENSE", "d3.LICENSE.txt"),
    ("uplot/dist/uPlot.iife.min.js", "uplot.js"),
    ("uplot/dist/uPlot.min.css", "uplot.css"),
    ("uplot/LICENSE", "uplot.LICENSE.txt"),
    ("three/build/three.module.min.js", "three.module.min.js"),
    ("three/build/three.core.min.js", "three.core.min.js"),
    ("three/LICENSE", "three.LICENSE.txt"),
];

const LOCKED: [&str; 3] = ["package.json", "package-lock.json", ".npmrc"];

fn main() {
    // Templates are tracked by Askama, existing static files and texts by the embedding; this notices new and deleted ones.
    println!("cargo::rerun-if-changed=static");
    println!("cargo::rerun-if-changed=templates");
    println!("cargo::rerun-if-changed=docs");
    println!("cargo::rerun-if-changed=migrations");
    check_sql_offline();
    let kernels = if env::var_os("CARGO_FEATURE_CUDA").is_some() { compile_kernels() } else { Ok(()) };
    if let Err(sentence) = fetch().and(kernels) {
        println!("cargo::error={sentence}");
        std::process::exit(1);
    }
}

/// Lets the macros of sqlx check the statements against the committed data in `.sqlx/`, whatever `DATABASE_URL` says,
/// which may belong to another program. `tests/sqlx-data` makes these data and sets `SQLX_OFFLINE` to `false` for it.
fn check_sql_offline() {
    println!("cargo::rerun-if-changed=.sqlx");
    println!("cargo::rerun-if-env-changed=SQLX_OFFLINE");
    println!("cargo::rerun-if-env-changed=SQLX_OFFLINE_DIR");
    if env::var_os("SQLX_OFFLINE").is_none() {
        println!("cargo::rustc-env=SQLX_OFFLINE=true");
    }
}

/// The kernels' sources, in the order in which they know each other.
const KERNELS: [&str; 7] = ["kernels", "transformer", "walks", "small_gemm", "recurrence", "time", "persistent_kernel"];

/// Compiles the kernels for the cards that the binary must run on, into one `kernels.fatbin` that
/// `src/nn/cuda/backend/module.rs` embeds: machine code for the oldest generation asked for and for the H100's where that is
/// newer, and PTX of the newest of the two, which the driver translates on cards that are newer still.
fn compile_kernels() -> Result<(), String> {
    println!("cargo::rerun-if-changed=src/nn/cuda");
    println!("cargo::rerun-if-env-changed=CUDA_COMPUTE_CAP");
    println!("cargo::rerun-if-env-changed=CUDA_HOME");
    let out = env::var("OUT_DIR").map_err(|_| "build.rs must be run by Cargo".to_owned())?;
    let mut source = String::new();
    for name in KERNELS {
        let path = format!("src/nn/cuda/{name}.cu");
        let text = fs::read_to_string(&path).map_err(|error| format!("cannot read {path}: {error}"))?;
        source.push_str(&format!("#line 1 \"{path}\"\n{text}\n"));
    }
    let (all, image) = (Path::new(&out).join("kernels.cu"), Path::new(&out).join("kernels.fatbin"));
    fs::write(&all, source).map_err(|error| format!("cannot write {}: {error}", all.display()))?;
    let oldest = compute_capability();
    let newest = oldest.max(90);
    let mut command = Command::new(match env::var_os("CUDA_HOME") {
        Some(home) => Path::new(&home).join("bin/nvcc").into_os_string(),
        None => "nvcc".into(),
    });
    command.args(["-fatbin", "-O3"]);
    for generation in if oldest < newest { vec![oldest, newest] } else { vec![newest] } {
        command.arg(format!("-gencode=arch=compute_{generation},code=sm_{generation}"));
    }
    command.arg(format!("-gencode=arch=compute_{newest},code=compute_{newest}")).arg(&all).arg("-o").arg(&image);
    let ran = command.output().map_err(|error| {
        format!("the feature `cuda` needs the CUDA toolkit's nvcc on the PATH or under CUDA_HOME, and running it failed: {error}")
    })?;
    if !ran.status.success() {
        return Err(format!("nvcc refused the kernels: {}", String::from_utf8_lossy(&ran.stderr).replace('\n', " | ")));
    }
    Ok(())
}

/// The compute capability of the oldest card to run on, as Candle's own build finds it: `CUDA_COMPUTE_CAP`, else that
/// of this machine's card, else 80, below which nothing here runs.
fn compute_capability() -> u32 {
    let number = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>().parse().ok();
    let card = || {
        let asked =
            Command::new("nvidia-smi").args(["--query-gpu=compute_cap", "--format=csv,noheader"]).output().ok()?;
        number(String::from_utf8_lossy(&asked.stdout).lines().next()?)
    };
    env::var("CUDA_COMPUTE_CAP").ok().and_then(|text| number(&text)).or_else(card).unwrap_or(80)
}

fn fetch() -> Result<(), String> {
    let out = env::var("OUT_DIR").map_err(|_| "build.rs must be run by Cargo".to_owned())?;
    let (source, npm, vendor) = (Path::new("static"), Path::new(&out).join("npm"), Path::new(&out).join("vendor"));
    let told = |what: &str, path: &Path, error: std::io::Error| format!("cannot {what} {}: {error}", path.display());

    let mut locked = Vec::new();
    for name in LOCKED {
        let path = source.join(name);
        locked.push(fs::read(&path).map_err(|error| told("read", &path, error))?);
    }
    let stamp = npm.join("installed");
    let wanted = locked.concat();
    let there = FILES.iter().all(|(_, name)| vendor.join(name).is_file());
    if there && fs::read(&stamp).is_ok_and(|had| had == wanted) {
        return Ok(());
    }

    fs::create_dir_all(&npm).map_err(|error| told("create", &npm, error))?;
    for (name, content) in LOCKED.iter().zip(&locked) {
        let path = npm.join(name);
        fs::write(&path, content).map_err(|error| told("write", &path, error))?;
    }
    let program = if cfg!(windows) { "npm.cmd" } else { "npm" };
    let ran = Command::new(program)
        .args(["ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"])
        .current_dir(&npm)
        .output()
        .map_err(|error| {
            format!("the pages need npm (it comes with Node.js 20 or newer) once at build time, and running `{program}` failed: {error}")
        })?;
    if !ran.status.success() {
        let said = String::from_utf8_lossy(&ran.stderr);
        let last: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).take(6).collect();
        return Err(format!(
            "`npm ci` could not fetch the pages' third-party files; is the registry reachable? It said: {}",
            last.join(" | ")
        ));
    }
    fs::create_dir_all(&vendor).map_err(|error| told("create", &vendor, error))?;
    for (from, to) in FILES {
        let path = npm.join("node_modules").join(from);
        fs::copy(&path, vendor.join(to)).map_err(|error| told("copy", &path, error))?;
    }
    fs::write(&stamp, wanted).map_err(|error| told("write", &stamp, error))
}
