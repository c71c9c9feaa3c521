//! Forms with files, and bodies that are a file. Each file is written into a folder of its own as it comes, so that none is held in memory, and the folder goes
//! with the request.

use crate::web::error::Error;
use crate::web::state::AppState;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::header;
use axum::http::request::Parts;
use futures::{Stream, StreamExt};
use multer::Multipart;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tempfile::TempDir;
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

/// Most bytes of a body, which the layer that passes bodies on says of each address that takes files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UploadLimit(pub(crate) u64);

/// How long a whole form may take to come.
const WHOLE: Duration = Duration::from_secs(15 * 60);

/// Most fields, most files, and most bytes of a field that is no file.
const MOST_FIELDS: usize = 50;
const MOST_FILES: usize = 50;
const LONGEST_FIELD: usize = 64 * 1024;

/// Beginning of the names of folders of uploads.
pub(crate) const FOLDER_PREFIX: &str = ".upload-";

/// A file of a form.
#[derive(Debug)]
pub(crate) struct UploadedFile {
    /// Its name on the sender's machine, without folders. It names no file here.
    pub(crate) name: String,
    /// The temporary file that holds it.
    pub(crate) path: PathBuf,
}

/// A form with files.
#[derive(Debug)]
pub(crate) struct Upload {
    fields: Vec<(String, String)>,
    /// The files, in the order of the form. A file field that was left empty is none.
    pub(crate) files: Vec<UploadedFile>,
    /// The folder that goes with the request.
    folder: TempDir,
}

impl Upload {
    /// The files, and the folder that holds them.
    pub(crate) fn into_files(self) -> (Vec<UploadedFile>, TempDir) {
        (self.files, self.folder)
    }

    /// The text of a field; empty where the form does not have it.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.fields.iter().rev().find(|(field, _)| field == name).map_or("", |(_, text)| text)
    }
}

/// A folder for an upload, on the disk of the data folder where there is one.
fn folder(state: &AppState) -> std::io::Result<TempDir> {
    let mut made = tempfile::Builder::new();
    made.prefix(FOLDER_PREFIX);
    match &state.settings.corpora {
        Some(corpora) => {
            std::fs::create_dir_all(corpora)?;
            made.tempdir_in(corpora)
        }
        None => made.tempdir(),
    }
}

/// Removes the folders of uploads that a killed server left. A data folder has one server, so that nobody uses them.
pub(crate) fn clear(corpora: &Path) {
    let Ok(found) = std::fs::read_dir(corpora) else { return };
    for left in found.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(FOLDER_PREFIX)) {
        if let Err(error) = std::fs::remove_dir_all(left.path()) {
            tracing::warn!(folder = %left.path().display(), %error, "what is left of an upload could not be removed");
        }
    }
}

/// The name of a file without the folders before it, as any system writes them.
fn base_name(name: &str) -> String {
    name.rsplit(['/', '\\']).next().unwrap_or_default().chars().take(200).collect()
}

fn unwritable(error: &std::io::Error) -> Error {
    Error::unkept("a file that was sent", error)
}

fn broken(error: &multer::Error) -> Error {
    Error::Unreadable(format!("its form could not be read ({error})"))
}

impl FromRequest<AppState> for Upload {
    type Rejection = Error;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Error> {
        within(WHOLE, read(request, state)).await
    }
}

/// The pieces of a body, until there are too many bytes of them.
fn pieces(body: Body, UploadLimit(limit): UploadLimit) -> impl Stream<Item = Result<Bytes, Error>> {
    let mut come = 0;
    body.into_data_stream().map(move |piece| {
        let piece = piece.map_err(|_| Error::Unreadable("its body broke off".to_owned()))?;
        come += piece.len() as u64;
        if come > limit { Err(Error::TooLarge) } else { Ok(piece) }
    })
}

/// A body that is a file of its own, in a folder that goes with the request.
#[derive(Debug)]
pub(crate) struct SentFile {
    /// The temporary file that holds it.
    pub(crate) path: PathBuf,
    /// The folder that holds the file.
    pub(crate) folder: TempDir,
}

/// A body as it was kept before its handler takes it: by the layer that knows requests again.
#[derive(Clone)]
struct KeptBefore(Arc<Mutex<Option<SentFile>>>);

impl SentFile {
    /// Keeps a body for the handler further in; the SHA-256 of its bytes.
    pub(crate) async fn keep_for_handler(parts: &mut Parts, body: Body, state: &AppState) -> Result<Vec<u8>, Error> {
        let (file, digest) = within(WHOLE, SentFile::keep(parts, body, state)).await?;
        parts.extensions.insert(KeptBefore(Arc::new(Mutex::new(Some(file)))));
        Ok(digest)
    }

