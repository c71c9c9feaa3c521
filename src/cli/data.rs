//! `iliad data describe` says what corpora and built-in worlds hold. The families bring the other commands of `iliad data`.

use crate::command_line::CliResult;
use crate::command_line::settings::Common;
use crate::family::commands::DataDescription;
use crate::registry::Registry;
use clap::builder::PossibleValuesParser;
use std::path::PathBuf;

/// Flags of `iliad data describe`.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// Folder of a corpus [default: the built-in world]
    #[arg(value_name = "FOLDER")]
    pub corpus: Option<PathBuf>,
    /// Whose built-in world
    #[arg(long, value_name = "NAME", conflicts_with = "corpus", required = false)]
    pub family: String,
    /// Write the figures as one line of JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub common: Common,
}

/// The families whose data can be described, with their names. The first one is the default.
fn families(registry: Registry) -> Vec<(&'static str, DataDescription)> {
    let all = registry.families().iter();
    all.filter_map(|family| Some((family.name(), family.commands().data_description?))).collect()
}

/// The command for the families of the registry; nothing where none of them describes data.
pub(super) fn command(registry: Registry) -> Option<clap::Command> {
    let families = families(registry);
    let (default, _) = families.first()?;
    let corpora: Vec<&str> = families.iter().map(|(_, data)| data.corpus_of).collect();
    let folder = format!("Folder of a corpus, of {} [default: the built-in world]", corpora.join(" or of "));
    let names = PossibleValuesParser::new(families.iter().map(|(name, _)| *name));
    let command = <Args as clap::Args>::augment_args(clap::Command::new("describe"))
        .about("Say what a corpus, or the built-in world, holds")
        .long_about(None)
        .mut_arg("corpus", |argument| argument.help(folder))
        .mut_arg("family", |argument| argument.value_parser(names).default_value(*default))
        .after_help(examples(&families));
    Some(command)
}

/// Examples with the built-in worlds and the corpora of the families.
fn examples(families: &[(&str, DataDescription)]) -> String {
    let mut lines = vec!["Examples:".to_owned()];
    let mut example = |arguments: &str, about: &str| {
        let command = format!("iliad data describe {arguments}");
        lines.push(format!("  {command:<38}  {about}").trim_end().to_owned());
    };
    for (at, (name, data)) in families.iter().enumerate() {
        let family = if at == 0 { String::new() } else { format!("--family {name}") };
        example(&family, data.built_in);
    }
    for (_, data) in families.iter().rev() {
        example(data.example, data.figures);
    }
    if let Some((_, data)) = families.first() {
        example(&format!("{} --json", data.example), "");
    }
    lines.join("\n")
}

/// Carries out `iliad data describe`. A folder that no other family recognises is taken for a corpus of the first one.
pub(super) fn run(args: &Args, registry: Registry) -> CliResult {
    args.common.load()?;
    let families = families(registry);
    let meant = |(name, data): &&(&str, DataDescription)| match &args.corpus {
        Some(folder) => (data.recognises)(folder),
        None => *name == args.family,
    };
    let (_, data) = families.iter().skip(1).find(meant).unwrap_or(&families[0]);
    (data.describe)(args.corpus.as_deref(), args.json)
}
