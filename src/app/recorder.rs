//! The recorder of a run: it writes what a run's events say of its curve and its checkpoints into the store.

use crate::ids::RunId;
use crate::run::Event;
use crate::store::{Store, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;

/// How long the recorder waits before it tries again to write what the store could not take.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Writes a run's curve and list of checkpoints into the store as events come.
pub(super) async fn record(store: Store, run: RunId, mut events: UnboundedReceiver<Arc<Event>>) {
    let mut batch = Vec::new();
    while events.recv_many(&mut batch, 256).await > 0 {
        let points: Vec<_> = batch
            .iter()
            .filter_map(|e| match &**e {
                Event::Point(point) => Some(point.clone()),
                _ => None,
            })
            .collect();
        let outcome = loop {
            let mut outcome = if points.is_empty() { Ok(()) } else { store.record_points(&run, &points).await };
            for event in &batch {
                if let (Ok(()), Event::Checkpoint(row)) = (&outcome, &**event) {
                    outcome = store.record_checkpoint(&run, row).await;
                }
            }
            match outcome {
                // Writing them again changes nothing. The trainer waits as well.
                Err(error) if error.is_transient() || matches!(error, StoreError::ReadOnly) => {
                    tokio::time::sleep(RETRY_INTERVAL).await;
                }
                outcome => break outcome,
            }
        };
        if let Err(error) = outcome {
            // The curve is also in the run's folder; teaching goes on.
            tracing::error!("cannot record the run's curve: {error}");
        }
        batch.clear();
    }
}
