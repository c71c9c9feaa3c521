//! Obstacles to a start, with advice, and the sentences once the pages are up. `iliad doctor` finds the same
//! troubles in the same words.

use crate::config::server::{DatabaseAddress, Origin, ServerConfig, Steering};
use crate::store::StoreError;
use crate::web::listener::ConnectionLimits;
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

/// Below this many descriptors a server is cramped.
const CRAMPED: usize = 256;

/// How long an address of this machine may take to answer before it is not shown.
const ANSWER: Duration = Duration::from_millis(300);

/// Most addresses of this machine that are shown.
const SHOWN: usize = 6;

/// An obstacle, and the advice for it.
#[derive(Debug)]
pub(crate) struct Trouble {
    /// The obstacle.
    pub(crate) found: String,
    /// The advice.
    pub(crate) advice: String,
}

impl Trouble {
    fn new(found: impl Into<String>, advice: impl Into<String>) -> Trouble {
        Trouble { found: found.into(), advice: advice.into() }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.found, self.advice)
    }
}

impl std::error::Error for Trouble {}

/// Makes the data folder where there is none, and makes sure that files can be written where the server will.
pub(crate) fn prepare(data_dir: &Path) -> Result<(), Trouble> {
    let runs = data_dir.join("runs");
    std::fs::create_dir_all(&runs).map_err(|error| folder_trouble(&error, data_dir))?;
    [data_dir, runs.as_path()].into_iter().try_for_each(|folder| probe(folder).map_err(|e| folder_trouble(&e, folder)))
}

/// Writes a file there and takes it away again.
pub(crate) fn probe(folder: &Path) -> io::Result<()> {
    let path = folder.join(format!(".iliad-probe-{}.tmp", std::process::id()));
    let tried = File::create(&path).and_then(|mut file| {
        file.write_all(b"a probe of iliad; may be deleted")?;
        file.sync_all()
    });
    let _ = std::fs::remove_file(&path);
    tried
}

/// Why a folder cannot be made or written.
pub(crate) fn folder_trouble(error: &io::Error, folder: &Path) -> Trouble {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let nearest = absolute.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    if !nearest.is_dir() {
        return Trouble::new(
            format!("{} is a file, not a folder", nearest.display()),
            "name a folder with --data-dir, or move that file away",
        );
    }
    let shown = folder.display();
    match error.kind() {
        ErrorKind::PermissionDenied => Trouble::new(
            format!(
                "the data folder {shown} cannot be written: this user has no right to write into {}{}",
                nearest.display(),
                owner(nearest)
            ),
            "give this user the right to write there, start Iliad as the user it belongs to, or name another folder with --data-dir",
        ),
        ErrorKind::ReadOnlyFilesystem => Trouble::new(
            format!(
                "the data folder {shown} cannot be written: {} is on a file system that can only be read",
                nearest.display()
            ),
            "name a folder on another one with --data-dir, or mount that one for writing",
        ),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Trouble::new(
            format!("the data folder {shown} cannot be written: there is no room left ({error})"),
            "make room, or name a folder on another disk with --data-dir",
        ),
        _ => Trouble::new(
            format!("the data folder {shown} cannot be written ({error})"),
            "name another folder with --data-dir",
        ),
    }
}

/// Whose a folder is, where that can be said.
fn owner(path: &Path) -> String {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let Ok(uid) = path.metadata().map(|found| found.uid()) else { return String::new() };
        let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let name = users.lines().find_map(|line| {
            let mut fields = line.split(':');
            let (name, number) = (fields.next()?, fields.nth(1)?);
            (number.parse() == Ok(uid)).then(|| name.to_owned())
        });
        match name {
            Some(name) => format!(" (it belongs to {name})"),
            None => format!(" (it belongs to the user with the number {uid})"),
        }
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        String::new()
    }
}

/// Why a database cannot be used.
pub(crate) fn database_trouble(error: &StoreError, address: &DatabaseAddress) -> Trouble {
    let mut causes = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let text = inner.to_string();
        if !causes.contains(&text) {
            causes = format!("{causes}: {text}");
        }
        cause = inner.source();
    }
    let shown = address.to_string();
    let found = if causes.contains(&shown) { causes } else { format!("the database {shown}: {causes}") };
    let advice = match error {
        StoreError::DiskFull => "make room on that disk".to_owned(),
        StoreError::ReadOnly => {
            "give this user the right to write the file and its folder, or name another folder with --data-dir"
                .to_owned()
        }
        StoreError::Transient { .. } => {
            "start it again; if that does not help, look at the machine\u{2019}s limits".to_owned()
        }
        StoreError::Busy => "end the other program that uses it, or wait until it is done".to_owned(),
        _ if address.file().is_none() => {
            "look at the server of the database, and at the address in --database or ILIAD_DATABASE".to_owned()
        }
        _ => format!(
            "keep a copy of {shown} and of the files beside it before anything else; `iliad doctor` looks it through, and --data-dir names another folder"
        ),
    };
    Trouble::new(found, advice)
}

