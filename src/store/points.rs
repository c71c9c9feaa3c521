//! Points of the learning curves.

use super::Store;
use super::connection::Durability;
use super::convert::{from_int, key_list, to_int};
use super::error::{Missing, Result};
use super::sql::{Transaction, query, query_as, query_scalar, row};
use crate::ids::RunId;
use crate::protocol::Rate;
use crate::run::Point;

/// A [`Rate`] from its four columns, which are all empty when there is none.
pub(super) fn rate(value: Option<f64>, n: Option<i64>, low: Option<f64>, high: Option<f64>) -> Option<Rate> {
    Some(Rate { value: value?, n: from_int(n?), low: low?, high: high? })
}

row! {
    struct PointRow {
        update_no: i64,
        episodes: i64,
        descriptions: i64,
        seconds: f64,
        loss: Option<f64>,
        training_success: Option<f64>,
        valid_share: Option<f64>,
        gold_share: Option<f64>,
        validation: Option<f64>,
        validation_n: Option<i64>,
        validation_low: Option<f64>,
        validation_high: Option<f64>,
        lambda: Option<f64>,
        training_success_total: Option<f64>,
        validation_smoothed: Option<f64>,
        place: Option<i64>,
    }
}

impl PointRow {
    fn validation(&self) -> Option<Rate> {
        rate(self.validation, self.validation_n, self.validation_low, self.validation_high)
    }
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
            validation: row.validation(),
            lambda: row.lambda,
            training_success_total: row.training_success_total,
            validation_smoothed: row.validation_smoothed,
        }
    }
}

/// Selects [`PointRow`]s. The arguments are the rest of the statement and its parameters.
macro_rules! select_points {
    ($rest:literal, $($parameter:expr),+) => {
        query_as!(
            PointRow,
            r#"SELECT update_no AS "update_no!", episodes AS "episodes!", descriptions AS "descriptions!",
                   seconds AS "seconds!", loss, training_success, valid_share, gold_share, validation, validation_n,
                   validation_low, validation_high, lambda, training_success_total, validation_smoothed, place
               FROM points "# + $rest,
            $($parameter),+
        )
    };
}

