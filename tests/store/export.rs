//! The dataset as files, and back.

use crate::support::{AWKWARD, Bench, RUN, answer, run, simulated};
use iliad::export::{ExportError, Format, Rows, chunks, write};
use iliad::ids::{AnswerId, RunId};
use iliad::store::{AnswerKind, ExportRow, NewAnswer, StoreError};
use serde_json::Value;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::AsyncWrite;

/// Every awkward text by a person and by the simulated teacher, a correction, a skip.
async fn filled() -> Bench {
    let bench = Bench::new().await;
    bench.offer((0..AWKWARD.len() as u64 + 1).map(|e| (e, 1))).await;
    let teacher = bench.teacher("a").await;
    for text in AWKWARD {
        bench.describe(teacher, text).await;
    }
    let id = bench.lease(teacher).await.unwrap().execution;
    bench
        .store
        .answer(&NewAnswer { kind: AnswerKind::Skipped, ..answer(id, teacher, "no, \"really\"") })
        .await
        .unwrap();
    let own = bench.store.own_answers(&RUN, teacher, 2).await.unwrap();
    let timed = NewAnswer {
        shown_at: Some(bench.clock.now()),
        active_ms: Some(1234),
        ..answer(own[1].execution, teacher, "better,\nlonger")
    };
    bench.store.correct(own[1].answer, &timed).await.unwrap();
    let rows: Vec<_> = AWKWARD.iter().zip(100..).map(|(text, episode)| simulated(episode, Some(3), text)).collect();
    bench.store.record_simulated(&RUN, &rows).await.unwrap();
    bench
}

async fn bytes(bench: &Bench, run: Option<&RunId>, format: Format) -> Vec<u8> {
    let mut bytes = Vec::new();
    let written = write(&bench.store, run, format, Rows::All, &mut bytes, |_| {}).await.unwrap();
    assert_eq!(written, bench.store.export_count(run).await.unwrap());
    bytes
}

/// Rows of a file without their quality flags, which the file has and the store's own pages have not.
fn without_flags(mut rows: Vec<Value>) -> Vec<Value> {
    for row in &mut rows {
        assert!(row["quality_flags"].is_array());
        row["quality_flags"] = Value::Array(Vec::new());
    }
    rows
}

fn as_json(rows: &[ExportRow]) -> Vec<Value> {
    rows.iter().map(|row| serde_json::to_value(row).unwrap()).collect()
}

/// A CSV record as the JSON object the same row would be.
fn record_as_json(headers: &csv::StringRecord, record: &csv::StringRecord) -> Value {
    let field = |(name, text): (&str, &str)| {
        let value = match name {
            "view" | "quality_flags" => serde_json::from_str(text).unwrap(),
            "request_shown" | "retracted" => Value::Bool(text.parse().unwrap()),
            "understood_before" | "understood_after" | "fulfilled" | "preview_arm" | "preview_shown"
                if !text.is_empty() =>
            {
                Value::Bool(text.parse().unwrap())
            }
            "answer" | "episode" | "policy_update" => Value::from(text.parse::<i64>().unwrap()),
            "teacher" | "used_in_update" | "supersedes" | "superseded_by" | "active_ms" | "idle_ms"
                if !text.is_empty() =>
            {
                Value::from(text.parse::<i64>().unwrap())
            }
            "teacher" | "used_in_update" | "supersedes" | "superseded_by" | "active_ms" | "shown_at"
            | "withdrawn_at" | "understood_before" | "understood_after" | "idle_ms" | "preview_arm" | "first_text"
            | "demonstration" | "rating" | "review_state" | "adjudicated"
                if text.is_empty() =>
            {
                Value::Null
            }
            _ => Value::String(text.into()),
        };
        (name.to_owned(), value)
    };
    Value::Object(headers.iter().zip(record).map(field).collect())
}

#[tokio::test]
async fn json_lines_hold_every_row_exactly() {
    let bench = filled().await;
    let text = String::from_utf8(bytes(&bench, None, Format::Jsonl).await).unwrap();
    assert!(text.ends_with('\n'));
    let back: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        without_flags(back),
        as_json(&bench.store.export_page(None, AnswerId::default(), u32::MAX).await.unwrap())
    );
    assert!(!text.contains("\\/"), "slashes stay as they are");
    let typed: Vec<ExportRow> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(typed.iter().take(AWKWARD.len()).map(|r| r.text.as_str()).collect::<Vec<_>>(), AWKWARD);
}

