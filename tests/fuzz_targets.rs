//! The fuzz targets of `tests/fuzz/` without libFuzzer: every input that is kept is tried, and a fixed number of others that a seeded
//! generator makes of them. Inputs by which a fault was found stay in `tests/fuzz/corpus/`, so that none comes back.

#[path = "support/mod.rs"]
mod support;
#[path = "fuzz/targets.rs"]
mod targets;

use iliad::rng::{self, Stream};
use rand::RngExt;
use std::path::{Path, PathBuf};
use targets::Target;

/// Most bytes of an input that is made up.
const LONGEST: usize = 16 * 1024;

fn corpus(target: &Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(target.name)
}

/// The inputs of a target that are kept, with their names.
fn kept(target: &Target) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(corpus(target)).unwrap_or_else(|error| panic!("{}: {error}", target.name));
    let read = |path: PathBuf| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(path).unwrap());
    let mut kept: Vec<_> = entries.map(|entry| read(entry.unwrap().path())).collect();
    kept.sort();
    assert!(!kept.is_empty(), "{} has inputs to begin with", target.name);
    kept
}

/// An input made of others: some changes of bytes and of pieces that the target reads.
fn made_up(stream: &mut Stream, kept: &[(String, Vec<u8>)], words: &[&str]) -> Vec<u8> {
    let any = |stream: &mut Stream| kept[stream.random_range(0..kept.len())].1.clone();
    let mut made = any(stream);
    for _ in 0..stream.random_range(1..8) {
        let at = stream.random_range(0..=made.len());
        let to = stream.random_range(at..=made.len().min(at + 32));
        match stream.random_range(0..7) {
            0 if at < made.len() => made[at] ^= 1 << stream.random_range(0..8),
            1 if at < made.len() => made[at] = stream.random(),
            2 => drop(made.drain(at..to)),
            3 => {
                let again = made[at..to].repeat(stream.random_range(1..20));
                made.splice(at..at, again);
            }
            4 => {
                let other = any(stream);
                let from = stream.random_range(0..=other.len());
                made.truncate(at);
                made.extend(&other[from..]);
            }
            _ => {
                let word = words[stream.random_range(0..words.len())];
                made.splice(at..to, word.bytes());
            }
        }
        made.truncate(LONGEST);
    }
    made
}

/// The input that is tried, written out where a target panics.
struct Shown<'a> {
    target: &'a str,
    name: String,
    input: &'a [u8],
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let file = std::env::temp_dir().join(format!("iliad-fuzz-{}-{}", self.target, self.name));
            let _ = std::fs::write(&file, self.input);
            eprintln!("{}: the input {} is kept as {}", self.target, self.name, file.display());
        }
    }
}

fn attempt(target: &Target, name: String, input: &[u8]) {
    let _shown = Shown { target: target.name, name, input };
    (target.run)(input);
}

/// `ILIAD_FUZZ_INPUTS` asks for another number of made-up inputs, `ILIAD_FUZZ_SEED` for others.
fn attempt_all(name: &str) {
    let target = targets::ALL.iter().find(|target| target.name == name).unwrap();
    let number = |name: &str, usual: u64| {
        std::env::var(name).ok().map_or(usual, |number| number.parse().unwrap_or_else(|_| panic!("{name} is a number")))
    };
    let kept = kept(target);
    for (name, input) in &kept {
        attempt(target, name.clone(), input);
    }
    let seed = number("ILIAD_FUZZ_SEED", 1);
    for n in 0..number("ILIAD_FUZZ_INPUTS", target.inputs) {
        let input = made_up(&mut rng::stream(seed, target.name, n), &kept, target.words);
        attempt(target, format!("{seed}-{n}"), &input);
    }
}

#[test]
fn any_text_is_an_expression_or_none() {
    attempt_all("expressions");
}

#[test]
fn any_text_has_tokens() {
    attempt_all("tokens");
}

#[test]
fn any_text_is_read_and_written() {
    attempt_all("reading");
}

#[test]
fn any_bytes_are_a_file_of_descriptions_or_bad_rows() {
    attempt_all("descriptions");
}

#[test]
fn any_bytes_are_episodes_or_bad_rows() {
    attempt_all("episodes");
}

#[test]
fn any_bytes_are_a_corpus_or_faults() {
    attempt_all("corpora");
}