    async fn keep(parts: &Parts, body: Body, state: &AppState) -> Result<(SentFile, Vec<u8>), Error> {
        let limit = parts.extensions.get().copied().unwrap_or(UploadLimit(0));
        let patience = state.settings.connections.body;
        let folder = folder(state).map_err(|error| unwritable(&error))?;
        let path = folder.path().join("file");
        let mut file = File::create(&path).await.map_err(|error| unwritable(&error))?;
        let mut pieces = std::pin::pin!(pieces(body, limit));
        let mut hasher = Sha256::new();
        while let Some(piece) = within(patience, async { Ok(pieces.next().await) }).await? {
            let piece = piece?;
            hasher.update(&piece);
            file.write_all(&piece).await.map_err(|error| unwritable(&error))?;
        }
        file.flush().await.map_err(|error| unwritable(&error))?;
        Ok((SentFile { path, folder }, hasher.finalize().to_vec()))
    }
}

/// Waits for a part of a body so long, and no longer.
async fn within<T>(patience: Duration, part: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::time::timeout(patience, part).await.unwrap_or(Err(Error::SlowBody))
}

impl FromRequest<AppState> for SentFile {
    type Rejection = Error;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Error> {
        let (parts, body) = request.into_parts();
        let kept = parts.extensions.get::<KeptBefore>();
        let kept = kept.and_then(|kept| kept.0.lock().unwrap_or_else(PoisonError::into_inner).take());
        match kept {
            Some(file) => Ok(file),
            None => Ok(within(WHOLE, SentFile::keep(&parts, body, state)).await?.0),
        }
    }
}

async fn read(request: Request, state: &AppState) -> Result<Upload, Error> {
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let boundary = multer::parse_boundary(kind)
        .map_err(|_| Error::Unreadable("it is no form with files (multipart/form-data)".to_owned()))?;
    let limit = request.extensions().get().copied().unwrap_or(UploadLimit(0));
    let patience = state.settings.connections.body;
    let folder = folder(state).map_err(|error| unwritable(&error))?;
    let mut form = Multipart::new(pieces(request.into_body(), limit), boundary);
    let (mut fields, mut files) = (Vec::new(), Vec::new());
    // The sender has a while for each piece.
    macro_rules! next {
        ($piece:expr) => {
            match tokio::time::timeout(patience, $piece).await {
                Ok(Ok(piece)) => piece,
                Ok(Err(multer::Error::StreamReadFailed(cause))) => {
                    return Err(cause.downcast::<Error>().map_or_else(|e| Error::Unreadable(e.to_string()), |e| *e));
                }
                Ok(Err(error)) => return Err(broken(&error)),
                Err(_) => return Err(Error::SlowBody),
            }
        };
    }
    while let Some(mut field) = next!(form.next_field()) {
        let name = field.name().unwrap_or_default().to_owned();
        let Some(file_name) = field.file_name().map(base_name) else {
            let mut bytes = Vec::new();
            while let Some(piece) = next!(field.chunk()) {
                bytes.extend_from_slice(&piece);
                if bytes.len() > LONGEST_FIELD {
                    return Err(Error::TooLarge);
                }
            }
            if fields.len() == MOST_FIELDS {
                return Err(Error::Unreadable("its form has too many fields".to_owned()));
            }
            fields.push((name, String::from_utf8_lossy(&bytes).into_owned()));
            continue;
        };
        if files.len() == MOST_FILES {
            return Err(Error::change("files", format!("Send at most {MOST_FILES} files at once, or one archive.")));
        }
        let path = folder.path().join(format!("file-{}", files.len()));
        let mut file = File::create(&path).await.map_err(|error| unwritable(&error))?;
        while let Some(piece) = next!(field.chunk()) {
            file.write_all(&piece).await.map_err(|error| unwritable(&error))?;
        }
        file.flush().await.map_err(|error| unwritable(&error))?;
        if !file_name.is_empty() {
            files.push(UploadedFile { name: file_name, path });
        }
    }
    Ok(Upload { fields, files, folder })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_of_uploads_go_and_corpora_stay() {
        let corpora = tempfile::tempdir().unwrap();
        let [left, kept] = [".upload-abc", "words"].map(|name| corpora.path().join(name));
        for folder in [&left, &kept] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join("file"), "x").unwrap();
        }
        clear(corpora.path());
        assert!(!left.exists() && kept.join("file").exists());
        clear(&corpora.path().join("none"));
    }
}
