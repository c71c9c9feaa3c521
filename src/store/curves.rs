//! Points of the learning curves, and checkpoints as they are listed.

use super::Store;
use super::connection::{Durability, from_int, key_list, to_int};
use super::error::{Missing, Result};
use crate::protocol::Rate;
use crate::run::{CheckpointRow, Point};
use sqlx::{FromRow, Sqlite, Transaction};

/// A [`Rate`] in its four columns; all empty when there is none.
#[derive(FromRow)]
struct RateColumns {
    validation: Option<f64>,
    validation_n: Option<i64>,
    validation_low: Option<f64>,
    validation_high: Option<f64>,
}

impl RateColumns {
    fn is_some(&self) -> bool {
        self.validation.is_some()
    }

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
    place: Option<i64>,
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

/// The beginning of a query for [`PointRow`]s.
macro_rules! columns {
    () => {
        "SELECT update_no, episodes, descriptions, seconds, loss, training_success, valid_share, gold_share,
             validation, validation_n, validation_low, validation_high, lambda,
             training_success_total, validation_smoothed, place "
    };
}

/// Checkpoints that are listed at most, beside the best.
const CHECKPOINTS: u32 = 100;

impl Store {
    /// Appends points of the curves (same update: replaced).
    pub async fn record_points(&self, run: &str, points: &[Point]) -> Result<()> {
        let mut writer = self.writer(Durability::Normal).await?;
        let mut tx = writer.begin().await?;
        for point in points {
            record_point(&mut tx, run, point).await?;
        }
        Ok(tx.commit().await?)
    }

    /// Points of a run, oldest first; thinned evenly to at most `limit`, points with a validation reading kept (they
    /// are thinned, too, only where they alone are more than `limit`). The first and the last point always stay.
    ///
    /// Only what is returned is read.
    pub async fn points(&self, run: &str, limit: usize) -> Result<Vec<Point>> {
        let mut tx = self.readers().begin().await?; // one snapshot for all reads
        let (tested, untested) = (places(&mut tx, run, TESTED).await?, places(&mut tx, run, UNTESTED).await?);
        let mut rows = Vec::new();
        if tested + untested <= limit {
            let all = concat!(columns!(), "FROM points WHERE run = ? ORDER BY update_no");
            rows = sqlx::query_as(all).bind(run).fetch_all(&mut *tx).await?;
            return Ok(rows.into_iter().map(|row: PointRow| row.into()).collect());
        }
        let last = concat!(columns!(), "FROM points WHERE run = ? ORDER BY update_no DESC LIMIT 1");
        let first = concat!(columns!(), "FROM points WHERE run = ? ORDER BY update_no LIMIT 1");
        for edge in [last, first].into_iter().take(limit) {
            rows.extend(sqlx::query_as::<_, PointRow>(edge).bind(run).fetch_optional(&mut *tx).await?);
        }
        let edges = |wanted: bool| {
            let edges = rows.iter().filter(|row| row.validation.is_some() == wanted);
            edges.filter_map(|row| usize::try_from(row.place?).ok()).collect::<Vec<_>>()
        };
        let room = limit - rows.len();
        let of_tested = spread(tested, &edges(true), room);
        let of_untested = spread(untested, &edges(false), room - of_tested.len());
        for (select, places) in [
            (
                concat!(
                    columns!(),
                    "FROM points INDEXED BY points_tested WHERE run = ? AND validation IS NOT NULL AND place IN (SELECT value FROM json_each(?))"
                ),
                of_tested,
            ),
            (
                concat!(
                    columns!(),
                    "FROM points INDEXED BY points_untested WHERE run = ? AND validation IS NULL AND place IN (SELECT value FROM json_each(?))"
                ),
                of_untested,
            ),
        ] {
            rows.extend(
                sqlx::query_as::<_, PointRow>(select).bind(run).bind(key_list(&places)).fetch_all(&mut *tx).await?,
            );
        }
        rows.sort_by_key(|row| row.update_no);
        rows.dedup_by_key(|row| row.update_no);
        Ok(rows.into_iter().map(Point::from).collect())
    }

    /// The run's newest point.
    pub(super) async fn last_point(&self, run: &str) -> Result<Option<Point>> {
        let last = concat!(columns!(), "FROM points WHERE run = ? ORDER BY update_no DESC LIMIT 1");
        let row: Option<PointRow> = sqlx::query_as(last).bind(run).fetch_optional(self.readers()).await?;
        Ok(row.map(Point::from))
    }

    /// The run's newest and its best validation reading (of equal ones the later).
    pub(super) async fn validation(&self, run: &str) -> Result<(Option<Rate>, Option<Rate>)> {
        let newest =
            concat!(columns!(), "FROM points WHERE run = ? AND validation IS NOT NULL ORDER BY place DESC LIMIT 1");
        let best = concat!(
            columns!(),
            "FROM points WHERE run = ? AND validation IS NOT NULL ORDER BY validation DESC, update_no DESC LIMIT 1"
        );
        let newest: Option<PointRow> = sqlx::query_as(newest).bind(run).fetch_optional(self.readers()).await?;
        let best: Option<PointRow> = sqlx::query_as(best).bind(run).fetch_optional(self.readers()).await?;
        let rate = |row: Option<PointRow>| row.and_then(|row| row.validation.read());
        Ok((rate(newest), rate(best)))
    }

