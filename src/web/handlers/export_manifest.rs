//! The manifest of a file of the data set, for programs: its rows, its SHA-256, its filters.

use crate::export::dataset::{self, Piece};
use crate::export::filters::FilterWords;
use crate::export::forms::ExamplesFile;
use crate::export::manifest::{Description, Manifest};
use crate::export::{DescriptionsFile, ExportError, Snapshot};
use crate::web::error::{Error, Result};
use crate::web::extractors::access::Steering;
use crate::web::extractors::input::{Path, Query};
use crate::web::handlers::export::{DataFile, Wanted, early, filter_of, snapshot};
use crate::web::state::AppState;
use axum::Json;
use axum::extract::State;
use sha2::{Digest, Sha256};

/// Size and SHA-256 of bytes that pass by.
#[derive(Default)]
struct Measure {
    bytes: u64,
    hash: Sha256,
}

impl Measure {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.hash.update(bytes);
    }

    fn end(self) -> (u64, String) {
        (self.bytes, hex::encode(self.hash.finalize()))
    }
}

/// The manifest that lies in the folder of a data set.
async fn of_folder(snapshot: Snapshot, about: Description) -> Result<Manifest, ExportError> {
    let (mut pieces, mut text) = (dataset::pieces(snapshot, about), None);
    while let Some(piece) = pieces.recv().await.transpose()? {
        match piece {
            Piece::File { path, .. } => text = (path == "manifest.json").then(Vec::new),
            Piece::Bytes(bytes) => text.iter_mut().for_each(|text: &mut Vec<u8>| text.extend(&bytes)),
            Piece::Progress(_) => {}
        }
    }
    serde_json::from_slice(&text.unwrap_or_default()).map_err(|error| ExportError::Encoding(error.to_string()))
}

/// The manifest of a file, which is made for it and not kept.
async fn of_file(file: DataFile, snapshot: Snapshot, about: Description) -> Result<Manifest, ExportError> {
    let (name, mut measure) = (file.saved_as(&about), Measure::default());
    match file {
        DataFile::Dataset | DataFile::Schema => of_folder(snapshot, about).await,
        DataFile::Descriptions(format) => {
            let mut made = DescriptionsFile::new(snapshot, format)?;
            while let Some((bytes, _)) = made.next().await? {
                measure.add(&bytes);
            }
            let (bytes, sha256) = measure.end();
            Ok(made.manifest(about, name, bytes, sha256))
        }
        DataFile::Form(form) => {
            let mut made = ExamplesFile::new(snapshot, form);
            while let Some((bytes, _)) = made.next().await? {
                measure.add(&bytes);
            }
            let (bytes, sha256) = measure.end();
            Ok(made.manifest(about, name, bytes, sha256))
        }
    }
}

/// `GET /api/v1/export/{file}/manifest`.
#[utoipa::path(get, path = "/export/{file}/manifest", operation_id = "show_export_manifest", tag = "export",
    summary = "What a file of the data set holds, and its SHA-256",
    description = "The file as it would be now is read through for it, which takes as long as the download. A file that was \
        downloaded before has this SHA-256 unless something came or changed meanwhile. The manifest of `dataset.tar` is the one \
        that lies in the archive.",
    params(("file" = String, Path, description = "Name of the file, as for the download"), FilterWords, Wanted),
    responses((status = 200, body = Manifest, description = "The manifest")))]
pub(crate) async fn manifest(
    _: Steering,
    State(state): State<AppState>,
    Path(file): Path<String>,
    Query(wanted): Query<Wanted>,
) -> Result<Json<Manifest>> {
    let (filter, about) = (filter_of(&wanted.filter)?, wanted.about()?);
    let file = DataFile::named(&state, &file)?;
    if let DataFile::Schema = file {
        return Err(Error::NotFound("the manifest of this file"));
    }
    let manifest = of_file(file, snapshot(&state, filter).await?, about).await;
    Ok(Json(manifest.map_err(early)?))
}
