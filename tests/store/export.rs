//! The data set as files, and back.

use crate::support::{AWKWARD, Bench, RUN, answer, run, simulated};
use futures::StreamExt;
use iliad::export::dataset::{self, Piece};
use iliad::export::manifest::{Description, Manifest};
use iliad::export::table::{Cell, Kind, from_field, from_json};
use iliad::export::{DescriptionsFile, ExportError, Format, Snapshot, Table, chunks, forms, tar, write};
use iliad::ids::RunId;
use iliad::registry::Registry;
use iliad::run::{Reference, Source};
use iliad::store::{AnswerKind, Filter, NewAnswer, StoreError};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
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

async fn moment(bench: &Bench, filter: &Filter) -> Snapshot {
    Snapshot::take(&bench.store, Registry::builtin(), filter.clone()).await.unwrap()
}

async fn bytes(bench: &Bench, filter: &Filter, format: Format) -> Vec<u8> {
    let snapshot = moment(bench, filter).await;
    let rows = snapshot.descriptions();
    let mut bytes = Vec::new();
    assert_eq!(write(snapshot, format, &mut bytes, |_| {}).await.unwrap(), rows);
    bytes
}

async fn json_rows(bench: &Bench, filter: &Filter) -> Vec<Value> {
    let text = String::from_utf8(bytes(bench, filter, Format::Jsonl).await).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The rows as cells, from JSON lines.
async fn cells(bench: &Bench) -> Vec<Vec<Cell>> {
    let columns = Table::Descriptions.columns();
    let read = |row: &Value| columns.iter().map(|column| from_json(column, &row[column.name]).unwrap()).collect();
    json_rows(bench, &Filter::default()).await.iter().map(read).collect()
}

/// A value of a Parquet file as a cell.
fn cell(kind: Kind, field: &Field) -> Cell {
    match (kind, field) {
        (_, Field::Null) => Cell::Empty,
        (Kind::Json, Field::Str(text)) => Cell::Json(serde_json::from_str(text).unwrap()),
        (_, Field::Str(text)) => Cell::Text(text.clone()),
        (Kind::Time, Field::Long(nanos)) => {
            Cell::Time(time::OffsetDateTime::from_unix_timestamp_nanos(i128::from(*nanos)).unwrap())
        }
        (_, Field::Long(number)) => Cell::Integer(*number),
        (_, Field::Double(number)) => Cell::Number(*number),
        (_, Field::Bool(value)) => Cell::Boolean(*value),
        (Kind::Words, Field::ListInternal(list)) => {
            let word = |field: &Field| if let Field::Str(text) = field { text.clone() } else { panic!("{field:?}") };
            Cell::Words(list.elements().iter().map(word).collect())
        }
        (Kind::Integers, Field::ListInternal(list)) => {
            let number = |field: &Field| if let Field::Long(number) = field { *number } else { panic!("{field:?}") };
            Cell::Integers(list.elements().iter().map(number).collect())
        }
        other => panic!("{other:?}"),
    }
}

/// The rows of a Parquet file, and its row groups.
fn parquet_rows(table: Table, bytes: &[u8]) -> (Vec<Vec<Cell>>, usize) {
    use std::io::Write;
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let groups = reader.metadata().num_row_groups();
    let rows = reader.get_row_iter(None).unwrap().map(|row| {
        let row = row.unwrap();
        let fields = row.get_column_iter().zip(table.columns());
        fields
            .map(|((name, field), column)| {
                assert_eq!(name, column.name);
                cell(column.kind, field)
            })
            .collect()
    });
    (rows.collect(), groups)
}

#[tokio::test]
async fn json_lines_hold_every_row_exactly() {
    let bench = filled().await;
    let text = String::from_utf8(bytes(&bench, &Filter::default(), Format::Jsonl).await).unwrap();
    assert!(text.ends_with('\n') && !text.contains("\\/"), "slashes stay as they are");
    let rows = json_rows(&bench, &Filter::default()).await;
    assert_eq!(
        rows.iter().take(AWKWARD.len()).map(|row| row["description"].as_str().unwrap()).collect::<Vec<_>>(),
        AWKWARD
    );
    let stored = bench.store.export_page(None, Default::default(), u32::MAX).await.unwrap();
    assert_eq!(rows.len(), stored.len());
    let names: Vec<&str> = Table::Descriptions.columns().iter().map(|column| column.name).collect();
    for (row, stored) in rows.iter().zip(&stored) {
        assert_eq!(row.as_object().unwrap().len(), names.len());
        assert_eq!(row["description_id"], stored.answer.0);
        let skip = stored.kind == AnswerKind::Skipped;
        let text = if skip { &row["skip_reason"] } else { &row["description"] };
        assert_eq!((text.as_str(), row["kind"].as_str()), (Some(stored.text.as_str()), Some(stored.kind.as_str())));
        assert_eq!(row["view"], stored.view);
        assert_eq!((&row["preset"], &row["schema_version"]), (&json!("tiny"), &json!(2)));
        assert_eq!(row["is_valid"], stored.is_valid());
    }
    // The correction is the second that the person said about the execution.
    let corrected = rows.iter().find(|row| row["description"] == "better,\nlonger").unwrap();
    assert_eq!((&corrected["revision"], &rows[0]["revision"]), (&json!(2), &json!(1)));
}

#[tokio::test]
async fn csv_holds_the_same_and_no_cell_is_a_formula() {
    let bench = filled().await;
    let bytes = bytes(&bench, &Filter::default(), Format::Csv).await;
    let mut reader = csv::Reader::from_reader(bytes.as_slice());
    let columns = Table::Descriptions.columns();
    assert_eq!(
        reader.headers().unwrap().iter().collect::<Vec<_>>(),
        columns.iter().map(|c| c.name).collect::<Vec<_>>()
    );
    let expected = cells(&bench).await;
    for (record, expected) in reader.records().zip(&expected) {
        for ((column, field), expected) in columns.iter().zip(&record.unwrap()).zip(expected) {
            assert!(!field.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']), "{field}");
            // An empty text and no text are one field.
            let empty = column.optional && *expected == Cell::Text(String::new());
            let expected = if empty { &Cell::Empty } else { expected };
            assert_eq!(&from_field(column, field).unwrap(), expected, "{}", column.name);
        }
    }
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.contains("\"'=1+2 +3 -4 @SUM(A1) \tTab\""));
    assert!(text.starts_with("\"description_id\",\"episode_id\",") && text.ends_with("\r\n"));
}

#[tokio::test]
async fn parquet_holds_the_same() {
    let bench = filled().await;
    let (rows, groups) = parquet_rows(Table::Descriptions, &bytes(&bench, &Filter::default(), Format::Parquet).await);
    assert_eq!((rows, groups), (cells(&bench).await, 1));
    let none =
        bytes(&bench, &Filter { kind: Some(AnswerKind::NothingChanged), ..Filter::default() }, Format::Parquet).await;
    assert_eq!(parquet_rows(Table::Descriptions, &none), (vec![], 0));
}

#[tokio::test]
async fn parquet_is_written_in_groups_of_bounded_size() {
    let bench = Bench::new().await;
    let large = "x".repeat(20_000);
    let rows: Vec<_> = (0..1_100).map(|e| simulated(e, Some(1), &format!("{e} {large}"))).collect();
    bench.store.record_simulated(&RUN, &rows).await.unwrap();
    let (rows, groups) = parquet_rows(Table::Descriptions, &bytes(&bench, &Filter::default(), Format::Parquet).await);
    assert_eq!(rows.len(), 1_100);
    assert!(groups > 1, "{groups}");
    let at = Table::Descriptions.columns().iter().position(|column| column.name == "description").unwrap();
    assert!(rows.iter().enumerate().all(|(e, row)| row[at] == Cell::Text(format!("{e} {large}"))));
}

#[tokio::test]
async fn filters_leave_out_what_they_say_and_counts_agree() {
    let bench = filled().await;
    bench.store.create_run(&run("run-2")).await.unwrap();
    bench.store.record_simulated(&"run-2".into(), &[simulated(0, Some(1), "only")]).await.unwrap();
    let all = Filter::default();
    let now = bench.clock.now();
    let n = AWKWARD.len();
    for (filter, expected) in [
        (all.clone(), 2 * n + 3),
        (Filter::of_run(&"run-2".into()), 1),
        (Filter { source: Some(Source::Human), ..all.clone() }, n + 2),
        (Filter { source: Some(Source::Human), ..Filter::of_run(&"run-2".into()) }, 0),
        (Filter { kind: Some(AnswerKind::Skipped), ..all.clone() }, 1),
        (Filter { source: Some(Source::Human), standing: true, ..all.clone() }, n + 1),
        (Filter { source: Some(Source::Human), valid: Some(true), ..all.clone() }, n),
        (Filter { source: Some(Source::Human), valid: Some(false), ..all.clone() }, 2),
        (Filter { before: Some(now), ..all.clone() }, 0),
        (Filter { from: Some(now), ..all.clone() }, 2 * n + 3),
        (Filter { review: Some(iliad::store::ReviewFilter::Open), ..all.clone() }, 2 * n + 3),
        (Filter { review: Some(iliad::store::ReviewFilter::Accepted), ..all.clone() }, 0),
    ] {
        assert_eq!(bench.store.export_extent(&filter).await.unwrap().rows, expected as u64, "{filter:?}");
        assert_eq!(json_rows(&bench, &filter).await.len(), expected, "{filter:?}");
    }
    let unknown = Filter { study: Some("none".into()), ..all };
    let error = Snapshot::take(&bench.store, Registry::builtin(), unknown).await.unwrap_err();
    assert!(matches!(error, ExportError::Store(StoreError::NotFound("the study"))));
}

#[tokio::test]
async fn an_empty_run_gives_an_empty_file_and_an_unknown_one_an_error() {
    let bench = Bench::new().await;
    let filter = Filter::of_run(&RUN);
    assert!(bytes(&bench, &filter, Format::Jsonl).await.is_empty());
    let csv = String::from_utf8(bytes(&bench, &filter, Format::Csv).await).unwrap();
    assert_eq!(csv.lines().count(), 1, "the header alone");
    let none: RunId = "none".into();
    let unknown = Snapshot::take(&bench.store, Registry::builtin(), Filter::of_run(&none)).await.unwrap_err();
    assert!(matches!(unknown, ExportError::Store(StoreError::NotFound("the run"))));
}

#[tokio::test]
async fn an_export_is_of_the_moment_when_it_begins() {
    let bench = Bench::new().await;
    let rows: Vec<_> = (0..1200).map(|e| simulated(e, None, "before")).collect();
    bench.store.record_simulated(&RUN, &rows).await.unwrap();
    bench.offer([(5_000, 1)]).await;
    let ada = bench.teacher("a").await;
    let key = bench.describe(ada, "mine").await;
    let mut pieces = Box::pin(chunks(moment(&bench, &Filter::of_run(&RUN)).await, Format::Jsonl));
    let (first, told) = pieces.next().await.unwrap().unwrap();
    assert_eq!((told.done, told.rows), (500, 1201));
    let later: Vec<_> = (2000..2100).map(|e| simulated(e, Some(2), "meanwhile")).collect();
    bench.store.record_simulated(&RUN, &later).await.unwrap();
    // Rows that change meanwhile are exported as they were, too.
    bench.store.retract(key, ada).await.unwrap();
    let mut text = first;
    while let Some(piece) = pieces.next().await {
        text.extend(piece.unwrap().0);
    }
    let text = String::from_utf8(text).unwrap();
    assert_eq!(text.lines().count(), 1201);
    assert!(text.contains("\"mine\"") && !text.contains("meanwhile"));
    assert!(pieces.next().await.is_none(), "an ended stream stays ended");
    assert!(!String::from_utf8(bytes(&bench, &Filter::default(), Format::Jsonl).await).unwrap().contains("\"mine\""));
}

/// The files of a data set by their paths.
async fn folder(bench: &Bench, about: Description) -> BTreeMap<String, Vec<u8>> {
    let mut pieces = dataset::pieces(moment(bench, &Filter::default()).await, about);
    let (mut files, mut path, mut size) = (BTreeMap::<String, Vec<u8>>::new(), String::new(), 0);
    while let Some(piece) = pieces.recv().await {
        match piece.unwrap() {
            Piece::File { path: name, bytes } => {
                assert_eq!(files.get(&path).map_or(0, Vec::len), size, "{path} has the size that was said");
                (path, size) = (name, bytes as usize);
                files.insert(path.clone(), Vec::new());
            }
            Piece::Bytes(bytes) => files.get_mut(&path).unwrap().extend(bytes),
            Piece::Progress(_) => {}
        }
    }
    files
}

#[tokio::test]
async fn a_data_set_is_a_folder_with_a_card_and_a_manifest() {
    let bench = filled().await;
    bench
        .store
        .record_points(&RUN, &[iliad::run::Point { update: 3, loss: Some(0.5), ..Default::default() }])
        .await
        .unwrap();
    let about = Description { name: "words".into(), version: "2.1".into(), licence: Some("CC-BY-4.0".into()) };
    let files = folder(&bench, about.clone()).await;
    assert_eq!(
        files.keys().collect::<Vec<_>>(),
        [
            "README.md",
            "data/episodes/train-00000.parquet",
            "data/events/train-00000.parquet",
            "data/train-00000.parquet",
            "manifest.json"
        ]
    );
    let manifest: Manifest = serde_json::from_slice(&files["manifest.json"]).unwrap();
    let described =
        (manifest.name.as_str(), manifest.version.as_str(), manifest.licence.as_deref(), manifest.schema_version);
    assert_eq!(described, ("words", "2.1", Some("CC-BY-4.0"), 2));
    for file in &manifest.files {
        let bytes = &files[&file.path];
        assert_eq!((file.bytes, &file.sha256), (bytes.len() as u64, &hex::encode(Sha256::digest(bytes))));
    }
    let (rows, _) = parquet_rows(Table::Descriptions, &files["data/train-00000.parquet"]);
    assert_eq!(rows, cells(&bench).await);
    assert_eq!(manifest.rows(Table::Descriptions), rows.len() as u64);
    let (episodes, _) = parquet_rows(Table::Episodes, &files["data/episodes/train-00000.parquet"]);
    assert_eq!(manifest.rows(Table::Episodes), episodes.len() as u64);
    let (events, _) = parquet_rows(Table::Events, &files["data/events/train-00000.parquet"]);
    assert_eq!((manifest.rows(Table::Events), events[0][1].clone()), (1, Cell::from("point")));
    let run = &manifest.runs[0];
    assert_eq!((run.run_id.as_str(), &run.config_hash), (RUN.as_str(), &iliad::export::config_hash(&run.config)));
    let card = String::from_utf8(files["README.md"].clone()).unwrap();
    assert!(card.starts_with("---\nlicense: cc-by-4.0\npretty_name: \"words\"\n"), "{card}");
    assert!(card.contains("path: data/train-*.parquet") && card.contains("| `teacher_id` |"), "{card}");

    // The archive has these files, too.
    let pieces = dataset::pieces(moment(&bench, &Filter::default()).await, about);
    let pieces: Vec<_> = tar(pieces, "words-2.1".into(), 0).collect().await;
    let archive: Vec<u8> = pieces.into_iter().flat_map(|piece| piece.unwrap().0).collect();
    assert_eq!(archive.len() % 512, 0);
    let mut at = 0;
    let mut found = BTreeMap::new();
    while archive[at] != 0 {
        let text = |from: usize, to: usize| {
            String::from_utf8_lossy(&archive[at + from..at + to]).trim_matches(['\0', ' ']).to_owned()
        };
        let size = usize::from_str_radix(&text(124, 135), 8).unwrap();
        found.insert(text(0, 100), archive[at + 512..at + 512 + size].to_vec());
        at += 512 + size.div_ceil(512) * 512;
    }
    assert_eq!(found.len(), files.len());
    assert_eq!(found["words-2.1/data/train-00000.parquet"], files["data/train-00000.parquet"]);
}

#[tokio::test]
async fn a_licence_in_words_is_in_the_card() {
    let bench = Bench::new().await;
    let about = Description { licence: Some("Ask us first.".into()), ..Description::default() };
    let card = String::from_utf8(folder(&bench, about.check().unwrap()).await["README.md"].clone()).unwrap();
    assert!(card.contains("license: other\n") && card.ends_with("## Licence\n\nAsk us first.\n"), "{card}");
    assert!(Description { name: "../x".into(), ..Description::default() }.check().is_err());
}

/// Two words and what was made of them.
fn pairs() -> Value {
    json!({"pairs": [{"in": "ab", "out": "b"}, {"in": "ca", "out": "c"}]})
}

#[tokio::test]
async fn parts_references_and_forms_come_from_the_family() {
    let bench = Bench::new().await;
    let reference =
        Reference { summary: "()(a)()@".into(), execution: json!({"expression": "()(a)()@", "outputs": ["b", "c"]}) };
    let row = iliad::run::EpisodeRow { view: pairs(), reference: Some(reference), ..simulated(0, Some(1), "drop a") };
    bench.store.record_simulated(&RUN, &[row]).await.unwrap();
    let rows = json_rows(&bench, &Filter::default()).await;
    assert_eq!(rows[0]["start_state"], json!({"words": ["ab", "ca"]}));
    assert_eq!((&rows[0]["outputs"], &rows[0]["reference_outputs"]), (&json!(["b", "c"]), &json!(["b", "c"])));
    assert_eq!((&rows[0]["reference_execution"], &rows[0]["success"]), (&json!("()(a)()@"), &json!(true)));
    let form = async |name: &str| {
        let form = forms::named(Registry::builtin(), name).unwrap();
        let pieces: Vec<_> = forms::examples(moment(&bench, &Filter::default()).await, form).collect().await;
        String::from_utf8(pieces.into_iter().flat_map(|piece| piece.unwrap().0).collect()).unwrap()
    };
    let words: Vec<Value> = form("regex").await.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let first = &words[0];
    assert_eq!((words.len(), &first["word"], &first["request"]), (2, &json!("ab"), &json!("drop a")));
    assert_eq!((&first["expression"], &first["output"]), (&json!("()(a)()@b"), &json!("b")));
    let pair: Value = serde_json::from_str(form("pairs").await.trim()).unwrap();
    assert_eq!((&pair["request"], &pair["description"]), (&json!("request 0"), &json!("drop a")));
    assert_eq!(serde_json::from_str::<Value>(&form("r2r").await).unwrap(), json!([]), "there are no walks");
    // The manifest of such a file counts its examples.
    let regex = forms::named(Registry::builtin(), "regex").unwrap();
    let mut file = forms::ExamplesFile::new(moment(&bench, &Filter::default()).await, regex);
    while let Some((_, progress)) = file.next().await.unwrap() {
        assert!(progress.done <= progress.rows, "{progress:?}");
    }
    let manifest = file.manifest(Description::default(), "regex.jsonl".into(), 7, "ab".into());
    assert_eq!((manifest.counts["regex"], manifest.runs.len()), (2, 1));
}

#[tokio::test]
async fn the_manifest_of_a_file_says_what_it_is() {
    let bench = filled().await;
    let mut file = DescriptionsFile::new(moment(&bench, &Filter::of_run(&RUN)).await, Format::Csv).unwrap();
    while file.next().await.unwrap().is_some() {}
    let manifest = file.manifest(Description::default(), "a.csv".into(), 7, "ab".into());
    assert_eq!((manifest.files[0].path.as_str(), manifest.filters.run.as_deref()), ("a.csv", Some(RUN.as_str())));
    assert_eq!(manifest.rows(Table::Descriptions), bench.store.export_count(None).await.unwrap());
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
    let failed =
        write(moment(&bench, &Filter::default()).await, Format::Jsonl, &mut SmallDisk(1000), |_| {}).await.unwrap_err();
    assert!(matches!(failed, ExportError::Io(_)), "{failed}");
}
