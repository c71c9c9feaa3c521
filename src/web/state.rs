//! Everything that handlers can reach: the store, the families, the runs, the settings.

pub(crate) mod run_log;
pub(crate) mod runs;
pub(crate) mod uploads;
pub(crate) mod work;

pub use run_log::LogLine;
pub use runs::Runs;
pub use uploads::Uploads;
pub use work::Works;

use crate::launch::Launcher;
use crate::registry::{self, AnyFamily};
use crate::store::Store;
use crate::web::settings::WebSettings;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Everything a handler can reach. Cheap to clone.
#[derive(Clone)]
pub struct AppState {
    /// The database.
    pub store: Store,
    /// The registered task families.
    pub families: &'static [&'static dyn AnyFamily],
    /// The runs that are alive in this process.
    pub runs: Runs,
    /// The launcher of runs; `None` where this process cannot start any.
    pub launcher: Option<Arc<dyn Launcher>>,
    /// The work that pages of this server wait for.
    pub works: Works,
    /// Files that were sent and wait for a word.
    pub uploads: Uploads,
    /// Settings.
    pub settings: Arc<WebSettings>,
    /// Cancelled when the server is to end; event streams end with it.
    pub shutdown: CancellationToken,
}

impl AppState {
    /// The folder that grows: that of the runs, or of the database file.
    pub fn data_folder(&self) -> Option<PathBuf> {
        let beside = || Some(self.store.file()?.parent()?.to_owned());
        self.settings.data_dir.clone().or_else(beside)
    }

    /// The family called `name`; the one of outside runs among them.
    pub fn family(&self, name: &str) -> Option<&'static dyn AnyFamily> {
        self.families.iter().copied().find(|family| family.name() == name).or_else(|| registry::outside(name))
    }
}
