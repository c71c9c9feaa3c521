//! The commands that come from the families of the registry: the groups `data` and `execute`, and the families' own.

use super::data;
use crate::family::commands::{CommandSet, ParsedCommand};
use crate::registry::Registry;
use clap::{ArgMatches, Command, FromArgMatches};

/// The groups stand in the help behind this command.
const PLACE: &str = "reproduce";

/// A group of commands.
struct Group {
    name: &'static str,
    about: &'static str,
    /// Commands of families.
    sets: Vec<CommandSet>,
    /// A command for the data of all families, which stands last.
    describe: Option<Command>,
}

/// The groups to which the families bring commands.
fn groups(registry: Registry) -> Vec<Group> {
    let families = registry.families();
    let data = Group {
        name: "data",
        about: "Bring data in, and look at it",
        sets: families.iter().filter_map(|family| family.commands().data).collect(),
        describe: data::command(registry),
    };
    let execute = Group {
        name: "execute",
        about: "Execute what an agent writes",
        sets: families.iter().filter_map(|family| family.commands().execute).collect(),
        describe: None,
    };
    let own = families.iter().filter_map(|family| {
        let own = family.commands().own?;
        Some(Group { name: family.name(), about: own.about, sets: vec![own.commands], describe: None })
    });
    let all = [data, execute].into_iter().chain(own);
    all.filter(|group| !group.sets.is_empty() || group.describe.is_some()).collect()
}

/// The program's commands with those of the families among them.
pub(super) fn assemble(program: Command, registry: Registry) -> Command {
    let groups = groups(registry);
    let place = program.get_subcommands().take_while(|command| command.get_name() != PLACE).count() + 1;
    let (mut at, room) = (0, groups.len());
    let mut program = program.mut_subcommands(|command| {
        let order = if at < place { at } else { at + room };
        at += 1;
        command.display_order(order)
    });
    for (at, group) in groups.into_iter().enumerate() {
        let command = Command::new(group.name).subcommand_required(true).arg_required_else_help(true);
        let command = group.sets.iter().fold(command, |command, set| set.add_to(command)).subcommands(group.describe);
        // A set brings the documentation of its enum along.
        program = program.subcommand(command.about(group.about).long_about(None).display_order(place + at));
    }
    program
}

/// The command that was given, if it is in one of the groups.
pub(super) fn parse(matches: &ArgMatches, registry: Registry) -> Option<Result<ParsedCommand, clap::Error>> {
    let (name, matches) = matches.subcommand()?;
    let group = groups(registry).into_iter().find(|group| group.name == name)?;
    let (command, arguments) = matches.subcommand()?;
    if let Some(set) = group.sets.iter().find(|set| set.has(command)) {
        return Some(set.parse(matches));
    }
    group.describe?;
    let describe = |args: data::Args| Box::new(move || data::run(&args, registry)) as ParsedCommand;
    Some(data::Args::from_arg_matches(arguments).map(describe))
}
