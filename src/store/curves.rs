//! Points of the learning curves, and checkpoints as they are listed.

use super::Store;
use super::connection::{Durability, from_int, key_list, to_int};
use super::error::{Missing, Result};
use crate::run::{CheckpointRow, Point, Rate};
use sqlx::FromRow;

/// A [`Rate`] in its four columns; all empty when there is none.
#[derive(FromRow)]
struct RateColumns {
    validation: Option<f64>,
    validation_n: Option<i64>,
    validation_low: Option<f64>,
    validation_high: Option<f64>,
}

impl RateColumns {
    fn read(self) -> Option<Rate> {
        Some(Rate {
            value: self.validation?,
            n: from_int(self.validation_n?),
            low: self.validation_low?,
            high: self.validation_high?,
        })
    }
}

#[derive(FromRow)]
struct PointRow {
    update_no: i64,
    episodes: i64,
    descriptions: i64,
    seconds: f64,
    loss: Option<f64>,
    training_success: Option<f64>,
    valid_share: Option<f64>,
    gold_share: Option<f64>,
    #[sqlx(flatten)]
    validation: RateColumns,
    lambda: Option<f64>,
    training_success_total: Option<f64>,
    validation_smoothed: Option<f64>,
}

impl From<PointRow> for Point {
    fn from(row: PointRow) -> Self {
        Point {
            update: from_int(row.update_no),
            episodes: from_int(row.episodes),
            descriptions: from_int(row.descriptions),
            seconds: row.seconds,
            loss: row.loss,
            training_success: row.training_success,
            valid_share: row.valid_share,
            gold_share: row.gold_share,
            validation: row.validation.read(),
            lambda: row.lambda,
            training_success_total: row.training_success_total,
            validation_smoothed: row.validation_smoothed,
        }
    }
}

#[derive(FromRow)]
struct CheckpointColumns {
    name: String,
    update_no: i64,
    episodes: i64,
    descriptions: i64,
    #[sqlx(flatten)]
    validation: RateColumns,
    bytes: i64,
    written_at: String,
    best: bool,
}

impl From<CheckpointColumns> for CheckpointRow {
    fn from(row: CheckpointColumns) -> Self {
        CheckpointRow {
            name: row.name,
            update: from_int(row.update_no),
            episodes: from_int(row.episodes),
            descriptions: from_int(row.descriptions),
            validation: row.validation.read(),
            bytes: from_int(row.bytes),
            written_at: row.written_at,
            best: row.best,
        }
    }
}

impl Store {
    /// Appends points of the curves (same update: replaced).
    pub async fn record_points(&self, run: &str, points: &[Point]) -> Result<()> {
        let mut writer = self.writer(Durability::Normal).await?;
        let mut tx = writer.begin().await?;
        for point in points {
            sqlx::query(
                "INSERT OR REPLACE INTO points (run, update_no, episodes, descriptions, seconds, loss,
                     training_success, valid_share, gold_share, validation, validation_n, validation_low,
                     validation_high, lambda, training_success_total, validation_smoothed)
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            )
            .bind(run)
            .bind(to_int("the update", point.update)?)
            .bind(to_int("the number of episodes", point.episodes)?)
            .bind(to_int("the number of descriptions", point.descriptions)?)
            .bind(if point.seconds.is_nan() { 0.0 } else { point.seconds }) // SQLite has no NaN
            .bind(point.loss)
            .bind(point.training_success)
            .bind(point.valid_share)
            .bind(point.gold_share)
            .bind(point.validation.map(|rate| rate.value))
            .bind(point.validation.map(|rate| to_int("the sample", rate.n)).transpose()?)
            .bind(point.validation.map(|rate| rate.low))
            .bind(point.validation.map(|rate| rate.high))
            .bind(point.lambda)
            .bind(point.training_success_total)
            .bind(point.validation_smoothed)
            .execute(&mut *tx)
            .await
            .or_missing("the run")?;
        }
        Ok(tx.commit().await?)
    }

    /// Points of a run, oldest first; thinned evenly to at most `limit`, points with a validation reading kept (they
    /// are thinned, too, only where they alone are more than `limit`). The first and the last point always stay.
    pub async fn points(&self, run: &str, limit: usize) -> Result<Vec<Point>> {
        let mut tx = self.readers().begin().await?; // one snapshot for both reads
        let all: Vec<(i64, bool)> =
            sqlx::query_as("SELECT update_no, validation IS NOT NULL FROM points WHERE run = ? ORDER BY update_no")
                .bind(run)
                .fetch_all(&mut *tx)
                .await?;
        let kept: Vec<i64> = thin(&all, limit);
        let rows: Vec<PointRow> = sqlx::query_as(
            "SELECT update_no, episodes, descriptions, seconds, loss, training_success, valid_share, gold_share,
                 validation, validation_n, validation_low, validation_high, lambda,
                 training_success_total, validation_smoothed
             FROM points WHERE run = ? AND update_no IN (SELECT value FROM json_each(?)) ORDER BY update_no",
        )
        .bind(run)
        .bind(key_list(&kept))
        .fetch_all(&mut *tx)
        .await?;
        Ok(rows.into_iter().map(Point::from).collect())
    }

    /// Remembers a checkpoint (same name: replaced). A best one takes the mark from the one before it.
    pub async fn record_checkpoint(&self, run: &str, row: &CheckpointRow) -> Result<()> {
        // FULL: with it everything the trainer told before reaches the disk as well, as the weights have.
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        if row.best {
            sqlx::query("UPDATE checkpoints SET best = 0 WHERE run = ? AND best = 1")
                .bind(run)
                .execute(&mut *tx)
                .await?;
        }
        sqlx::query(
            "INSERT OR REPLACE INTO checkpoints (run, name, update_no, episodes, descriptions, validation,
                 validation_n, validation_low, validation_high, bytes, written_at, best)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(run)
        .bind(&row.name)
        .bind(to_int("the update", row.update)?)
        .bind(to_int("the number of episodes", row.episodes)?)
        .bind(to_int("the number of descriptions", row.descriptions)?)
        .bind(row.validation.map(|rate| rate.value))
        .bind(row.validation.map(|rate| to_int("the sample", rate.n)).transpose()?)
        .bind(row.validation.map(|rate| rate.low))
        .bind(row.validation.map(|rate| rate.high))
        .bind(to_int("the size", row.bytes)?)
        .bind(&row.written_at)
        .bind(row.best)
        .execute(&mut *tx)
        .await
        .or_missing("the run")?;
        Ok(tx.commit().await?)
    }

    /// Checkpoints, newest first.
    pub async fn checkpoints(&self, run: &str) -> Result<Vec<CheckpointRow>> {
        let rows: Vec<CheckpointColumns> = sqlx::query_as(
            "SELECT name, update_no, episodes, descriptions, validation, validation_n, validation_low,
                 validation_high, bytes, written_at, best
             FROM checkpoints WHERE run = ? ORDER BY update_no DESC, name DESC",
        )
        .bind(run)
        .fetch_all(self.readers())
        .await?;
        Ok(rows.into_iter().map(CheckpointRow::from).collect())
    }
}

