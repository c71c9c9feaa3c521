use super::*;
use std::collections::HashMap;

/// A folder, an environment and flags to resolve from.
#[derive(Default)]
struct World {
    folder: Option<tempfile::TempDir>,
    environment: HashMap<&'static str, String>,
    flags: Flags,
}

impl World {
    fn file(mut self, toml: &str) -> World {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(DEFAULT_FILE), toml).unwrap();
        self.folder = Some(folder);
        self
    }

    fn env(mut self, variable: &'static str, value: &str) -> World {
        self.environment.insert(variable, value.into());
        self
    }

    fn flag(mut self, key: &'static str, value: &str) -> World {
        self.flags.given.push((key, value.into()));
        self
    }

    fn path(&self) -> PathBuf {
        self.folder.as_ref().map_or_else(|| PathBuf::from("nowhere"), |folder| folder.path().to_owned())
    }

    fn resolve(&self) -> Result<ServerConfig, ConfigError> {
        ServerConfig::resolve(&self.flags, |variable| self.environment.get(variable).cloned(), &self.path())
    }

    fn problem(&self) -> String {
        self.resolve().unwrap_err().to_string()
    }
}

fn origin(config: &ServerConfig, key: &str) -> Origin {
    config.rows().into_iter().find(|row| row.0 == key).unwrap().2
}

#[test]
fn without_any_source_there_are_defaults() {
    let config = World::default().resolve().unwrap();
    assert_eq!((config.address.to_string().as_str(), config.port), ("127.0.0.1", 8642));
    assert_eq!(config.data_dir, Path::new("iliad-data"));
    assert_eq!(config.database().file(), Some(Path::new("iliad-data/iliad.sqlite")));
    assert_eq!((config.device, config.log_format), (DeviceChoice::Auto, LogFormat::Text));
    assert_eq!((config.access_token.clone(), config.base_path.as_str(), config.trust_proxy), (None, "", false));
    assert!(config.rows().iter().all(|row| row.2 == Origin::Default));
    assert_eq!(config.rows().len(), SETTINGS.len());
}

#[test]
fn a_flag_wins_over_the_environment_that_over_the_file_that_over_the_default() {
    let toml = "port = 1\naddress = \"127.0.0.2\"\ndevice = \"cpu\"\ntrust_proxy = true";
    let world = World::default().file(toml).env("ILIAD_PORT", "2").env("ILIAD_DEVICE", "cuda:3").flag("port", "3");
    let config = world.resolve().unwrap();
    assert_eq!((config.port, origin(&config, "port")), (3, Origin::Flag("--port")));
    assert_eq!(config.device, DeviceChoice::Cuda(3));
    assert_eq!(origin(&config, "device"), Origin::Environment("ILIAD_DEVICE"));
    assert_eq!(config.address.to_string(), "127.0.0.2");
    assert_eq!(origin(&config, "address"), Origin::File(world.path().join(DEFAULT_FILE)));
    assert!(config.trust_proxy);
    assert_eq!(origin(&config, "log_level"), Origin::Default);
}

#[test]
fn a_database_of_postgresql_takes_the_place_of_the_file_and_keeps_its_password() {
    let config = World::default().env("ILIAD_DATABASE", "postgres://ada:secret@db/iliad").resolve().unwrap();
    assert_eq!(config.database(), DatabaseAddress::Postgres("postgres://ada:secret@db/iliad".to_owned()));
    let row = config.rows().into_iter().find(|row| row.0 == "database").unwrap();
    assert_eq!(row.1, "postgres://db/iliad");
    assert!(!format!("{config:?}").contains("secret"));
    let refused = World::default().env("ILIAD_DATABASE", "mysql://ada:secret@db/iliad").resolve().unwrap_err();
    assert!(refused.to_string().contains("postgres://user@host/database") && !refused.to_string().contains("secret"));
}

#[test]
fn an_empty_variable_counts_as_unset() {
    let config = World::default().env("ILIAD_PORT", "").resolve().unwrap();
    assert_eq!(config.port, 8642);
}

#[test]
fn the_file_can_be_named_by_flag_or_variable_and_must_exist_then() {
    let world = World::default().file("port = 5");
    let named = world.path().join(DEFAULT_FILE);
    let by_variable = World::default().env("ILIAD_CONFIG", named.to_str().unwrap());
    assert_eq!(by_variable.resolve().unwrap().port, 5);
    let mut by_flag = World::default().env("ILIAD_CONFIG", "missing.toml");
    by_flag.flags.file = Some(named);
    assert_eq!(by_flag.resolve().unwrap().port, 5);
    let missing = World::default().env("ILIAD_CONFIG", "missing.toml").problem();
    assert!(missing.starts_with("the configuration file missing.toml cannot be read"), "{missing}");
}

