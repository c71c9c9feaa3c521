//! The card of a data set: `README.md` with the front matter that Hugging Face's hub reads.

use super::manifest::Manifest;
use super::walk::Table;
use std::fmt::Write;

/// Names of sizes on the hub, each with the rows below it.
const SIZES: [(u64, &str); 5] = [
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
];

/// Whether a licence is an identifier and no sentence.
fn is_identifier(licence: &str) -> bool {
    licence.len() <= 40 && licence.chars().all(|c| c.is_ascii_alphanumeric() || ".-+".contains(c))
}

/// A text in the quotation marks of YAML.
fn quoted(text: &str) -> String {
    // JSON's strings are YAML's.
    serde_json::Value::from(text).to_string()
}

/// The card.
pub(super) fn text(manifest: &Manifest) -> String {
    let Manifest { name, version, licence, filters, .. } = manifest;
    let rows = manifest.rows(Table::Descriptions);
    let size = SIZES.iter().find(|(below, _)| rows < *below).map_or("n>10M", |(_, name)| name);
    let mut card = String::from("---\n");
    match licence.as_deref().map(str::trim) {
        Some(id) if is_identifier(id) => {
            let _ = writeln!(card, "license: {}", id.to_lowercase());
        }
        Some(_) => card.push_str("license: other\nlicense_name: see-below\n"),
        None => {}
    }
    let _ = write!(
        card,
        "pretty_name: {}\nlanguage:\n- en\nsize_categories:\n- {size}\ntags:\n- iliad\n- learning-from-descriptions\nconfigs:\n",
        quoted(name)
    );
    // `datasets` opens no configuration without rows.
    for table in Table::ALL.into_iter().filter(|table| *table == Table::Descriptions || manifest.rows(*table) > 0) {
        let folder = if table == Table::Descriptions { String::new() } else { format!("{}/", table.name()) };
        let _ = write!(
            card,
            "- config_name: {}\n  data_files:\n  - split: train\n    path: data/{folder}train-*.parquet\n",
            table.name()
        );
        if table == Table::Descriptions {
            card.push_str("  default: true\n");
        }
    }
    let _ = write!(
        card,
        "---\n\n# {name}\n\nVersion {version}. Descriptions that teachers gave of what an agent did, collected with Iliad {}.\n\n",
        manifest.code_version
    );
    card.push_str("| configuration | rows | a row is |\n|---|---|---|\n");
    for (table, about) in Table::ALL.into_iter().zip([
        "an answer of a teacher: a description, a correction, or a skip",
        "an execution of the agent that somebody was asked about",
        "a point of a learning curve, or the record of an update",
    ]) {
        let _ = writeln!(card, "| `{}` | {} | {about} |", table.name(), manifest.rows(table));
    }
    card.push_str("\n```python\nfrom datasets import load_dataset\n\ndescriptions = load_dataset(\".\", \"descriptions\", split=\"train\")\n```\n\n");
    card.push_str("Columns that hold JSON (`start_state`, `outputs`, `view` and others) have it as text.\n\n");
    for table in Table::ALL {
        let _ = write!(card, "## Columns of `{}`\n\n| column | meaning |\n|---|---|\n", table.name());
        for column in table.columns() {
            let _ = writeln!(card, "| `{}` | {} |", column.name, column.about);
        }
        card.push('\n');
    }
    let left_out = serde_json::to_value(filters).ok();
    let left_out = left_out.as_ref().and_then(serde_json::Value::as_object).into_iter().flatten();
    let left_out: Vec<String> = left_out
        .filter(|(_, value)| !value.is_null() && **value != serde_json::Value::Bool(false))
        .map(|(name, value)| format!("`{name}` = {}", value.to_string().trim_matches('"')))
        .collect();
    card.push_str("## Filters\n\n");
    card.push_str(&if left_out.is_empty() {
        "None: all answers are there.\n".into()
    } else {
        format!("{}.\n", left_out.join(", "))
    });
    card.push_str("\n## Licence\n\n");
    card.push_str(licence.as_deref().unwrap_or("The researcher has not chosen a licence."));
    card.push('\n');
    card
}