/// Chooses at most `limit` of the points (update, has a validation reading).
fn thin(all: &[(i64, bool)], limit: usize) -> Vec<i64> {
    if all.len() <= limit {
        return all.iter().map(|&(update, _)| update).collect();
    }
    let (last, edges) = (all.len() - 1, usize::min(limit, 2));
    // First and last are set, so are validation readings; the others share what room is left.
    let is_edge = |i: usize| (i == last && edges > 0) || (i == 0 && edges > 1);
    let inner = |wanted: bool| (0..all.len()).filter(move |&i| !is_edge(i) && all[i].1 == wanted).collect::<Vec<_>>();
    let validated = spread(&inner(true), limit - edges);
    let others = spread(&inner(false), limit - edges - validated.len());
    let mut chosen: Vec<usize> = (0..all.len()).filter(|&i| is_edge(i)).chain(validated).chain(others).collect();
    chosen.sort_unstable();
    chosen.into_iter().map(|i| all[i].0).collect()
}

/// At most `room` of the items, evenly spread.
fn spread(items: &[usize], room: usize) -> Vec<usize> {
    if items.len() <= room {
        return items.to_vec();
    }
    (0..room).map(|k| items[(2 * k + 1) * items.len() / (2 * room)]).collect()
}

#[cfg(test)]
mod tests {
    use super::thin;

    fn points(n: i64, validated_every: i64) -> Vec<(i64, bool)> {
        (0..n).map(|i| (i * 10, i % validated_every == 0)).collect()
    }

    #[test]
    fn few_points_all_stay() {
        assert_eq!(thin(&points(5, 2), 5), vec![0, 10, 20, 30, 40]);
        assert!(thin(&[], 5).is_empty());
    }

    #[test]
    fn thinning_keeps_the_ends_and_the_validation_readings_within_the_limit() {
        let all = points(10_001, 500);
        let kept = thin(&all, 200);
        assert_eq!(kept.len(), 200);
        assert_eq!((kept[0], kept[199]), (0, 100_000));
        assert!(all.iter().filter(|p| p.1).all(|p| kept.contains(&p.0)));
        let gaps: Vec<i64> = kept.windows(2).map(|w| w[1] - w[0]).collect();
        assert!(gaps.iter().all(|&gap| gap > 0 && gap <= 1200), "evenly: {:?}", gaps.iter().max());
    }

    #[test]
    fn the_limit_holds_even_where_validation_readings_alone_exceed_it() {
        for limit in [0, 1, 2, 3, 7] {
            assert_eq!(thin(&points(100, 1), limit).len(), limit);
        }
    }
}
