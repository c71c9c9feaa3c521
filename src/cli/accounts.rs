//! `iliad accounts`: who may sign in, from the machine itself. It helps somebody who has locked themselves out.

use super::runtime;
use crate::app::start;
use crate::command_line::settings::Common;
use crate::command_line::{CliError, CliResult, Exit};
use crate::config::server::{DatabaseAddress, ServerConfig};
use crate::credentials;
use crate::output::{note, out};
use crate::store::{Account, Role, Store, StoreError};
use crate::suggest::did_you_mean;
use serde_json::json;
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Commands of `iliad accounts`.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(clap::Subcommand, Clone, Debug)]
pub(super) enum Command {
    /// List the accounts
    List(ListArgs),
    /// Print a link that makes an account
    Invite(InviteArgs),
    /// Give an account a new password, print it, and sign the account out everywhere
    ResetPassword(NamedArgs),
    /// Keep an account from signing in, and sign it out everywhere
    Disable(NamedArgs),
    /// Let a disabled account sign in again
    Enable(NamedArgs),
}

const AFTER_LIST: &str = "\
A server may be running on the same data folder.

Examples:
  iliad accounts list                             name, role, when last seen
  iliad accounts list --json                      one JSON object a line
  iliad accounts list --data-dir /srv/iliad       of that server's data folder";

/// Flags of `iliad accounts list`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER_LIST)]
pub(super) struct ListArgs {
    /// Write each account as a line of JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub common: Common,
}

const AFTER_INVITE: &str = "\
The link works once. It begins with the address of the settings; behind a proxy, put the address in its place under which \
people reach the server. A server may be running on the same data folder.

Examples:
  iliad accounts invite --role owner                  for the first account, or when every owner is locked out
  iliad accounts invite --role reviewer --days 3      for somebody who reviews";

/// Flags of `iliad accounts invite`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER_INVITE)]
pub(super) struct InviteArgs {
    /// Role of the account: owner, researcher, reviewer or teacher
    #[arg(long, value_name = "ROLE", default_value = "researcher")]
    pub role: Role,
    /// For how many days the link is good
    #[arg(long, value_name = "DAYS", default_value_t = 7, value_parser = clap::value_parser!(u64).range(1..=365))]
    pub days: u64,
    #[command(flatten)]
    pub common: Common,
}

const AFTER_NAMED: &str = "\
Upper and lower case do not matter. A server may be running on the same data folder; what is changed counts there at once.

Examples:
  iliad accounts reset-password ada@example.org
  iliad accounts disable \"Ada Lovelace\" --data-dir /srv/iliad
  iliad accounts enable \"Ada Lovelace\"";

/// Flags of the commands about one account.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER_NAMED)]
pub(super) struct NamedArgs {
    /// Name or e-mail address of the account
    #[arg(value_name = "NAME")]
    pub name: String,
    #[command(flatten)]
    pub common: Common,
}

/// Carries out `iliad accounts …`.
pub(super) fn run(args: &Args) -> CliResult {
    let common = match &args.command {
        Command::List(args) => &args.common,
        Command::Invite(args) => &args.common,
        Command::ResetPassword(args) | Command::Disable(args) | Command::Enable(args) => &args.common,
    };
    let settings = common.load()?;
    let database = database(&settings)?;
    match &args.command {
        Command::List(args) => {
            runtime()?.block_on(Store::reading(&database, async |store| list(&store, args).await))?
        }
        command => {
            runtime()?.block_on(Store::using(&database, async |store| change(&store, &settings, command).await))?
        }
    }
}

/// The database of a server that was started once.
pub(super) fn database(settings: &ServerConfig) -> Result<DatabaseAddress, CliError> {
    let database = settings.database();
    if database.exists() {
        return Ok(database);
    }
    let folder = settings.data_dir.display();
    Err(CliError::Usage(format!(
        "there is no database in {folder}; name the server's data folder with --data-dir, or start the server once"
    )))
}

async fn list(store: &Store, args: &ListArgs) -> CliResult {
    let accounts = store.list_accounts().await?;
    let time = |at: Option<OffsetDateTime>| at.and_then(|at| at.format(&Rfc3339).ok());
    if args.json {
        for account in &accounts {
            let line = json!({
                "name": account.name,
                "role": account.role,
                "created_at": time(Some(account.created_at)),
                "seen_at": time(account.seen_at),
                "disabled_at": time(account.disabled_at),
            });
            out!("{line}")?;
        }
        return Ok(Exit::Done);
    }
    if accounts.is_empty() {
        note!("There is no account yet. The server prints a link for the first one at its start.");
    }
    let width = accounts.iter().map(|account| account.name.chars().count()).max().unwrap_or(0);
    for account in &accounts {
        let day = |at: OffsetDateTime| at.date();
        let seen = account.seen_at.map_or("never signed in".to_owned(), |at| format!("last seen {}", day(at)));
        let disabled = account.disabled_at.map(|at| format!(", disabled {}", day(at))).unwrap_or_default();
        out!("{:<width$}  {:<10}  {seen}{disabled}", account.name, account.role)?;
    }
    Ok(Exit::Done)
}

async fn change(store: &Store, settings: &ServerConfig, command: &Command) -> CliResult {
    match command {
        Command::List(_) => Ok(Exit::Done),
        Command::Invite(args) => invite(store, settings, args).await,
        Command::ResetPassword(args) => {
            let account = named(store, &args.name).await?;
            let password = credentials::random_password()?;
            store.set_password(account.id, &credentials::hash(password.clone()).await?, None).await?;
            out!("{password}")?;
            note!(
                "This is the new password of {}, who was signed out everywhere and can change it at /account.",
                account.name
            );
            if account.disabled_at.is_some() {
                note!("The account is disabled; `iliad accounts enable` lets it sign in.");
            }
            Ok(Exit::Done)
        }
        Command::Disable(args) => {
            let account = named(store, &args.name).await?;
            store.set_disabled(account.id, true).await.map_err(in_words)?;
            note!("{} can sign in no longer and was signed out everywhere.", account.name);
            Ok(Exit::Done)
        }
        Command::Enable(args) => {
            let account = named(store, &args.name).await?;
            store.set_disabled(account.id, false).await?;
            note!("{} can sign in.", account.name);
            Ok(Exit::Done)
        }
    }
}

async fn invite(store: &Store, settings: &ServerConfig, args: &InviteArgs) -> CliResult {
    let token = credentials::random_token()?;
    let good_for = Duration::from_secs(args.days * 24 * 60 * 60);
    store.invite(&token, args.role, None, good_for).await.map_err(in_words)?;
    out!("{}", start::link(settings, &format!("/invite/{token}")))?;
    let days = if args.days == 1 { "a day".to_owned() } else { format!("{} days", args.days) };
    note!(
        "The link makes one account with the role {}, within {days}. Behind a proxy, put your own address in its place.",
        args.role
    );
    Ok(Exit::Done)
}

/// A refusal of the store is for the person to act upon.
fn in_words(error: StoreError) -> CliError {
    match error {
        StoreError::Conflict(sentence) => CliError::Usage(sentence),
        error => CliError::Failed(error.into()),
    }
}

async fn named(store: &Store, name: &str) -> Result<Account, CliError> {
    if let Some(account) = store.account_called(name).await? {
        return Ok(account);
    }
    let known = store.list_accounts().await?;
    let meant = did_you_mean(name, known.iter().map(|account| account.name.as_str()));
    let advice = if known.is_empty() { "there is none yet" } else { "`iliad accounts list` shows all" };
    Err(CliError::Usage(format!("there is no account called {name:?}{meant}; {advice}")))
}