    /// Remembers a checkpoint (same name: replaced). A best one takes the mark from the one before it.
    pub async fn record_checkpoint(&self, run: &str, row: &CheckpointRow) -> Result<()> {
        // FULL: with it everything the trainer told before reaches the disk as well, as the weights have.
        let mut writer = self.writer(Durability::Full).await?;
        let mut tx = writer.begin().await?;
        if row.best {
            sqlx::query("UPDATE checkpoints INDEXED BY checkpoints_best SET best = 0 WHERE run = ? AND best = 1")
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

    /// Checkpoints, newest first: the newest hundred, and the best if it is older.
    pub async fn checkpoints(&self, run: &str) -> Result<Vec<CheckpointRow>> {
        let mut rows: Vec<CheckpointColumns> = sqlx::query_as(
            "SELECT name, update_no, episodes, descriptions, validation, validation_n, validation_low,
                 validation_high, bytes, written_at, best
             FROM checkpoints WHERE run = ? ORDER BY update_no DESC, name DESC LIMIT ?",
        )
        .bind(run)
        .bind(CHECKPOINTS)
        .fetch_all(self.readers())
        .await?;
        if !rows.iter().any(|row| row.best) {
            let best: Option<CheckpointColumns> = sqlx::query_as(
                "SELECT name, update_no, episodes, descriptions, validation, validation_n, validation_low,
                     validation_high, bytes, written_at, best
                 FROM checkpoints INDEXED BY checkpoints_best WHERE run = ? AND best = 1 LIMIT 1",
            )
            .bind(run)
            .fetch_optional(self.readers())
            .await?;
            rows.extend(best);
        }
        Ok(rows.into_iter().map(CheckpointRow::from).collect())
    }
}

async fn record_point(tx: &mut Transaction<'_, Sqlite>, run: &str, point: &Point) -> Result<()> {
    let place = places(tx, run, if point.validation.is_some() { TESTED } else { UNTESTED }).await?;
    sqlx::query(
        "INSERT INTO points (run, update_no, episodes, descriptions, seconds, loss,
             training_success, valid_share, gold_share, validation, validation_n, validation_low,
             validation_high, lambda, training_success_total, validation_smoothed, place)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (run, update_no) DO UPDATE SET episodes = excluded.episodes,
             descriptions = excluded.descriptions, seconds = excluded.seconds, loss = excluded.loss,
             training_success = excluded.training_success, valid_share = excluded.valid_share,
             gold_share = excluded.gold_share, validation_n = excluded.validation_n,
             validation_low = excluded.validation_low, validation_high = excluded.validation_high,
             lambda = excluded.lambda, training_success_total = excluded.training_success_total,
             validation_smoothed = excluded.validation_smoothed,
             place = iif((validation IS NULL) = (excluded.validation IS NULL), place, excluded.place),
             validation = excluded.validation",
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
    .bind(i64::try_from(place).unwrap_or(i64::MAX))
    .execute(&mut **tx)
    .await
    .or_missing("the run")?;
    Ok(())
}

/// The last place among the run's points that have a validation reading.
const TESTED: &str = "SELECT max(place) FROM points WHERE run = ? AND validation IS NOT NULL";

/// The last place among those that have none.
const UNTESTED: &str = "SELECT max(place) FROM points WHERE run = ? AND validation IS NULL";

/// How many places there are, by one of the two queries for the last.
async fn places(tx: &mut Transaction<'_, Sqlite>, run: &str, query: &'static str) -> Result<usize> {
    let last: Option<i64> = sqlx::query_scalar(query).bind(run).fetch_one(&mut **tx).await?;
    Ok(last.map_or(0, |last| from_int(last) as usize + 1))
}

/// At most `room` of the places `0..count`, evenly spread, without those that are `taken`.
fn spread(count: usize, taken: &[usize], room: usize) -> Vec<i64> {
    let mut taken = taken.to_vec();
    taken.sort_unstable();
    let free = count.saturating_sub(taken.len());
    // The place of a free one: those that are taken before it are passed over.
    let place = |nth: usize| taken.iter().fold(nth, |place, &taken| place + usize::from(taken <= place)) as i64;
    match free <= room {
        true => (0..free).map(place).collect(),
        false => (0..room).map(|k| place((2 * k + 1) * free / (2 * room))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn few_places_all_stay() {
        assert_eq!(spread(5, &[], 5), [0, 1, 2, 3, 4]);
        assert_eq!(spread(5, &[4, 0], 5), [1, 2, 3]);
        assert_eq!(spread(3, &[1], 9), [0, 2]);
        assert!(spread(0, &[], 5).is_empty() && spread(9, &[], 0).is_empty());
    }

    #[test]
    fn many_places_are_spread_evenly() {
        let chosen = spread(10_001, &[0, 10_000], 198);
        assert_eq!(chosen.len(), 198);
        let gaps: Vec<i64> = chosen.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| (50..=51).contains(gap)), "{gaps:?}");
        assert!((20..=30).contains(&chosen[0]) && !chosen.contains(&10_000));
    }
}