impl Store {
    /// Appends points of the curves (same update: replaced).
    pub async fn record_points(&self, run: &RunId, points: &[Point]) -> Result<()> {
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
    /// Only the returned points are read.
    pub async fn points(&self, run: &RunId, limit: usize) -> Result<Vec<Point>> {
        let mut tx = self.readers().snapshot().await?; // one snapshot for all reads
        let (tested, untested) = (count(&mut tx, run, true).await?, count(&mut tx, run, false).await?);
        if tested + untested <= limit {
            let all = select_points!("WHERE run = ? ORDER BY update_no", run).fetch_all(&mut tx).await?;
            return Ok(all.into_iter().map(Point::from).collect());
        }
        let mut rows = Vec::new();
        if limit > 0 {
            let last = select_points!("WHERE run = ? ORDER BY update_no DESC LIMIT 1", run);
            rows.extend(last.fetch_optional(&mut tx).await?);
        }
        if limit > 1 {
            let first = select_points!("WHERE run = ? ORDER BY update_no LIMIT 1", run);
            rows.extend(first.fetch_optional(&mut tx).await?);
        }
        let edges = |tested: bool| {
            let edges = rows.iter().filter(|row| row.validation.is_some() == tested);
            edges.filter_map(|row| usize::try_from(row.place?).ok()).collect::<Vec<_>>()
        };
        let room = limit - rows.len();
        let of_tested = spread(tested, &edges(true), room);
        let of_untested = spread(untested, &edges(false), room - of_tested.len());
        let (of_tested, of_untested) = (key_list(&of_tested), key_list(&of_untested));
        let chosen = select_points!(
            "INDEXED BY points_tested
             WHERE run = ? AND validation IS NOT NULL AND place IN (SELECT CAST(value AS BIGINT) FROM json_each(?))",
            run,
            of_tested
        );
        rows.extend(chosen.fetch_all(&mut tx).await?);
        let chosen = select_points!(
            "INDEXED BY points_untested
             WHERE run = ? AND validation IS NULL AND place IN (SELECT CAST(value AS BIGINT) FROM json_each(?))",
            run,
            of_untested
        );
        rows.extend(chosen.fetch_all(&mut tx).await?);
        rows.sort_by_key(|row| row.update_no);
        rows.dedup_by_key(|row| row.update_no);
        Ok(rows.into_iter().map(Point::from).collect())
    }

    /// The points after an update, oldest first; all of them from the beginning where `after` is `None`.
    pub async fn points_after(&self, run: &RunId, after: Option<u64>, limit: u64) -> Result<Vec<Point>> {
        let after = after.map_or(Ok(-1), |after| to_int("the update", after))?;
        let limit = to_int("the limit", limit)?;
        let rows = select_points!("WHERE run = ? AND update_no > ? ORDER BY update_no LIMIT ?", run, after, limit);
        Ok(rows.fetch_all(self.readers()).await?.into_iter().map(Point::from).collect())
    }

    /// The run's newest point.
    pub(super) async fn last_point(&self, run: &RunId) -> Result<Option<Point>> {
        let last = select_points!("WHERE run = ? ORDER BY update_no DESC LIMIT 1", run);
        Ok(last.fetch_optional(self.readers()).await?.map(Point::from))
    }

    /// The run's newest and its best validation reading (of equal ones the later).
    pub(super) async fn validation(&self, run: &RunId) -> Result<(Option<Rate>, Option<Rate>)> {
        let newest = select_points!("WHERE run = ? AND validation IS NOT NULL ORDER BY place DESC LIMIT 1", run);
        let newest = newest.fetch_optional(self.readers()).await?;
        let best = select_points!(
            "WHERE run = ? AND validation IS NOT NULL ORDER BY validation DESC, update_no DESC LIMIT 1",
            run
        );
        let best = best.fetch_optional(self.readers()).await?;
        Ok((newest.and_then(|row| row.validation()), best.and_then(|row| row.validation())))
    }
}

async fn record_point(tx: &mut Transaction<'_>, run: &RunId, point: &Point) -> Result<()> {
    let place = count(tx, run, point.validation.is_some()).await?;
    let place = i64::try_from(place).unwrap_or(i64::MAX);
    let update = to_int("the update", point.update)?;
    let episodes = to_int("the number of episodes", point.episodes)?;
    let descriptions = to_int("the number of descriptions", point.descriptions)?;
    let seconds = if point.seconds.is_nan() { 0.0 } else { point.seconds }; // SQLite has no NaN
    let validation = point.validation.map(|rate| rate.value);
    let validation_n = point.validation.map(|rate| to_int("the sample", rate.n)).transpose()?;
    let validation_low = point.validation.map(|rate| rate.low);
    let validation_high = point.validation.map(|rate| rate.high);
    query!(
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
             place = iif((points.validation IS NULL) = (excluded.validation IS NULL), points.place, excluded.place),
             validation = excluded.validation",
        run,
        update,
        episodes,
        descriptions,
        seconds,
        point.loss,
        point.training_success,
        point.valid_share,
        point.gold_share,
        validation,
        validation_n,
        validation_low,
        validation_high,
        point.lambda,
        point.training_success_total,
        point.validation_smoothed,
        place,
    )
    .execute(&mut *tx)
    .await
    .or_missing("the run")?;
    Ok(())
}

/// How many of the run's points have a validation reading (`tested`), or have none: one more than their last place.
async fn count(tx: &mut Transaction<'_>, run: &RunId, tested: bool) -> Result<usize> {
    let last = if tested {
        query_scalar!(r#"SELECT max(place) AS "last?: i64" FROM points WHERE run = ? AND validation IS NOT NULL"#, run)
            .fetch_one(&mut *tx)
            .await?
    } else {
        query_scalar!(r#"SELECT max(place) AS "last?: i64" FROM points WHERE run = ? AND validation IS NULL"#, run)
            .fetch_one(&mut *tx)
            .await?
    };
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
