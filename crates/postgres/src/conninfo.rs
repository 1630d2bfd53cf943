//! Finds the server of a session and the user who connects: from a connection string in both
//! spellings of libpq, completed by its environment variables and password file. No message repeats
//! a value, as it may hold a password.

use crate::connection_string::{Settings, parse_settings};
use crate::error::PostgresError;
use crate::password_file::{Password, find_password, read_passwords};
use crate::service_file::{service_files, service_settings};
use crate::tls::{TlsUse, tls_files};
use crate::user::{home_of_user, name_of_user};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

/// PostgreSQL's own port.
const PORT_DEFAULT: u16 = 5432;
/// The directory of sockets of Debian's packages, and that of PostgreSQL's own sources.
const SOCKET_DIRECTORIES: [&str; 2] = ["/var/run/postgresql", "/tmp"];
/// The time for each host without connect_timeout, and with one by which libpq would wait forever.
/// Chosen, not measured.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The smallest time that libpq takes for connect_timeout; a smaller one counts as this.
const CONNECT_SECONDS_MIN: u64 = 2;
/// A longer connect_timeout counts as this. Chosen: a watcher that waits longer looks dead.
const CONNECT_SECONDS_MAX: u64 = 60;
/// The name that the server's administrator sees in pg_stat_activity.
const APPLICATION: &str = "diskproof";
/// The server itself ends a statement before its session gives up on it after 5 s.
const SESSION_OPTIONS: &str = "-c default_transaction_read_only=on -c statement_timeout=4000 \
                               -c lock_timeout=4000";

/// A keyword of libpq: a line of keywords.txt.
struct Keyword {
    name: &'static str,
    /// The environment variable with its value; empty where it has none.
    variable: &'static str,
    /// The values that can be used, with spaces between; where `why` is empty, all can.
    values: &'static str,
    /// A clause that says why the other values cannot be used.
    why: &'static str,
    /// `TCP` or `sockets`, where libpq ignores the keyword over the other one; else empty.
    over: &'static str,
}

impl Keyword {
    /// True if libpq heeds the keyword over this transport.
    fn counts_over(&self, transport: Transport) -> bool {
        match self.over {
            "TCP" => transport == Transport::Tcp,
            "sockets" => transport == Transport::Socket,
            _ => true,
        }
    }
}

/// The transport of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transport {
    Tcp,
    Socket,
}

/// All keywords of libpq, in the order of keywords.txt.
fn keywords() -> impl Iterator<Item = Keyword> {
    include_str!("keywords.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let mut fields = line.split(" | ");
            let mut next_field = || fields.next().unwrap_or_default();
            Keyword {
                name: next_field(),
                variable: next_field(),
                values: next_field(),
                why: next_field(),
                over: next_field(),
            }
        })
}

/// The places of a server, in the order in which they are tried, and the user to connect as.
#[derive(Debug, Clone)]
pub struct ConnectInfo {
    pub(crate) hosts: Vec<ServerHost>,
    pub(crate) user: String,
    pub(crate) database: String,
    pub(crate) options: Option<String>,
    pub(crate) application: String,
    /// The longest that each host may take to answer.
    pub(crate) connect_within: Duration,
    pub(crate) tls: TlsUse,
    /// The reason why the password file is not used; `None` where it may be.
    pub(crate) ignored_file: Option<String>,
}

/// A host that is tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerHost {
    pub place: ServerPlace,
    /// The TCP port, or the number in the name of the socket.
    pub port: u16,
    /// `None` where none was given, and the password file has none.
    pub password: Option<Password>,
}

/// The way to reach a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServerPlace {
    /// A Unix socket in this directory.
    Socket {
        /// The directory of the socket.
        directory: PathBuf,
        /// True of a directory that is tried because nothing was named.
        is_default: bool,
    },
    /// A host that is reached over TCP.
    Address {
        /// The name, or the address.
        host: String,
        /// The address, which needs no resolver.
        numeric: Option<String>,
    },
}

impl ServerPlace {
    /// The name that a certificate must have.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Socket { directory, .. } => directory.display().to_string(),
            Self::Address { host, .. } => host.clone(),
        }
    }

    /// The host in a line of the password file: libpq calls a default directory `localhost`.
    pub(crate) fn name_in_password_file(&self) -> String {
        match self {
            Self::Socket {
                is_default: true, ..
            } => "localhost".to_owned(),
            other => other.name(),
        }
    }
}