#[test]
fn problems_name_the_key_the_source_and_what_is_allowed() {
    let unknown = World::default().file("adress = \"127.0.0.1\"").problem();
    assert!(unknown.contains("unknown key `adress`") && unknown.contains("address, port"), "{unknown}");
    let table = World::default().file("[port]\nnumber = 1").problem();
    assert!(table.starts_with("port (from ") && table.contains("not a TOML table"), "{table}");
    let syntax = World::default().file("port = ").problem();
    assert!(syntax.contains("cannot be read"), "{syntax}");
    let port = World::default().env("ILIAD_PORT", "80000").problem();
    assert_eq!(port, "port (from ILIAD_PORT): \"80000\" is no port; use a number from 0 (any free port) to 65535");
    for (key, bad) in [
        ("address", "example.org"),
        ("port", "-1"),
        ("device", "gpu"),
        ("device", "cuda:x"),
        ("log_level", "loud"),
        ("log_level", "iliad=loud"),
        ("log_format", "xml"),
        ("access_token", "short"),
        ("access_token", "with blanks in it"),
        ("base_path", "/a b"),
        ("base_path", "/a/../b"),
        ("base_path", "/a//b"),
        ("trust_proxy", "maybe"),
    ] {
        let problem = World::default().flag(key, bad).problem();
        assert!(problem.starts_with(&format!("{key} (from --{}): ", key.replace('_', "-"))), "{problem}");
        assert!(key != "access_token" || !problem.contains(bad), "a token is not repeated: {problem}");
    }
}

#[test]
fn misspelt_variables_are_refused_and_strange_ones_told() {
    let look = |names: &[&str]| check_variables(names.iter().map(|name| (*name).to_owned()));
    for (slip, meant) in [
        ("ILIAD_PROT", "ILIAD_PORT"),
        ("ILIAD_ACCES_TOKEN", "ILIAD_ACCESS_TOKEN"),
        ("ILIAD_DATADIR", "ILIAD_DATA_DIR"),
        ("ILIAD_ADRESS", "ILIAD_ADDRESS"),
        ("ILIAD_CONFG", "ILIAD_CONFIG"),
    ] {
        let told = look(&["PATH", slip]).unwrap_err().to_string();
        assert!(told.contains(slip) && told.contains(&format!("did you mean {meant}?")), "{told}");
    }
    let service = ["ILIAD_SERVICE_HOST", "ILIAD_PORT_8642_TCP_ADDR", "ILIAD_PORT", "ILIAD_CONFIG", "HOME"];
    assert_eq!(look(&service).unwrap(), [] as [&str; 0]);
    assert_eq!(look(&["ILIAD_TOKEN", "ILIAD_SHARED"]).unwrap(), ["ILIAD_SHARED", "ILIAD_TOKEN"]);
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_do_no_harm() {
    assert_eq!(World::default().file("\u{feff}port = 5\r\naddress = \"::1\"\r\n").resolve().unwrap().port, 5);
    let told = World::default().file("prot = 5").problem();
    assert!(told.contains("unknown key `prot` (did you mean `port`?)"), "{told}");
}

#[test]
fn values_are_read_as_people_write_them() {
    let read = |key, value| World::default().flag(key, value).resolve().unwrap();
    assert!(read("address", "localhost").address.is_loopback());
    assert_eq!(read("address", "[::1]").address.to_string(), "::1");
    assert_eq!(read("device", "CUDA").device, DeviceChoice::Cuda(0));
    assert_eq!(read("port", " 0 ").port, 0);
    for path in ["iliad", "/iliad", "/iliad/", "//iliad"] {
        assert_eq!(read("base_path", path).base_path.as_str(), "/iliad");
    }
    assert_eq!(read("base_path", "/").base_path.as_str(), "");
    assert_eq!(read("base_path", "/labs/iliad-2").base_path.as_str(), "/labs/iliad-2");
    assert_eq!(read("log_level", "DEBUG").log_level.filter(), "info,iliad=debug");
    assert_eq!(read("log_level", "warn,iliad=trace").log_level.filter(), "warn,iliad=trace");
    assert_eq!(read("log_level", "off").log_level.filter(), "off");
    for device in ["auto", "cpu", "cuda:1"] {
        assert_eq!(read("device", device).device.to_string(), device);
    }
}

#[test]
fn a_token_is_made_when_others_can_reach_the_server_and_is_never_shown_by_accident() {
    let open = World::default().flag("address", "0.0.0.0").resolve().unwrap();
    let token = open.access_token.clone().unwrap();
    assert_eq!(origin(&open, "access_token"), Origin::Generated);
    assert_eq!(token.reveal().len(), 32);
    assert_ne!(token, World::default().flag("address", "::").resolve().unwrap().access_token.unwrap());
    assert!(!format!("{open:?}").contains(token.reveal()));
    assert!(open.rows().iter().all(|row| !row.1.contains(token.reveal())));
    let given =
        World::default().flag("address", "0.0.0.0").env("ILIAD_ACCESS_TOKEN", "correct-horse").resolve().unwrap();
    assert_eq!(given.access_token.unwrap().reveal(), "correct-horse");
    let local = World::default().env("ILIAD_ACCESS_TOKEN", "correct-horse").resolve().unwrap();
    assert_eq!(local.access_token.unwrap().reveal(), "correct-horse");
}