#[tokio::test]
async fn csv_holds_every_row_exactly_and_alters_no_formula() {
    let bench = filled().await;
    let bytes = bytes(&bench, None, Format::Csv).await;
    let mut reader = csv::Reader::from_reader(bytes.as_slice());
    let headers = reader.headers().unwrap().clone();
    let back: Vec<Value> = reader.records().map(|record| record_as_json(&headers, &record.unwrap())).collect();
    let rows = as_json(&bench.store.export_page(None, AnswerId::default(), u32::MAX).await.unwrap());
    assert_eq!(without_flags(back), rows);
    let names: Vec<&String> = rows[0].as_object().unwrap().keys().collect();
    assert_eq!(names.len(), headers.len(), "CSV and JSON have the same columns");
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.contains("\"=1+2 +3 -4 @SUM(A1) \tTab\""));
    assert!(text.starts_with("\"run\",\"family\",") && text.ends_with("\r\n"));
}

#[tokio::test]
async fn an_export_of_one_run_holds_that_run_alone() {
    let bench = filled().await;
    bench.store.create_run(&run("run-2")).await.unwrap();
    bench.store.record_simulated(&"run-2".into(), &[simulated(0, Some(1), "only")]).await.unwrap();
    let text = String::from_utf8(bytes(&bench, Some(&"run-2".into()), Format::Jsonl).await).unwrap();
    assert_eq!(text.lines().count(), 1);
    assert_eq!(bench.store.export_count(None).await.unwrap(), bench.store.export_count(Some(&RUN)).await.unwrap() + 1);
}

#[tokio::test]
async fn an_empty_run_gives_an_empty_file_and_an_unknown_one_an_error() {
    let bench = Bench::new().await;
    assert!(bytes(&bench, Some(&RUN), Format::Jsonl).await.is_empty());
    let csv = String::from_utf8(bytes(&bench, Some(&RUN), Format::Csv).await).unwrap();
    assert_eq!(csv.lines().count(), 1, "the header alone");
    let unknown =
        write(&bench.store, Some(&"none".into()), Format::Csv, Rows::All, &mut Vec::new(), |_| {}).await.unwrap_err();
    assert!(matches!(unknown, ExportError::Store(StoreError::NotFound("the run"))));
}

#[tokio::test]
async fn the_row_count_is_fixed_when_the_export_begins() {
    use futures::StreamExt;
    let bench = Bench::new().await;
    let rows: Vec<_> = (0..1200).map(|e| simulated(e, Some(1), "before")).collect();
    bench.store.record_simulated(&RUN, &rows).await.unwrap();
    let mut pieces = Box::pin(chunks(bench.store.clone(), Some(RUN.clone()), Format::Jsonl, Rows::All));
    let (first, told) = pieces.next().await.unwrap().unwrap();
    assert_eq!((told.done, told.rows), (500, 1200));
    let later: Vec<_> = (2000..2100).map(|e| simulated(e, Some(2), "meanwhile")).collect();
    bench.store.record_simulated(&RUN, &later).await.unwrap();
    let mut text = first;
    while let Some(piece) = pieces.next().await {
        text.extend(piece.unwrap().0);
    }
    assert_eq!(String::from_utf8(text).unwrap().lines().count(), 1200);
    assert!(pieces.next().await.is_none(), "an ended stream stays ended");
}

/// A disk with room for so many bytes.
struct SmallDisk(usize);

impl AsyncWrite for SmallDisk {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        let room = self.0.min(bytes.len());
        self.0 -= room;
        Poll::Ready(if room == 0 { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(room) })
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn a_full_disk_ends_the_export_with_an_error() {
    let bench = filled().await;
    let failed = write(&bench.store, None, Format::Jsonl, Rows::All, &mut SmallDisk(1000), |_| {}).await.unwrap_err();
    assert!(matches!(failed, ExportError::Io(_)), "{failed}");
}
