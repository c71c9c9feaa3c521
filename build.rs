//! Fetches the pages' third-party files from npm, by the lockfile, and leaves them where `src/web/assets.rs` embeds them.
//!
//! Runs npm only when the lockfile changed. Nothing is written outside of Cargo's own build folder.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// (file in the package, name in the vendor folder).
/// three.js is two modules, and the first imports the second by its own name. 0.185 is the last that comes minified.
const FILES: [(&str, &str); 6] = [
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
    if let Err(sentence) = fetch() {
        println!("cargo::error={sentence}");
        std::process::exit(1);
    }
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
