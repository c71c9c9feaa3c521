//! The runs that remake the paper's tables and figures, as a family's `tables.toml` lists them.

use crate::datafile::built_in;
use serde::{Deserialize, Serialize};

/// A table of runs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Name within the family: `main`.
    pub name: String,
    /// Its subject, in one line.
    pub title: String,
    /// Rows.
    pub rows: Vec<Row>,
}

/// One row of a table.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Name of the row and its folder.
    pub name: String,
    /// The name that people see.
    pub title: String,
    /// Settings `key=value` that make it, in the order in which they are applied.
    pub settings: Vec<String>,
    /// The paper's figures.
    #[serde(default)]
    pub paper: Paper,
}

/// The paper's figures for a row, in percent and as it counts; `None` where it gives none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Paper {
    /// Validation success, %.
    pub validation: Option<f64>,
    /// Test success, %.
    pub test: Option<f64>,
    /// Level of validation success that `to_level` is about, %.
    pub level: Option<f64>,
    /// Episodes, which the paper counts as pieces of teaching, until that level.
    pub to_level: Option<f64>,
}

/// A picture of the runs of a table.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Figure {
    name: String,
    title: String,
    table: String,
}

/// An example of `iliad reproduce` for the command's help.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HelpExample {
    /// The arguments behind the family's name.
    pub arguments: String,
    /// The purpose of such a command.
    pub about: String,
}

/// All tables and figures of a family.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tables {
    tables: Vec<Table>,
    figures: Vec<Figure>,
    examples: Vec<HelpExample>,
}

impl Tables {
    /// The tables of a file that is compiled into the program.
    pub fn built_in(name: &str, text: &str) -> Tables {
        built_in(name, text)
    }

    /// No tables.
    pub fn none() -> &'static Tables {
        static NONE: Tables = Tables { tables: Vec::new(), figures: Vec::new(), examples: Vec::new() };
        &NONE
    }

    /// All tables, in the file's order.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// The names of all figures.
    pub fn figures(&self) -> impl Iterator<Item = &str> {
        self.figures.iter().map(|figure| figure.name.as_str())
    }

    /// The tables by name: `main`, `mixing`, `anneal`, `efficient`; `None` for another name.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }

    /// The figures by name, as tables of the runs that they show; `None` for another name.
    pub fn figure(&self, name: &str) -> Option<Table> {
        let figure = self.figures.iter().find(|figure| figure.name == name)?;
        let rows = self.table(&figure.table)?.rows.clone();
        Some(Table { name: figure.name.clone(), title: figure.title.clone(), rows })
    }

    /// All tables.
    pub fn all(&self) -> &[Table] {
        &self.tables
    }

    /// Examples of `iliad reproduce`.
    pub fn examples(&self) -> &[HelpExample] {
        &self.examples
    }
}
