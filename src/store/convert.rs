//! Conversions between Rust's types and SQLite's columns.

use super::error::{Result, StoreError, unreadable};
use serde::{Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};
use time::OffsetDateTime;

/// A time as it is stored: nanoseconds since 1970, which last until 2262.
pub(super) fn to_nanos(time: OffsetDateTime) -> i64 {
    time.unix_timestamp_nanos().clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// A stored time.
pub(super) fn from_nanos(nanos: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp_nanos(nanos.into()).expect("64-bit nanoseconds lie between 1677 and 2262")
}

/// A count as SQLite keeps it; `what` is for the message.
pub(super) fn to_int(what: &str, count: u64) -> Result<i64> {
    i64::try_from(count).map_err(|_| StoreError::Invalid(format!("{what} {count} is too large")))
}

/// A stored count; the schema keeps them from being negative.
pub(super) fn from_int(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

/// Any serialisable value as JSON text.
pub(super) fn to_json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|e| StoreError::Invalid(format!("this cannot be written as JSON: {e}")))
}

/// JSON text as one of our types; `what` is for the message.
pub(super) fn from_json<T: DeserializeOwned>(what: &str, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|e| unreadable(what, e))
}

/// The hash under which a token is kept, so that the file alone lets nobody in.
pub(super) fn token_hash(token: &str) -> Vec<u8> {
    Sha256::digest(token.as_bytes()).to_vec()
}

/// Keys as the JSON list that `json_each` takes: one static statement serves any number of keys.
pub(super) fn key_list<K: Serialize>(keys: &[K]) -> String {
    serde_json::to_string(keys).expect("keys are numbers, and numbers are JSON")
}
