//! `iliad token`: the tokens of programs, from the machine itself.

use super::{accounts, runtime};
use crate::command_line::settings::Common;
use crate::command_line::{CliError, CliResult, Exit};
use crate::credentials;
use crate::output::{note, out};
use crate::store::{ApiToken, Scope, Store, StoreError, TokenId};
use crate::web::PROGRAM_TOKEN_PREFIX;
use serde_json::json;
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

/// Commands of `iliad token`.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(clap::Subcommand, Clone, Debug)]
pub(super) enum Command {
    /// Make a token, and print it
    Create(CreateArgs),
    /// List the tokens
    List(ListArgs),
    /// Revoke a token
    Revoke(RevokeArgs),
}

const AFTER_CREATE: &str = "\
The token is printed once; only a hash of it is kept. A server may be running on the same data folder.

Scopes:
  read     reads runs, their curves, and studies
  teach    takes executions and answers them, as a teacher of its own
  agent    posts the executions of an outside run and reads their descriptions
  steer    starts runs and commands them
  export   reads what teachers said
  admin    changes studies, and opens everything else that the access token opens

Examples:
  iliad token create \"analysis\" --scope read,export            for a program that reads
  iliad token create \"robot\" --scope agent --days 30           for an agent that lives in another program
  iliad token create \"language model\" --scope teach --days 0   for a teacher, until it is revoked";

/// Flags of `iliad token create`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER_CREATE)]
pub(super) struct CreateArgs {
    /// Name of the token, after the program that uses it
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Scopes of the program, with commas between
    #[arg(long, value_name = "SCOPES", value_delimiter = ',', default_value = "read")]
    pub scope: Vec<Scope>,
    /// For how many days the token is good; 0: until it is revoked
    #[arg(long, value_name = "DAYS", default_value_t = 90, value_parser = clap::value_parser!(i64).range(0..=3650))]
    pub days: i64,
    #[command(flatten)]
    pub common: Common,
}

const AFTER_LIST: &str = "\
Examples:
  iliad token list                             key, name, scopes, when last used
  iliad token list --json                      one JSON object a line
  iliad token list --data-dir /srv/iliad       of that server's data folder";

/// Flags of `iliad token list`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER_LIST)]
pub(super) struct ListArgs {
    /// Write each token as a line of JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub common: Common,
}

const AFTER_REVOKE: &str = "\
No request with the token is let in from then on, also by a server that is running.

Examples:
  iliad token revoke 3                             by its key, as `iliad token list` shows it
  iliad token revoke 3 --data-dir /srv/iliad       of that server's data folder";

/// Flags of `iliad token revoke`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER_REVOKE)]
pub(super) struct RevokeArgs {
    /// Key of the token
    #[arg(value_name = "KEY")]
    pub key: i64,
    #[command(flatten)]
    pub common: Common,
}

/// Carries out `iliad token …`.
pub(super) fn run(args: &Args) -> CliResult {
    let common = match &args.command {
        Command::Create(args) => &args.common,
        Command::List(args) => &args.common,
        Command::Revoke(args) => &args.common,
    };
    let database = accounts::database(&common.load()?)?;
    match &args.command {
        Command::List(args) => {
            runtime()?.block_on(Store::reading(&database, async |store| list(&store, args).await))?
        }
        Command::Create(args) => {
            runtime()?.block_on(Store::using(&database, async |store| create(&store, args).await))?
        }
        Command::Revoke(args) => {
            runtime()?.block_on(Store::using(&database, async |store| revoke(&store, args).await))?
        }
    }
}

async fn create(store: &Store, args: &CreateArgs) -> CliResult {
    let token = format!("{PROGRAM_TOKEN_PREFIX}{}", credentials::random_token()?);
    let expires = (args.days > 0).then(|| OffsetDateTime::now_utc() + Duration::days(args.days));
    let made = store.create_api_token(&token, &args.name, &args.scope, "command line", expires).await;
    let key = made.map_err(|error| match error {
        StoreError::Invalid(sentence) => CliError::Usage(sentence),
        error => CliError::Failed(error.into()),
    })?;
    out!("{token}")?;
    note!("This is the token {key}. It is shown only now; `iliad token revoke {key}` ends it.");
    Ok(Exit::Done)
}

async fn list(store: &Store, args: &ListArgs) -> CliResult {
    let tokens = store.api_tokens().await?;
    let time = |at: Option<OffsetDateTime>| at.and_then(|at| at.format(&Rfc3339).ok());
    if args.json {
        for token in &tokens {
            let line = json!({
                "key": token.id,
                "name": token.name,
                "scopes": token.scopes,
                "created_by": token.created_by,
                "created_at": time(Some(token.created_at)),
                "expires_at": time(token.expires_at),
                "used_at": time(token.used_at),
                "expired": token.expired,
            });
            out!("{line}")?;
        }
        return Ok(Exit::Done);
    }
    if tokens.is_empty() {
        note!("There is no token. `iliad token create NAME --scope read` makes one.");
    }
    let width = tokens.iter().map(|token| token.name.chars().count()).max().unwrap_or(0);
    for token in &tokens {
        let ApiToken { id, name, expires_at, used_at, expired, .. } = token;
        let scopes = token.scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(",");
        let used = used_at.map_or("never used".to_owned(), |at| format!("last used {}", at.date()));
        let ends = match expires_at {
            Some(at) if *expired => format!(", expired {}", at.date()),
            Some(at) => format!(", good until {}", at.date()),
            None => String::new(),
        };
        out!("{id:>4}  {name:<width$}  {scopes}  {used}{ends}")?;
    }
    Ok(Exit::Done)
}

async fn revoke(store: &Store, args: &RevokeArgs) -> CliResult {
    let known = store.api_tokens().await?;
    let Some(token) = known.iter().find(|token| token.id == TokenId(args.key)) else {
        return Err(CliError::Usage(format!("there is no token {}; `iliad token list` shows all", args.key)));
    };
    store.revoke_api_token(token.id).await?;
    note!("The token {} ({}) lets no program in any more.", token.id, token.name);
    Ok(Exit::Done)
}