#[test]
fn any_bytes_are_a_checkpoint_or_an_error() {
    attempt_all("checkpoints");
}

#[test]
fn any_body_is_answered_in_words() {
    attempt_all("api");
}

#[test]
fn every_target_is_a_program_of_libfuzzer() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz");
    let package = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    for target in &targets::ALL {
        let program = std::fs::read_to_string(folder.join(format!("fuzz_targets/{}.rs", target.name))).unwrap();
        assert!(program.contains("fuzz_target!"), "{}", target.name);
        assert!(package.contains(&format!("name = \"{}\"", target.name)), "{}", target.name);
    }
}

/// Inputs that only a program can write: `WRITE_SEEDS=1 cargo test --test fuzz_targets -- seeds` writes them anew.
#[test]
fn seeds_that_a_program_writes_are_files_of_their_kinds() {
    use iliad::export::schema::DESCRIPTIONS;
    use std::sync::Arc;
    let descriptions = corpus(&targets::ALL[3]).join("written.parquet");
    let weights = corpus(&targets::ALL[6]).join("weights.safetensors");
    let header = corpus(&targets::ALL[6]).join("header");
    if std::env::var_os("WRITE_SEEDS").is_some() {
        use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
        use parquet::file::writer::SerializedFileWriter;
        let message = "message rows { required binary run_id (UTF8); required binary task (UTF8); required int64 episode_id; \
             required binary view (UTF8); required binary description (UTF8); required int64 teacher_id; }";
        let schema = Arc::new(parquet::schema::parser::parse_message_type(message).unwrap());
        let mut writer = SerializedFileWriter::new(vec![2u8], schema, Default::default()).unwrap();
        let view = r#"{"pairs": [{"in": "ab", "out": "b"}]}"#;
        let mut group = writer.next_row_group().unwrap();
        for (text, number) in [("p", 0), ("regex", 0), ("", 1), (view, 0), ("drop a", 0), ("", 7)] {
            let mut column = group.next_column().unwrap().unwrap();
            match number {
                0 => column.typed::<ByteArrayType>().write_batch(&[ByteArray::from(text)], None, None).unwrap(),
                _ => column.typed::<Int64Type>().write_batch(&[number], None, None).unwrap(),
            };
            column.close().unwrap();
        }
        group.close().unwrap();
        std::fs::write(&descriptions, writer.into_inner().unwrap()).unwrap();
        let tensor = candle_core::Tensor::new(&[1f32, 2.0], &candle_core::Device::Cpu).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let tensors = std::collections::BTreeMap::from([("theta.weights.a".to_owned(), tensor)]);
        iliad::nn::artifact::save(&path, &"head", &tensors, iliad::nn::artifact::Precision::Full).unwrap();
        std::fs::write(&weights, [vec![2], std::fs::read(&path).unwrap()].concat()).unwrap();
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("model_store/shipped/regex-tiny-policy.safetensors");
        let (model, _) = iliad::nn::artifact::load::<serde_json::Value>(&shipped).unwrap();
        let mut head = serde_json::json!({
            "format": 1, "program": "0", "steps": 1, "lambda": 0.5, "teacher": {"mode": "human"}, "validation": null,
            "best": null, "seconds": 1.0, "written_at": "",
            "counters": {"update": 1, "episodes": 2, "human": 0, "simulated": 2, "recorded": 2, "pretrained": 0},
        });
        let config = iliad::registry::Registry::builtin().configure("tiny", 1, &[]).unwrap();
        head["config"] = serde_json::to_value(config).unwrap();
        head["meters"] = serde_json::to_value(iliad::trainer::meters::Meters::default()).unwrap();
        head["blueprint"] = model["blueprint"].clone();
        std::fs::write(&header, format!("\u{1}{head}")).unwrap();
    }
    let text = std::fs::read(&header).unwrap();
    let whole: iliad::trainer::checkpoint::Header =
        serde_json::from_slice(&text[1..]).expect("a header of a checkpoint");
    serde_json::from_value::<iliad::task::regex::agent::Blueprint>(whole.blueprint).expect("with a whole blueprint");
    assert!(DESCRIPTIONS.iter().any(|column| column.name == "run_id"));
    let read = |path: &Path| std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(read(&descriptions).ends_with(b"PAR1") && read(&descriptions)[0] == 2);
    assert!(read(&weights)[0] == 2);
}