/// Why an address cannot be listened on.
pub(crate) fn listen_trouble(error: &io::Error, settings: &ServerConfig) -> Trouble {
    let address = SocketAddr::new(settings.address, settings.port);
    let found = |reason: &str| format!("cannot listen on {address}: {reason}");
    match error.kind() {
        ErrorKind::AddrInUse if is_iliad(address, settings.base_path.as_str()) => Trouble::new(
            found("another Iliad server is running there"),
            "open its pages, end it first, or take another --port (0 takes any free one)",
        ),
        ErrorKind::AddrInUse => {
            Trouble::new(found("the port is taken by another program"), "use another --port; 0 takes any free one")
        }
        ErrorKind::AddrNotAvailable => {
            let own: Vec<String> = own_addresses().iter().map(IpAddr::to_string).collect();
            let own = if own.is_empty() { String::new() } else { format!("; this machine has {}", own.join(", ")) };
            Trouble::new(
                found(&format!("{} is no address of this machine{own}", settings.address)),
                "use --address 127.0.0.1 for this machine alone, or 0.0.0.0 for all networks",
            )
        }
        ErrorKind::PermissionDenied if settings.port < 1024 => Trouble::new(
            found("ports below 1024 are kept for privileged programs"),
            "use a port such as 8642 and let a proxy serve it (docs/deploy), or give the program CAP_NET_BIND_SERVICE",
        ),
        _ if settings.address.is_ipv6() && !Path::new("/proc/net/if_inet6").exists() && cfg!(target_os = "linux") => {
            Trouble::new(found("this machine has no IPv6"), "use --address 127.0.0.1 or 0.0.0.0")
        }
        _ => Trouble::new(found(&error.to_string()), "use another --address or --port"),
    }
}

/// Where a listener can be reached from this machine: any address of a family becomes that of the machine itself.
fn here(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), address.port()),
        IpAddr::V6(ip) if ip.is_unspecified() => SocketAddr::new(Ipv6Addr::LOCALHOST.into(), address.port()),
        _ => address,
    }
}

