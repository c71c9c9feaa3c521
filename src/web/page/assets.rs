//! Static files out of the binary. Pages address them under one version for all (`/static/{version}/…`), so that
//! modules can import each other by relative paths and browsers may keep every file for ever.

use rust_embed::RustEmbed;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::sync::LazyLock;

/// Our own files. `build.rs` has this crate compiled again when one comes or goes.
#[derive(RustEmbed)]
#[folder = "static/"]
struct Own;

/// Third-party files that `build.rs` fetched from npm by the lockfile: (path under `/static/`, content).
const VENDOR: [(&str, &[u8]); 8] = [
    ("vendor/d3.js", include_bytes!(concat!(env!("OUT_DIR"), "/vendor/d3.js"))),
    ("vendor/d3.LICENSE.txt", include_bytes!(concat!(env!("OUT_DIR"), "/vendor/d3.LICENSE.txt"))),
    ("vendor/uplot.js", include_bytes!(concat!(env!("OUT_DIR"), "/vendor/uplot.js"))),
    ("vendor/uplot.css", include_bytes!(concat!(env!("OUT_DIR"), "/vendor/uplot.css"))),
    ("vendor/uplot.LICENSE.txt", include_bytes!(concat!(env!("OUT_DIR"), "/vendor/uplot.LICENSE.txt"))),
    ("vendor/three.module.min.js", include_bytes!(concat!(env!("OUT_DIR"), "/vendor/three.module.min.js"))),
    ("vendor/three.core.min.js", include_bytes!(concat!(env!("OUT_DIR"), "/vendor/three.core.min.js"))),
    ("vendor/three.LICENSE.txt", include_bytes!(concat!(env!("OUT_DIR"), "/vendor/three.LICENSE.txt"))),
];

/// Names and sizes of the third-party files in this build, for `iliad doctor`.
pub fn vendor_files() -> Vec<(String, usize)> {
    VENDOR.iter().map(|(name, bytes)| (name.to_string(), bytes.len())).collect()
}

/// Digest of all static files together.
pub(crate) fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let mut paths: Vec<Cow<'static, str>> = Own::iter().collect();
        paths.sort();
        let mut hash = Sha256::new();
        for path in paths {
            if let Some(file) = Own::get(&path) {
                hash.update(path.as_bytes());
                hash.update(file.metadata.sha256_hash());
            }
        }
        VENDOR.iter().for_each(|(_, content)| hash.update(content));
        hex::encode(&hash.finalize()[..8])
    });
    &VERSION
}

/// Content type by the end of the name; only what pages use is served, so `package.json` and the like are not.
fn content_type(path: &str) -> Option<&'static str> {
    Some(match path.rsplit_once('.')?.1 {
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" => "image/jpeg",
        "webp" => "image/webp",
        "woff2" => "font/woff2",
        "glb" => "model/gltf-binary",
        "txt" => "text/plain; charset=utf-8",
        "webmanifest" => "application/manifest+json",
        _ => return None,
    })
}

/// Content and content type of a file.
pub(crate) fn find(path: &str) -> Option<(Cow<'static, [u8]>, &'static str)> {
    let kind = content_type(path)?;
    if let Some((_, content)) = VENDOR.iter().find(|(name, _)| *name == path) {
        return Some((Cow::Borrowed(*content), kind));
    }
    Own::get(path).map(|file| (file.data, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_files_are_in_the_binary_and_others_are_not_served() {
        for path in ["css/base.css", "js/teach.js", "vendor/uplot.js", "vendor/uplot.css", "vendor/three.core.min.js"] {
            assert!(find(path).is_some_and(|(content, _)| !content.is_empty()), "{path}");
        }
        for path in ["package.json", "package-lock.json", "../Cargo.toml", "css/none.css"] {
            assert!(find(path).is_none(), "{path}");
        }
    }

    #[test]
    fn what_families_load_is_there() {
        for family in crate::registry::Registry::builtin().families() {
            for path in family.modules().iter().copied().chain(family.script()) {
                assert!(find(path).is_some(), "{path} of {}", family.name());
            }
        }
    }
}
