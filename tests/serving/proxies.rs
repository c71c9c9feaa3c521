//! The documented settings of nginx and Caddy, with the real programs.

use crate::{DEADLINE, Server, ask, free_port, wait_for};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const TOKEN: &str = "a-secret-of-mine";
const BEARER: (&str, &str) = ("authorization", "Bearer a-secret-of-mine");
const NGINX: &str = include_str!("../../docs/deploy/nginx.conf");
const CADDY: &str = include_str!("../../docs/deploy/Caddyfile");

/// A proxy that is up; it ends with the value.
struct Proxy {
    child: Child,
    address: String,
    _folder: tempfile::TempDir,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Proxy {
    fn start(mut command: Command, port: u16, folder: tempfile::TempDir) -> Proxy {
        let child = command.stdout(Stdio::null()).spawn().unwrap();
        let address = format!("127.0.0.1:{port}");
        wait_for("the proxy", || TcpStream::connect(&address).is_ok());
        Proxy { child, address, _folder: folder }
    }

    /// nginx with these lines in its server block.
    fn nginx(locations: &str) -> Option<Proxy> {
        if !is_there("nginx", "-v") {
            println!("skipped: nginx is not installed");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let at = folder.path().display();
        let config = format!(
            "worker_processes 1; daemon off; master_process off; pid {at}/pid; error_log stderr warn;\n\
             events {{}}\n\
             http {{ access_log off; client_body_temp_path {at}/b; proxy_temp_path {at}/p; fastcgi_temp_path {at}/f;\n\
             uwsgi_temp_path {at}/u; scgi_temp_path {at}/s;\n\
             server {{ listen 127.0.0.1:{port};\n{locations}\n}} }}\n"
        );
        let path = folder.path().join("nginx.conf");
        std::fs::write(&path, config).unwrap();
        let mut command = Command::new("nginx");
        command.arg("-p").arg(folder.path()).arg("-c").arg(&path).args(["-e", "stderr"]);
        Some(Proxy::start(command, port, folder))
    }

    fn caddy(file: impl FnOnce(u16) -> String) -> Option<Proxy> {
        if !is_there("caddy", "version") {
            println!("skipped: Caddy is not installed");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let path = folder.path().join("Caddyfile");
        std::fs::write(&path, format!("{{\n\tadmin off\n\tauto_https off\n}}\n{}", file(port))).unwrap();
        let mut command = Command::new("caddy");
        command.arg("run").arg("--adapter").arg("caddyfile").arg("--config").arg(&path);
        command.env("HOME", folder.path()).env("XDG_DATA_HOME", folder.path()).env("XDG_CONFIG_HOME", folder.path());
        command.stderr(Stdio::null());
        Some(Proxy::start(command, port, folder))
    }
}

fn is_there(program: &str, question: &str) -> bool {
    let asked = Command::new(program).arg(question).stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}

fn behind_a_proxy() -> Server {
    Server::start("", &["--base-path", "/iliad", "--trust-proxy"], &[("ILIAD_ACCESS_TOKEN", TOKEN)])
}

/// A visitor teaches and does not steer; with the token they do; events come as they happen; other sites' pages cannot
/// send.
fn works_behind(proxy: &Proxy, server: &Server) {
    let browser = [("host", "iliad.example.org"), ("user-agent", "Mozilla/5.0"), ("accept", "text/html")];
    let get = |path: &str, more: &[(&str, &str)]| ask(&proxy.address, "GET", path, &[&browser[..], more].concat(), "");
    assert_eq!(get("/iliad/healthz", &[]).0, 200);
    let (status, slash) = get("/iliad/", &[]);
    assert!(status == 308 && slash.to_lowercase().contains("location: /iliad\r\n"), "{slash}");
    let (status, home) = get("/iliad", &[]);
    assert!(status == 200 && home.contains("/iliad/static/"), "{home}");
    assert_eq!(get("/iliad/runs", &[]).0, 303, "a visitor is sent to the page for the token");
    assert_eq!(ask(&proxy.address, "GET", "/iliad/api/runs", &[("host", "127.0.0.1:8642")], "").0, 401);
    let (status, runs) = ask(&proxy.address, "GET", "/iliad/api/runs", &[BEARER], "");
    assert_eq!(status, 200, "{runs}");
    let run = runs.split("\"id\":\"").nth(1).unwrap().split('"').next().unwrap();
    let (status, page) = get(&format!("/iliad/teach/{run}"), &[]);
    assert_eq!(status, 200, "{page}");
    let cookie = page.split("iliad_teacher=").nth(1).expect("a visitor gets a cookie").split(';').next().unwrap();
    let cookie = format!("iliad_teacher={cookie}");
    let lease = format!("/iliad/api/runs/{run}/lease");
    let head = [("host", "iliad.example.org"), ("content-type", "application/json"), ("cookie", cookie.as_str())];
    let own = [&head[..], &[("origin", "http://iliad.example.org")]].concat();
    let (status, told) = ask(&proxy.address, "POST", &lease, &own, "{\"except\":[]}");
    assert_eq!(status, 200, "{told}");
    for foreign in [("origin", "http://evil.example"), ("sec-fetch-site", "cross-site")] {
        let head = [&head[..], &[foreign]].concat();
        assert_eq!(ask(&proxy.address, "POST", &lease, &head, "{\"except\":[]}").0, 403, "{foreign:?}");
    }
    let mut stream = TcpStream::connect(&proxy.address).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let (name, value) = BEARER;
    let head = format!("GET /iliad/runs/{run}/events HTTP/1.1\r\nhost: iliad.example.org\r\n{name}: {value}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut received = Vec::new();
    let mut piece = [0; 4096];
    while !String::from_utf8_lossy(&received).contains("event: status") {
        let count = stream.read(&mut piece).expect("events come as they happen");
        assert!(count > 0, "{}", String::from_utf8_lossy(&received));
        received.extend_from_slice(&piece[..count]);
    }
    drop(stream);
    let _ = server;
}

#[test]
fn the_documented_nginx_settings_work() {
    let server = behind_a_proxy();
    let Some(proxy) = Proxy::nginx(&NGINX.replace("127.0.0.1:8642", &server.address)) else { return };
    works_behind(&proxy, &server);
}

#[test]
fn the_documented_caddy_settings_work() {
    let server = behind_a_proxy();
    let file = |port: u16| {
        let file = CADDY.replace("127.0.0.1:8642", &server.address);
        file.replace("iliad.example.org {", &format!("http://:{port} {{\n\tbind 127.0.0.1"))
    };
    let Some(proxy) = Proxy::caddy(file) else { return };
    works_behind(&proxy, &server);
}

/// nginx as it is without any settings up to 1.29.6: the host is the upstream's, and nothing is forwarded.
#[test]
fn a_proxy_with_default_headers_does_not_open_steering() {
    for (arguments, token) in [(&[][..], true), (&["--trust-proxy"][..], false), (&[][..], false)] {
        let environment = [("ILIAD_ACCESS_TOKEN", TOKEN)];
        let server = Server::start("", arguments, if token { &environment } else { &[] });
        let Some(proxy) = Proxy::nginx(&format!("location / {{ proxy_pass http://{}; }}", server.address)) else {
            return;
        };
        let (status, told) = ask(&proxy.address, "GET", "/api/runs", &[], "");
        assert!([401, 403].contains(&status), "{arguments:?} {token}: {told}");
        let (status, _) = ask(&proxy.address, "GET", "/runs", &[("user-agent", "Mozilla/5.0")], "");
        assert!([303, 401, 403].contains(&status), "{arguments:?} {token}");
        assert_eq!(ask(&proxy.address, "GET", "/healthz", &[], "").0, 200);
        if token {
            assert_eq!(ask(&proxy.address, "GET", "/api/runs", &[BEARER], "").0, 200);
        }
    }
}

/// nginx as it is without any settings from 1.29.7 on: HTTP/1.1, and no word of the connection. What a browser sends
/// through it is told from what a browser here sends; of programs nothing is known.
#[test]
fn a_proxy_that_keeps_connections_does_not_open_steering_to_browsers() {
    const BROWSER: (&str, &str) = ("user-agent", "Mozilla/5.0 (X11; Linux x86_64)");
    const KEPT: &str = "proxy_http_version 1.1; proxy_set_header Connection \"\";";
    let server = Server::start("", &[], &[]);
    let Some(proxy) = Proxy::nginx(&format!("location / {{ proxy_pass http://{}; {KEPT} }}", server.address)) else {
        return;
    };
    let (status, told) = ask(&proxy.address, "GET", "/runs", &[BROWSER, ("accept", "text/html")], "");
    assert_eq!(status, 403, "{told}");
    assert_eq!(ask(&proxy.address, "GET", "/api/runs", &[BROWSER], "").0, 403);
    assert_eq!(ask(&proxy.address, "GET", "/healthz", &[BROWSER], "").0, 200);
    assert_eq!(ask(&server.address, "GET", "/api/runs", &[], "").0, 200, "a program on this machine");
}

#[test]
fn the_settings_in_the_documentation_are_the_tested_ones() {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration.md")).unwrap();
    for name in ["deploy/nginx.conf", "deploy/Caddyfile"] {
        assert!(readme.contains(name), "{name}");
    }
}