/// Whether what listens there answers as Iliad does.
pub(crate) fn is_iliad(address: SocketAddr, base_path: &str) -> bool {
    let address = here(address);
    let ask = || -> io::Result<String> {
        let limit = Duration::from_secs(2);
        let mut stream = TcpStream::connect_timeout(&address, limit)?;
        stream.set_read_timeout(Some(limit))?;
        stream.set_write_timeout(Some(limit))?;
        let question = format!("GET {base_path}/healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(question.as_bytes())?;
        let mut answer = Vec::new();
        stream.take(4096).read_to_end(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    ask().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200") && answer.contains("\"status\":\"ok\""))
}

/// Addresses of this machine's networks.
fn own_addresses() -> Vec<IpAddr> {
    let found = if_addrs::get_if_addrs().unwrap_or_default();
    let usable = found.iter().filter(|interface| !interface.is_loopback() && !interface.is_link_local());
    let mut addresses: Vec<IpAddr> = usable.map(if_addrs::Interface::ip).collect();
    addresses.sort_by_key(|address| (address.is_ipv6(), *address));
    addresses.dedup();
    addresses
}

/// Addresses to open in a browser, the one on this machine first. Those of a listener for all networks are tried first:
/// one for IPv6 may or may not take IPv4 as well.
fn reachable(local: SocketAddr) -> Vec<SocketAddr> {
    if !local.ip().is_unspecified() {
        return vec![local];
    }
    let machine: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    let fits = |address: &IpAddr| local.is_ipv6() || address.is_ipv4();
    let candidates =
        machine.into_iter().chain(own_addresses()).filter(fits).map(|ip| SocketAddr::new(ip, local.port()));
    let answers = |address: &SocketAddr| TcpStream::connect_timeout(address, ANSWER).is_ok();
    let mut shown: Vec<SocketAddr> = candidates.filter(answers).take(SHOWN).collect();
    // One way to reach this machine from itself is enough.
    if shown.get(1).is_some_and(|second| second.ip().is_loopback()) {
        shown.remove(1);
    }
    if shown.is_empty() { vec![here(local)] } else { shown }
}

/// Says that the pages are up. The text goes to the standard output, so that scripts can read the address.
pub(crate) fn announcement(settings: &ServerConfig, local: SocketAddr) -> String {
    let base = settings.base_path.as_str();
    let urls: Vec<String> = reachable(local).iter().map(|address| format!("http://{address}{base}/")).collect();
    let mut lines = vec![format!("Iliad is ready: {}", urls.first().map_or("", String::as_str))];
    if urls.len() > 1 {
        lines.push(format!("  From other machines: {}", urls[1..].join("  ")));
    }
    lines.push(format!("  Everything it writes is in {}.", settings.data_dir.display()));
    let steering = settings.steering();
    lines.push(format!("  Steering: {steering}."));
    if let (Some(token), Steering::Token { .. }) = (&settings.access_token, steering) {
        lines.push(match settings.token_origin() {
            Origin::Generated => format!("  The access token, made for this start: {}", token.reveal()),
            origin => format!("  The access token is the one that was set by {origin}."),
        });
    }
    lines.join("\n") + "\n"
}

/// Says how the first account is made. Where this machine steers without one, the line is for those who want others to sign
/// in.
pub(crate) fn welcome(settings: &ServerConfig, local: SocketAddr, token: &str) -> String {
    let base = settings.base_path.as_str();
    let address = reachable(local).first().copied().unwrap_or_else(|| here(local));
    let link = format!("http://{address}{base}/welcome/{token}");
    match settings.steering() {
        Steering::ThisMachine => {
            format!("  You need no account here. To let others sign in, make the first one: {link}\n")
        }
        Steering::Token { .. } => format!("  The first account, an owner's, is made by this link, once: {link}\n"),
    }
}

/// The last line of what is said at the start.
pub(crate) const ENDING: &str = "  Ctrl+C ends it.\n";

/// The address of a page on a server with these settings, as this machine reaches it.
pub(crate) fn link(settings: &ServerConfig, path: &str) -> String {
    let address = here(SocketAddr::new(settings.address, settings.port));
    format!("http://{address}{}{path}", settings.base_path.as_str())
}

/// Limits on connections by the settings and by how many descriptors this process may open.
pub(crate) fn connection_limits(settings: &ServerConfig, descriptors: usize) -> ConnectionLimits {
    let mut limits = ConnectionLimits::of_process(descriptors);
    if descriptors < CRAMPED {
        tracing::warn!(
            descriptors,
            connections = limits.in_all,
            "this process may open few files; raise the limit (`ulimit -n`) for more visitors at once"
        );
    }
    if settings.max_connections > limits.in_all {
        tracing::warn!(
            wanted = settings.max_connections,
            connections = limits.in_all,
            "the limit of open files has no room for so many connections"
        );
    } else if settings.max_connections > 0 {
        limits.in_all = settings.max_connections;
    }
    limits.per_address = match settings.max_connections_per_address {
        // A proxy is one peer for everybody, and so is whoever reaches a loopback address.
        0 if settings.trust_proxy || settings.address.is_loopback() => limits.in_all,
        0 => (limits.in_all / 2).max(1),
        given => given.min(limits.in_all),
    };
    limits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::server::Flags;

    fn settings(given: &[(&'static str, &str)]) -> ServerConfig {
        let given = given.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
        ServerConfig::resolve(&Flags { file: None, given }, |_| None, Path::new("nowhere")).unwrap()
    }

    #[test]
    fn a_given_token_is_not_printed_and_a_made_one_is() {
        let local = "127.0.0.1:8642".parse().unwrap();
        let given = announcement(&settings(&[("address", "0.0.0.0"), ("access_token", "a-secret-of-mine")]), local);
        assert!(!given.contains("a-secret-of-mine") && given.contains("set by --access-token"), "{given}");
        for config in [
            settings(&[("address", "0.0.0.0")]),
            settings(&[("base_path", "/iliad")]),
            settings(&[("trust_proxy", "true")]),
        ] {
            let token = config.access_token.clone().unwrap();
            assert!(announcement(&config, local).contains(token.reveal()));
        }
        let plain = announcement(&settings(&[]), local);
        assert!(plain.starts_with("Iliad is ready: http://127.0.0.1:8642/\n") && !plain.contains("token"), "{plain}");
    }

    #[test]
    fn the_link_of_the_first_account_is_one_quiet_line() {
        let local = "127.0.0.1:8642".parse().unwrap();
        for given in [&[][..], &[("address", "0.0.0.0")], &[("base_path", "/iliad")]] {
            let config = settings(given);
            let line = welcome(&config, local, "0123");
            assert_eq!(line.lines().count(), 1, "{line}");
            assert!(line.contains(&format!("{}/welcome/0123\n", config.base_path.as_str())), "{line}");
            assert!(!line.contains("token"), "{line}");
        }
        assert_eq!(link(&settings(&[("address", "0.0.0.0")]), "/invite/1"), "http://127.0.0.1:8642/invite/1");
    }

    #[test]
    fn addresses_that_are_printed_work() {
        for bound in ["0.0.0.0:0", "[::]:0", "127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = std::net::TcpListener::bind(bound) else {
                println!("skipped {bound}: this machine has no IPv6");
                continue;
            };
            let local = listener.local_addr().unwrap();
            let shown = reachable(local);
            assert!(shown[0].ip().is_loopback(), "{shown:?}");
            for address in &shown {
                assert!(!address.ip().is_unspecified());
                TcpStream::connect(address).unwrap();
            }
            let text = announcement(&settings(&[("address", "::"), ("base_path", "/iliad")]), local);
            assert!(text.contains(&format!("http://{}/iliad/\n", shown[0])), "{text}");
        }
    }

    #[test]
    fn the_exception_for_this_machine_holds_where_nothing_else_is_configured() {
        assert_eq!(settings(&[]).steering(), Steering::ThisMachine);
        for (key, value) in
            [("address", "0.0.0.0"), ("access_token", "a-secret-of-mine"), ("base_path", "/x"), ("trust_proxy", "yes")]
        {
            let config = settings(&[(key, value)]);
            assert!(matches!(config.steering(), Steering::Token { .. }), "{key}");
            assert!(config.access_token.is_some(), "somebody can steer with {key}");
        }
    }

    #[test]
    fn connections_leave_descriptors_and_a_proxy_is_one_peer() {
        let of = |given: &[(&'static str, &str)]| connection_limits(&settings(given), 1024);
        assert_eq!((of(&[]).in_all, of(&[]).per_address), (768, 768));
        assert_eq!(of(&[("address", "0.0.0.0")]).per_address, 384);
        assert_eq!(of(&[("address", "0.0.0.0"), ("trust_proxy", "true")]).per_address, 768);
        assert_eq!(of(&[("max_connections", "5000")]).in_all, 768);
        let small = of(&[("max_connections", "100"), ("max_connections_per_address", "20")]);
        assert_eq!((small.in_all, small.per_address), (100, 20));
    }

    #[test]
    fn troubles_with_addresses_come_with_advice() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port().to_string();
        let trouble = |kind: ErrorKind, given: &[(&'static str, &str)]| {
            listen_trouble(&io::Error::from(kind), &settings(given)).to_string()
        };
        // Nobody answers on the taken port, so it is another program's.
        drop(taken);
        assert!(
            trouble(ErrorKind::AddrInUse, &[("port", &port)]).contains("taken by another program; use another --port")
        );
        let away = trouble(ErrorKind::AddrNotAvailable, &[("address", "192.0.2.1")]);
        assert!(away.contains("192.0.2.1 is no address of this machine") && away.contains("0.0.0.0"), "{away}");
        assert!(trouble(ErrorKind::PermissionDenied, &[("port", "80")]).contains("CAP_NET_BIND_SERVICE"));
        assert!(trouble(ErrorKind::AddrInUse, &[("address", "::1")]).contains("[::1]:8642"));
    }

    #[test]
    fn troubles_with_folders_come_with_advice() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("file");
        std::fs::write(&file, "x").unwrap();
        for path in [file.clone(), file.join("inner")] {
            let trouble = prepare(&path).unwrap_err().to_string();
            assert!(trouble.contains("is a file, not a folder; name a folder"), "{trouble}");
        }
        let told = |kind: ErrorKind| folder_trouble(&io::Error::from(kind), home.path()).to_string();
        assert!(told(ErrorKind::PermissionDenied).contains("no right to write into"));
        assert!(told(ErrorKind::ReadOnlyFilesystem).contains("can only be read"));
        assert!(told(ErrorKind::StorageFull).contains("no room left"));
        let broken = database_trouble(&StoreError::DiskFull, &DatabaseAddress::File(home.path().join("iliad.sqlite")))
            .to_string();
        assert!(broken.contains("iliad.sqlite") && broken.contains("make room"), "{broken}");
    }
}