impl ServerHost {
    /// The address for the user: a path or HOST:PORT.
    pub(crate) fn address_text(&self) -> String {
        match &self.place {
            ServerPlace::Socket { directory, .. } => {
                format!("{}/.s.PGSQL.{}", directory.display(), self.port)
            }
            ServerPlace::Address { host, .. } if host.contains(':') => {
                format!("[{host}]:{}", self.port)
            }
            ServerPlace::Address { host, .. } => format!("{host}:{}", self.port),
        }
    }
}

impl ConnectInfo {
    /// From a connection string, the environment and the password file. A single word is the name
    /// of a database, as for psql.
    pub fn parse(
        text: &str,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, PostgresError> {
        Self::parse_text(text, environment).map_err(PostgresError::ConnectString)
    }

    fn parse_text(
        text: &str,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let home = home_directory(environment);
        let given = given_settings(text, environment, home.as_deref())?;
        let setting_of = |name: &str| setting(&given, environment, name);
        let places = places(&setting_of)?;
        let transports: Vec<Transport> = places.iter().map(PlaceAndPort::transport).collect();
        refuse_unusable(&given, &setting_of, &transports)?;
        let user = match setting_of("user") {
            Some(user) => user,
            None => name_of_user().ok_or("name a user: user=NAME")?,
        };
        let database = setting_of("dbname").unwrap_or_else(|| user.clone());
        let stored = StoredPasswords::read(setting_of("passfile"), home.as_deref());
        let given_password = setting_of("password");
        let mut hosts = Vec::new();
        for PlaceAndPort { place, port } in places {
            let password = match &given_password {
                Some(text) => Some(Password::new(text)),
                None => {
                    let (host, port) = (place.name_in_password_file(), port.to_string());
                    find_password(&stored.text, [host.as_str(), &port, &database, &user])
                }
            };
            hosts.push(ServerHost {
                place,
                port,
                password,
            });
        }
        Ok(Self {
            hosts,
            connect_within: connect_within(setting_of("connect_timeout"))?,
            options: setting_of("options"),
            application: setting_of("application_name").unwrap_or_else(|| APPLICATION.to_owned()),
            tls: tls_use(&transports, &setting_of, home.as_deref())?,
            ignored_file: stored.ignored_file,
            user,
            database,
        })
    }

    /// The files from which a connection with this string takes settings, passwords and
    /// certificates, whether they exist or not.
    pub fn files(
        text: &str,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Vec<PathBuf>, PostgresError> {
        Self::files_of_text(text, environment).map_err(PostgresError::ConnectString)
    }

    fn files_of_text(
        text: &str,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Vec<PathBuf>, String> {
        let home = home_directory(environment);
        let in_string = parse_settings(text)?;
        let mut files = Vec::new();
        if setting(&in_string, environment, "service").is_some() {
            let named = setting(&in_string, environment, "servicefile");
            files.extend(service_files(named, home.as_deref(), environment));
        }
        let given = given_settings(text, environment, home.as_deref())?;
        let setting_of = |name: &str| setting(&given, environment, name);
        files.extend(password_file(setting_of("passfile"), home.as_deref()));
        files.extend(tls_files(&setting_of, home.as_deref()));
        Ok(files)
    }

    /// Describes the hosts, the database and the user, without the password.
    pub fn describe(&self) -> String {
        let hosts: Vec<String> = self.hosts.iter().map(ServerHost::address_text).collect();
        format!(
            "{}, database {}, user {}",
            hosts.join(" or "),
            self.database,
            self.user
        )
    }

    /// Returns the configuration of a session at this host.
    pub(crate) fn config(&self, host: &ServerHost, mode: SslMode) -> Config {
        let mut config = Config::new();
        config
            .user(&self.user)
            .dbname(&self.database)
            .application_name(&self.application)
            // The last ones win.
            .options([self.options.as_deref().unwrap_or(""), SESSION_OPTIONS].join(" "))
            .ssl_mode(mode)
            .ssl_negotiation(self.tls.negotiation)
            .channel_binding(self.tls.channel_binding);
        if let Some(password) = &host.password {
            config.password(password.as_bytes());
        }
        config
    }

    /// Adds the remedy to the error of a login without a password. Any other error stays as it is.
    pub(crate) fn with_password_remedy(&self, error: PostgresError) -> PostgresError {
        if !matches!(error, PostgresError::NoPassword) {
            return error;
        }
        let why_ignored = match &self.ignored_file {
            Some(why) => format!(" ({why})"),
            None => String::new(),
        };
        PostgresError::Login(format!(
            "the server requests a password for user {}, but none is set. Put it into ~/.pgpass \
             or PGPASSWORD{why_ignored}",
            self.user
        ))
    }

    /// True of a connection string that holds a password, which every local user can read in the
    /// list of processes.
    pub fn has_password(text: &str) -> bool {
        match parse_settings(text) {
            Ok(given) => given.iter().any(|(name, _)| name == "password"),
            Err(_) => false,
        }
    }

    /// True if some host is reached over a Unix socket.
    pub(crate) fn uses_socket(&self) -> bool {
        self.hosts
            .iter()
            .any(|host| matches!(host.place, ServerPlace::Socket { .. }))
    }
}

/// The settings of a connection string, behind those of the service that it or the environment
/// names: of a keyword that stands twice the last value wins.
fn given_settings(
    text: &str,
    environment: &dyn Fn(&str) -> Option<String>,
    home: Option<&Path>,
) -> Result<Settings, String> {
    let in_string = parse_settings(text)?;
    if let Some(at) = in_string.iter().position(|(name, _)| !is_keyword(name)) {
        // Where it stands: the word may be a part of a password.
        return Err(format!(
            "keyword number {} is unknown; use host, port, user, dbname, password, passfile, \
             sslmode, sslrootcert, service",
            at + 1
        ));
    }
    let Some(service) = setting(&in_string, environment, "service") else {
        return Ok(in_string);
    };
    let named_file = setting(&in_string, environment, "servicefile");
    let paths = service_files(named_file, home, environment);
    let mut settings = service_settings(&service, &paths, &is_keyword)?;
    settings.extend(in_string);
    Ok(settings)
}

/// The home directory of the user; `None` of a user without one.
fn home_directory(environment: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    match environment("HOME") {
        Some(home) if !home.is_empty() => Some(PathBuf::from(home)),
        _ => home_of_user().map(PathBuf::from),
    }
}

/// The file that `passfile` names, else `~/.pgpass`.
fn password_file(passfile: Option<String>, home: Option<&Path>) -> Option<PathBuf> {
    match (passfile, home) {
        (Some(path), _) => Some(PathBuf::from(path)),
        (None, Some(home)) => Some(home.join(".pgpass")),
        (None, None) => None,
    }
}

/// The password file of the user, as far as it may be used.
#[derive(Default)]
struct StoredPasswords {
    /// Empty where there is no file, or none that may be used.
    text: String,
    /// The reason why the file is not used; `None` where it may be.
    ignored_file: Option<String>,
}

impl StoredPasswords {
    /// Reads the file that `passfile` names, else `~/.pgpass`.
    fn read(passfile: Option<String>, home: Option<&Path>) -> Self {
        let Some(path) = password_file(passfile, home) else {
            return Self::default();
        };
        match read_passwords(&path) {
            Ok(text) => Self {
                text,
                ignored_file: None,
            },
            Err(why) => Self {
                text: String::new(),
                ignored_file: Some(why),
            },
        }
    }
}

fn is_keyword(name: &str) -> bool {
    keywords().any(|keyword| keyword.name == name)
}

/// Refuses a value that demands something which diskproof does not do, where it counts over one of
/// these transports.
fn refuse_unusable(
    given: &[(String, String)],
    setting: &dyn Fn(&str) -> Option<String>,
    transports: &[Transport],
) -> Result<(), String> {
    for keyword in keywords() {
        let counts = transports
            .iter()
            .any(|transport| keyword.counts_over(*transport));
        let Keyword {
            name,
            variable,
            values,
            why,
            ..
        } = keyword;
        if counts
            && !why.is_empty()
            && let Some(value) = setting(name)
            && values.split(' ').all(|usable| usable != value)
        {
            let source = if given.iter().any(|(given, _)| given == name) {
                name.to_owned()
            } else {
                format!("{name} ({variable})")
            };
            return Err(format!("{source}={value} cannot be used: {why}"));
        }
    }
    Ok(())
}

/// The rules for TLS of a connection over these transports. Those of sockets read no file.
fn tls_use(
    transports: &[Transport],
    setting: &dyn Fn(&str) -> Option<String>,
    home: Option<&Path>,
) -> Result<TlsUse, String> {
    if transports.contains(&Transport::Tcp) {
        TlsUse::from_settings(setting, home)
    } else {
        TlsUse::for_sockets(setting)
    }
}

/// The value of a keyword that was given last, or that of the environment. `None` where neither has
/// one, or an empty one.
fn setting(
    given: &[(String, String)],
    environment: &dyn Fn(&str) -> Option<String>,
    name: &str,
) -> Option<String> {
    let value = match given.iter().rev().find(|(known, _)| known == name) {
        Some((_, value)) => value.clone(),
        None => {
            let keyword = keywords().find(|keyword| keyword.name == name)?;
            if keyword.variable.is_empty() {
                return None;
            }
            environment(keyword.variable)?
        }
    };
    if value.is_empty() { None } else { Some(value) }
}

/// The time for each host by the value of connect_timeout.
fn connect_within(timeout: Option<String>) -> Result<Duration, String> {
    let Some(text) = timeout else {
        return Ok(CONNECT_TIMEOUT);
    };
    let seconds: i64 = text
        .trim()
        .parse()
        .map_err(|_| "connect_timeout is not a number of seconds".to_owned())?;
    Ok(match u64::try_from(seconds) {
        // libpq would wait forever.
        Ok(0) | Err(_) => CONNECT_TIMEOUT,
        Ok(seconds) => Duration::from_secs(seconds.clamp(CONNECT_SECONDS_MIN, CONNECT_SECONDS_MAX)),
    })
}

/// A host that is tried. The port also names the socket in a directory.
struct PlaceAndPort {
    place: ServerPlace,
    port: u16,
}

impl PlaceAndPort {
    fn transport(&self) -> Transport {
        match self.place {
            ServerPlace::Socket { .. } => Transport::Socket,
            ServerPlace::Address { .. } => Transport::Tcp,
        }
    }
}

/// The hosts and their ports, in the order in which they are tried.
fn places(setting: &dyn Fn(&str) -> Option<String>) -> Result<Vec<PlaceAndPort>, String> {
    let names = list(setting("host"));
    let addresses = list(setting("hostaddr"));
    if !names.is_empty() && !addresses.is_empty() && names.len() != addresses.len() {
        return Err(format!(
            "host names {} hosts and hostaddr {}",
            names.len(),
            addresses.len()
        ));
    }
    let count = names.len().max(addresses.len()).max(1);
    let ports = list(setting("port"));
    if ports.len() > 1 && ports.len() != count {
        return Err(format!(
            "port names {} ports for {count} hosts",
            ports.len()
        ));
    }
    let mut places = Vec::new();
    for index in 0..count {
        let name = names.get(index).filter(|name| !name.is_empty());
        let address = addresses.get(index).filter(|address| !address.is_empty());
        let port = match ports.get(index).or(ports.first()) {
            Some(text) if !text.is_empty() => parse_port(text)?,
            _ => PORT_DEFAULT,
        };
        places.push(PlaceAndPort {
            place: place(name, address, port)?,
            port,
        });
    }
    Ok(places)
}

/// The parts between the commas of a setting; none where it is not set.
fn list(setting: Option<String>) -> Vec<String> {
    match setting {
        Some(text) => text.split(',').map(str::to_owned).collect(),
        None => Vec::new(),
    }
}

fn parse_port(text: &str) -> Result<u16, String> {
    match text.trim().parse() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err("port is not a number from 1 to 65535".to_owned()),
    }
}

/// The place of a host by its `host` and its `hostaddr`; the first directory of sockets with one of
/// this port where it has neither.
fn place(
    name: Option<&String>,
    address: Option<&String>,
    port: u16,
) -> Result<ServerPlace, String> {
    match (name, address) {
        (_, Some(address)) => Ok(ServerPlace::Address {
            host: name.unwrap_or(address).clone(),
            numeric: Some(address.clone()),
        }),
        (Some(directory), None) if directory.starts_with('/') => Ok(ServerPlace::Socket {
            directory: PathBuf::from(directory),
            is_default: SOCKET_DIRECTORIES.contains(&directory.as_str()),
        }),
        // What stands before it is a part of a password, and no message may repeat it.
        (Some(host), None) if host.contains('@') => {
            Err("the host contains '@'; write an @ in a user name or password as %40".to_owned())
        }
        (Some(host), None) => Ok(ServerPlace::Address {
            host: host.clone(),
            numeric: None,
        }),
        (None, None) => {
            let socket = format!(".s.PGSQL.{port}");
            let directory = SOCKET_DIRECTORIES
                .into_iter()
                .find(|directory| Path::new(directory).join(&socket).exists())
                .unwrap_or(SOCKET_DIRECTORIES[0]);
            Ok(ServerPlace::Socket {
                directory: PathBuf::from(directory),
                is_default: true,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn no_environment(_: &str) -> Option<String> {
        None
    }

    fn parsed(text: &str) -> Result<ConnectInfo, String> {
        ConnectInfo::parse_text(text, &no_environment)
    }

    fn texts(info: &ConnectInfo) -> Vec<String> {
        info.hosts.iter().map(ServerHost::address_text).collect()
    }

    #[test]
    fn keywords_and_uris_name_the_same_server() {
        for text in [
            "host=db1 port=5433 user=ann dbname='my db' password='s\\'x'",
            "postgresql://ann:s%27x@db1:5433/my%20db",
            "postgres://db1:5433/my%20db?user=ann&password=s%27x",
        ] {
            let info = parsed(text).unwrap();
            assert_eq!(texts(&info), ["db1:5433"], "{text}");
            assert_eq!(info.user, "ann");
            assert_eq!(info.database, "my db");
            assert_eq!(info.hosts[0].password, Some(Password::new("s'x")));
            let shown = format!("{info:?} {}", info.describe());
            assert!(!shown.contains("s'x"), "{shown}");
        }
    }

    #[test]
    fn word_is_a_database_and_the_default_is_a_socket() {
        let info = parsed("mydb").unwrap();
        assert_eq!(info.database, "mydb");
        assert!(texts(&info)[0].ends_with("/.s.PGSQL.5432"));
        let info = parsed("host=/run/pg port=7 user=x").unwrap();
        assert_eq!(texts(&info), ["/run/pg/.s.PGSQL.7"]);
        assert_eq!(info.database, "x");
    }

    #[test]
    fn several_hosts_share_or_have_ports() {
        let info = parsed("host=a,::1 port=1,2 user=x").unwrap();
        assert_eq!(texts(&info), ["a:1", "[::1]:2"]);
        let info = parsed("postgresql://x@a:1,b/d").unwrap();
        assert_eq!(texts(&info), ["a:1", "b:5432"]);
        let info = parsed("host=a,b port=9 user=x").unwrap();
        assert_eq!(texts(&info), ["a:9", "b:9"]);
        assert!(parsed("host=a,b,c port=1,2 user=x").is_err());
        assert!(parsed("host=a,b hostaddr=127.0.0.1 user=x").is_err());
    }

    #[test]
    fn environment_completes_and_never_overrides() {
        let environment = |name: &str| {
            let value = match name {
                "PGHOST" => "env-host",
                "PGPORT" => "6000",
                "PGUSER" => "env-user",
                "PGPASSWORD" => "env-password",
                "PGCONNECT_TIMEOUT" => "1",
                _ => return None,
            };
            Some(value.to_owned())
        };
        let info = ConnectInfo::parse_text("port=6001", &environment).unwrap();
        assert_eq!(texts(&info), ["env-host:6001"]);
        assert_eq!(info.user, "env-user");
        assert_eq!(info.database, "env-user");
        assert_eq!(info.hosts[0].password, Some(Password::new("env-password")));
        assert_eq!(info.connect_within, Duration::from_secs(2));
        let tls = |name: &str| (name == "PGSSLCRL").then(|| "/x".to_owned());
        let why = ConnectInfo::parse_text("host=h user=x", &tls).unwrap_err();
        assert!(why.starts_with("sslcrl (PGSSLCRL)=/x"), "{why}");
    }

    #[test]
    fn no_message_repeats_what_may_be_a_password() {
        for text in [
            "password=se cret",
            "password=se cret=1",
            "password='se cret",
            "postgresql://u:se@cret@host/db",
            "postgresql://u:se%cret@host",
            "user=x password=secret port=cret",
            "user=x password=secret sslmode=secret",
            "user=x password=secret sslrootcert=system sslmode=require",
        ] {
            let why = parsed(text).unwrap_err();
            assert!(!why.contains("cret"), "{text}: {why}");
        }
    }

    #[test]
    fn tls_is_tried_or_demanded_as_by_libpq() {
        use SslMode::{Disable, Prefer, Require};
        for (text, attempts) in [
            ("user=x", &[Prefer, Disable][..]),
            ("user=x sslmode=allow", &[Disable, Require]),
            ("user=x sslmode=disable sslrootcert=/no", &[Disable]),
            ("postgresql://x@h/d?ssl=true", &[Require]),
            ("user=x sslrootcert=system", &[Require]),
        ] {
            assert_eq!(parsed(text).unwrap().tls.attempts, attempts, "{text}");
        }
        for text in [
            "sslmode=verify-full",
            "sslmode=verify-ca sslrootcert=/no-such-file",
            "sslmode=require sslcert=/no-such-file",
            "sslrootcert=system sslmode=verify-ca",
            "sslnegotiation=direct",
            "channel_binding=yes",
            "sslcrl=/x",
        ] {
            for host in ["h", "/run/pg,h"] {
                let text = format!("user=x host={host} {text}");
                assert!(parsed(&text).is_err(), "{text}");
            }
        }
    }

    /// A profile demands TLS of all servers, and libpq ignores that where there is none.
    #[test]
    fn files_of_tls_do_not_count_where_all_hosts_are_sockets() {
        for text in [
            "sslmode=verify-full",
            "sslmode=require sslcert=/no-such-file",
            "sslmode=verify-ca sslrootcert=/no-such-file",
            "sslcrl=/x",
            "ssl_max_protocol_version=TLSv1.2",
        ] {
            for host in ["", "host=/run/pg", "host=/run/pg,/tmp"] {
                let text = format!("user=x {host} {text}");
                assert!(parsed(&text).is_ok(), "{text}");
            }
        }
        for text in [
            "sslmode=no",
            "sslrootcert=system sslmode=verify-ca",
            "sslnegotiation=direct",
            "channel_binding=yes",
            "requirepeer=postgres",
        ] {
            let text = format!("user=x host=/run/pg {text}");
            assert!(parsed(&text).is_err(), "{text}");
        }
        assert!(parsed("user=x host=h requirepeer=postgres").is_ok());
    }

    #[test]
    fn service_stands_between_the_string_and_the_environment() {
        let here = tempfile::tempdir().unwrap();
        let file = here.path().join("services");
        std::fs::write(&file, "[prod]\nhost=of-service\nport=7\nuser=ann\n").unwrap();
        let environment = |name: &str| match name {
            "PGSERVICEFILE" => Some(file.display().to_string()),
            "PGSERVICE" => Some("prod".to_owned()),
            "PGPORT" | "PGDATABASE" => Some("8".to_owned()),
            _ => None,
        };
        let info = ConnectInfo::parse_text("host=given", &environment).unwrap();
        assert_eq!(texts(&info), ["given:7"]);
        assert_eq!(info.user, "ann");
        assert_eq!(info.database, "8");
        let why = ConnectInfo::parse_text("service=test", &environment).unwrap_err();
        assert!(why.contains("service=test"), "{why}");
    }

    #[test]
    fn password_file_is_asked_for_each_host() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(".pgpass");
        std::fs::write(&path, "a:1:d:u:of-a\nlocalhost:1:d:u:of-socket\n").unwrap();
        let environment = |name: &str| (name == "HOME").then(|| home.path().display().to_string());
        let parsed = |text: &str| ConnectInfo::parse_text(text, &environment).unwrap();
        let text = "host=a,b,/tmp,/run/pg port=1 user=u dbname=d";
        // Others may read it.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o604)).unwrap();
        let ignored = parsed(text);
        assert!(ignored.ignored_file.is_some());
        assert!(ignored.hosts.iter().all(|host| host.password.is_none()));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let info = parsed(text);
        let passwords: Vec<_> = info.hosts.into_iter().map(|host| host.password).collect();
        let [of_a, of_socket] = ["of-a", "of-socket"].map(|text| Some(Password::new(text)));
        assert_eq!(passwords, [of_a, None, of_socket, None]);
        assert_eq!(info.ignored_file, None);
        let given = parsed("host=a port=1 user=u dbname=d password=given");
        assert_eq!(given.hosts[0].password, Some(Password::new("given")));
    }

    #[test]
    fn connect_timeout_is_between_two_seconds_and_a_minute() {
        for (given, seconds) in [("-1", 5), ("0", 5), ("1", 2), ("60", 60), ("61", 60)] {
            let info = parsed(&format!("user=x connect_timeout={given}")).unwrap();
            assert_eq!(info.connect_within, Duration::from_secs(seconds), "{given}");
        }
        assert!(parsed("user=x connect_timeout=1s").is_err());
    }

    #[test]
    fn password_in_a_connection_string_is_noticed() {
        assert!(ConnectInfo::has_password("postgres://a:b@c/d"));
        assert!(ConnectInfo::has_password("user=a password=b"));
        assert!(!ConnectInfo::has_password("postgres://a@c/d"));
    }
}
