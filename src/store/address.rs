//! Opening a store wherever its rows are.

use super::Store;
use super::error::Result;
use crate::config::server::DatabaseAddress;

impl Store {
    /// Opens the file ([`Store::open`]) or the database ([`Store::connect`]).
    ///
    /// # Errors
    /// When they would fail.
    pub async fn open_at(address: &DatabaseAddress) -> Result<Store> {
        match address {
            DatabaseAddress::File(path) => Store::open(path).await,
            DatabaseAddress::Postgres(address) => Store::connect(address).await,
        }
    }

    /// Opens the store for as long as `work` takes, and closes it however `work` ends: done, failed or broken. Commands
    /// open the store this way, so that none of them can leave rows in the side files only.
    ///
    /// # Errors
    /// When [`Store::open_at`] would fail.
    pub async fn using<T>(address: impl Into<DatabaseAddress>, work: impl AsyncFnOnce(Store) -> T) -> Result<T> {
        Ok(Store::open_at(&address.into()).await?.closed_after(work).await)
    }

    /// Does the same as [`Store::using`] for work that only reads; see [`Store::open_to_read`].
    ///
    /// # Errors
    /// When [`Store::open_to_read`] or [`Store::connect`] would fail.
    pub async fn reading<T>(address: impl Into<DatabaseAddress>, work: impl AsyncFnOnce(Store) -> T) -> Result<T> {
        let store = match address.into() {
            DatabaseAddress::File(path) => Store::open_to_read(&path).await?,
            DatabaseAddress::Postgres(address) => Store::connect(&address).await?,
        };
        Ok(store.closed_after(work).await)
    }
}
