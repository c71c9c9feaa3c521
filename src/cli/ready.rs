//! `iliad ready`: whether the server that runs with these settings can do its work, for supervisors and containers.

use super::settings::Listen;
use crate::command_line::settings::Common;
use crate::command_line::{CliResult, Exit};
use crate::output::{note, out};
use anyhow::Context;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

const AFTER: &str = "\
Asks /readyz of the server that runs on this machine with the same settings: whether its database answers, its disk has \
room, and every run that learns has its trainer.

Examples:
  iliad ready                    of the server with the usual settings
  iliad ready --port 8080        of the one on that port

Ends with code 0 when it is ready, 1 when it is not or does not answer.";

/// How long connecting and answering may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Flags of `iliad ready`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER)]
pub(super) struct Args {
    #[command(flatten)]
    pub listen: Listen,
    #[command(flatten)]
    pub common: Common,
}

/// Carries out `iliad ready`.
pub(super) fn run(args: &Args) -> CliResult {
    let settings = args.common.load_with(args.listen.given())?;
    let here = match settings.address {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) if address.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        address => address,
    };
    let address = SocketAddr::new(here, settings.port);
    let (status, body) = ask(address, settings.base_path.as_str())
        .with_context(|| format!("the server at {address} does not answer"))?;
    if status == 200 {
        out!("{body}")?;
        return Ok(Exit::Done);
    }
    note!("iliad: the server at {address} is not ready: {body}");
    Ok(Exit::Failed)
}

/// The status and the body of the answer.
fn ask(address: SocketAddr, base: &str) -> anyhow::Result<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(format!("GET {base}/readyz HTTP/1.0\r\nhost: {address}\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.take(64 * 1024).read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("it speaks no HTTP")?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).context("it speaks no HTTP")?;
    Ok((status, body.trim().to_owned()))
}
