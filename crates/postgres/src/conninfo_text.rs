//! Parses the texts in which libpq finds the settings of a connection: the two spellings of a
//! connection string, service files and password files (documentation of PostgreSQL, "Connection
//! Strings", "The Connection Service File", "The Password File"). No message repeats a value, as it
//! may be a password.

use diskproof_device::{SmallFile, read_small_file};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The beginnings of a URI.
const SCHEMES: [&str; 2] = ["postgresql://", "postgres://"];

/// Keywords with their values, in the order in which they stand. Of a keyword that stands twice the
/// last value wins.
type Settings = Vec<(String, String)>;

/// Reads a connection string in any spelling of libpq.
pub(crate) fn parse_settings(text: &str) -> Result<Settings, String> {
    let uri = SCHEMES.iter().find_map(|scheme| text.strip_prefix(scheme));
    match uri {
        Some(rest) => parse_uri(rest),
        // As psql takes it.
        None if !text.contains('=') && !text.trim().is_empty() => {
            Ok(vec![("dbname".to_owned(), text.trim().to_owned())])
        }
        None => parse_keywords(text),
    }
}

/// Reads `name = value …`, where values may have quotes and backslashes.
fn parse_keywords(text: &str) -> Result<Settings, String> {
    let mut settings = Settings::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let at = settings.len() + 1;
        let end = rest.find(|c: char| c == '=' || c.is_whitespace());
        let (name, after_name) = rest.split_at(end.unwrap_or(rest.len()));
        let Some(after_sign) = after_name.trim_start().strip_prefix('=') else {
            return Err(format!(
                "keyword number {at} has no '='; put a value with spaces into quotes"
            ));
        };
        let Some((value, after_value)) = leading_value(after_sign.trim_start()) else {
            return Err(format!("the quote of value number {at} is not closed"));
        };
        settings.push((name.to_owned(), value));
        rest = after_value.trim_start();
    }
    Ok(settings)
}

/// Splits off the value at the start; the second part is what follows it. `None` where its quote
/// does not end.
fn leading_value(text: &str) -> Option<(String, &str)> {
    let quoted = text.strip_prefix('\'');
    let body = quoted.unwrap_or(text);
    let mut value = String::new();
    let mut chars = body.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => value.extend(chars.next().map(|(_, c)| c)),
            '\'' if quoted.is_some() => return Some((value, &body[at + 1..])),
            c if quoted.is_none() && c.is_whitespace() => return Some((value, &body[at..])),
            c => value.push(c),
        }
    }
    if quoted.is_some() {
        return None;
    }
    Some((value, ""))
}

/// Reads `user:password@host:port,host:port/dbname?name=value&…`, which follows the scheme.
fn parse_uri(text: &str) -> Result<Settings, String> {
    let (login, behind) = split_login(text);
    let (before, query) = behind.split_once('?').unwrap_or((behind, ""));
    let (hosts, database) = before.split_once('/').unwrap_or((before, ""));
    let mut settings = Settings::new();
    if let Some(login) = login {
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        add_decoded(&mut settings, "user", user)?;
        add_decoded(&mut settings, "password", password)?;
    }
    let lists = hosts_and_ports(hosts)?;
    add_decoded(&mut settings, "host", &lists.hosts)?;
    add_decoded(&mut settings, "port", &lists.ports)?;
    add_decoded(&mut settings, "dbname", database)?;
    for (index, part) in query.split('&').enumerate() {
        if part.is_empty() {
            continue;
        }
        match part.split_once('=') {
            None => {
                return Err(format!(
                    "parameter number {} after '?' has no '='",
                    index + 1
                ));
            }
            Some(("ssl", "true")) => add_decoded(&mut settings, "sslmode", "require")?,
            Some((name, value)) => add_decoded(&mut settings, &decoded(name)?, value)?,
        }
    }
    Ok(settings)
}

/// The `user:password` of a URI, and what follows it. As in libpq, all before the first `@` is the
/// login unless a `/` comes before: a password may have a `?`.
fn split_login(text: &str) -> (Option<&str>, &str) {
    match text.split_once('@') {
        Some((login, behind)) if !login.contains('/') => (Some(login), behind),
        Some(_) | None => (None, text),
    }
}

/// Adds a setting of a URI, unless its value is empty.
fn add_decoded(settings: &mut Settings, name: &str, value: &str) -> Result<(), String> {
    if !value.is_empty() {
        settings.push((name.to_owned(), decoded(value)?));
    }
    Ok(())
}

/// Lists of hosts and of their ports, as the keywords take them.
struct HostLists {
    hosts: String,
    /// Empty if no port is named.
    ports: String,
}

/// The hosts and ports of a URI.
fn hosts_and_ports(text: &str) -> Result<HostLists, String> {
    let (mut hosts, mut ports) = (Vec::new(), Vec::new());
    for address in text.split(',') {
        let (host, port) = match address.strip_prefix('[') {
            Some(rest) => {
                let (host, after) = rest
                    .split_once(']')
                    .ok_or("the address in brackets is not closed")?;
                (host, after.strip_prefix(':').unwrap_or(after))
            }
            None => address.rsplit_once(':').unwrap_or((address, "")),
        };
        hosts.push(host);
        ports.push(port);
    }
    let port_list = if ports.iter().all(|port| port.is_empty()) {
        String::new()
    } else {
        ports.join(",")
    };
    Ok(HostLists {
        hosts: hosts.join(","),
        ports: port_list,
    })
}

/// Decodes a part of a URI, in which `%20` stands for a byte.
fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        match (hex(rest.next()), hex(rest.next())) {
            (Some(high), Some(low)) if high > 0 || low > 0 => bytes.push(high * 16 + low),
            _ => {
                return Err(
                    "a '%' is not followed by two hex digits; write a percent sign as %25"
                        .to_owned(),
                );
            }
        }
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}

fn hex(byte: Option<u8>) -> Option<u8> {
    u8::try_from(char::from(byte?).to_digit(16)?).ok()
}

/// The directories with a file of services: of Debian's packages, of those of postgresql.org for
/// Red Hat, and of PostgreSQL's own default.
const SYSTEM_DIRECTORIES: [&str; 3] = [
    "/etc/postgresql-common",
    "/etc/sysconfig/pgsql",
    "/usr/local/pgsql/etc",
];
/// The most bytes of a file of services or passwords: far more than those of an organisation have.
const SETTINGS_BYTES_MAX: u64 = 4 << 20;
/// The file of services in a system directory.
const SYSTEM_FILE: &str = "pg_service.conf";
/// The file of services in the home directory.
const USER_FILE: &str = ".pg_service.conf";

/// The files in which a service is searched, in this order.
pub(crate) fn service_files(
    named: Option<String>,
    home: Option<&Path>,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Vec<PathBuf> {
    let mut files = Vec::new();
    if let Some(path) = named {
        files.push(PathBuf::from(path));
    } else if let Some(home) = home {
        files.push(home.join(USER_FILE));
    }
    if let Some(directory) = environment("PGSYSCONFDIR") {
        files.push(PathBuf::from(directory).join(SYSTEM_FILE));
    } else {
        for directory in SYSTEM_DIRECTORIES {
            files.push(Path::new(directory).join(SYSTEM_FILE));
        }
    }
    files
}

/// The settings of a service, from the first file that has it.
pub(crate) fn service_settings(
    service: &str,
    paths: &[PathBuf],
    is_keyword: &dyn Fn(&str) -> bool,
) -> Result<Settings, String> {
    let mut searched = Vec::new();
    for path in paths {
        let text = match read_small_file(path, SETTINGS_BYTES_MAX).and_then(SmallFile::into_text) {
            Ok(text) => text,
            Err(error) if error.is_missing() => continue,
            Err(error) => return Err(format!("{}: {error}", path.display())),
        };
        match find_service(&text, service, is_keyword) {
            Ok(Some(settings)) => return Ok(settings),
            Ok(None) => searched.push(path.display().to_string()),
            Err(why) => return Err(format!("{}, {why}", path.display())),
        }
    }
    let why = if searched.is_empty() {
        "there is no ~/.pg_service.conf; name a file with PGSERVICEFILE".to_owned()
    } else {
        format!("it is not in {}", searched.join(" or "))
    };
    Err(format!("service={service} is unknown: {why}"))
}

/// The lines below `[service]`; `None` where there is no such line.
fn find_service(
    text: &str,
    service: &str,
    is_keyword: &dyn Fn(&str) -> bool,
) -> Result<Option<Settings>, String> {
    let mut settings: Option<Settings> = None;
    for (index, line) in text.lines().map(str::trim).enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            match settings {
                Some(_) => break,
                None if name.strip_suffix(']') == Some(service) => settings = Some(Vec::new()),
                None => {}
            }
        } else if let Some(settings) = &mut settings {
            match line.split_once('=') {
                // Another service or file within a service is an error of libpq, too.
                Some((name, value)) if is_keyword(name) && !name.starts_with("service") => {
                    // Unlike in a connection string, the first value stands (parseServiceFile of
                    // libpq sets what has no value yet).
                    if settings.iter().all(|(known, _)| known != name) {
                        settings.push((name.to_owned(), value.to_owned()));
                    }
                }
                _ => return Err(format!("line {}: not a keyword and its value", index + 1)),
            }
        }
    }
    Ok(settings)
}

/// A password that no message shows.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Password(String);

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Password(…)")
    }
}

impl Password {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// The text of a file of passwords that only its owner may read, as libpq demands; empty where
/// there is none. The error: why it is not used.
pub(crate) fn read_passwords(path: &Path) -> Result<String, String> {
    let file = match read_small_file(path, SETTINGS_BYTES_MAX) {
        Ok(file) => file,
        Err(error) if error.is_missing() => return Ok(String::new()),
        Err(error) => return Err(format!("{}: ignored: {error}", path.display())),
    };
    if file.metadata.mode() & 0o077 != 0 {
        return Err(format!(
            "{}: ignored: other users may read it; use chmod 600",
            path.display()
        ));
    }
    file.into_text()
        .map_err(|error| format!("{}: ignored: {error}", path.display()))
}

/// The password of the first line that matches host, port, database and user.
pub(crate) fn find_password(passwords: &str, wanted: [&str; 4]) -> Option<Password> {
    for line in passwords.lines() {
        if line.starts_with('#') {
            continue;
        }
        if let Some(password) = match_line(line, wanted) {
            return Some(password);
        }
    }
    None
}

/// `host:port:database:user:password`; `*` matches everything, a backslash protects a character.
fn match_line(line: &str, wanted: [&str; 4]) -> Option<Password> {
    let mut rest = line;
    for wanted in wanted {
        let (field, after) = next_field(rest);
        if field != wanted && !rest.starts_with("*:") {
            return None;
        }
        rest = after?;
    }
    // libpq ends it at a colon, too.
    let (password, _) = next_field(rest);
    if password.is_empty() {
        return None;
    }
    Some(Password::new(&password))
}

/// The text up to the next colon, and what follows that.
fn next_field(text: &str) -> (String, Option<&str>) {
    let mut field = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => field.extend(chars.next().map(|(_, c)| c)),
            ':' => return (field, Some(&text[at + 1..])),
            c => field.push(c),
        }
    }
    (field, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    /// The settings, each as `name|value`.
    fn pairs(text: &str) -> Vec<String> {
        let settings = parse_settings(text).unwrap();
        settings
            .iter()
            .map(|(name, value)| format!("{name}|{value}"))
            .collect()
    }

    #[test]
    fn quotes_backslashes_and_spaces_of_keywords_are_understood() {
        let read = pairs(" host = a  user='b c' password=d\\ e options='' dbname='f\\\\g'");
        let expected = [
            "host|a",
            "user|b c",
            "password|d e",
            "options|",
            "dbname|f\\g",
        ];
        assert_eq!(read, expected);
        assert!(pairs("").is_empty());
        assert!(parse_settings("a=1 b").is_err());
        assert!(parse_settings("a='1").is_err());
    }

    #[test]
    fn parts_of_a_uri_are_optional() {
        assert!(pairs("postgresql://").is_empty());
        for (uri, settings) in [
            ("postgres://h", &["host|h"][..]),
            ("postgres:///d", &["dbname|d"]),
            (
                "postgres://%2Frun%2Fpg:7/d?sslmode=disable",
                &["host|/run/pg", "port|7", "dbname|d", "sslmode|disable"],
            ),
            (
                "postgres://u@[::1]:7,h/",
                &["user|u", "host|::1,h", "port|7,"],
            ),
            // As libpq reads it.
            (
                "postgres://u:pa?ss@h/d?application_name=x",
                &[
                    "user|u",
                    "password|pa?ss",
                    "host|h",
                    "dbname|d",
                    "application_name|x",
                ],
            ),
            ("postgres://h/d@e", &["host|h", "dbname|d@e"]),
        ] {
            assert_eq!(pairs(uri), settings, "{uri}");
        }
        for wrong in ["[::1/", "h?x", "h/%zz", "h/%ff"] {
            assert!(
                parse_settings(&format!("postgres://{wrong}")).is_err(),
                "{wrong}"
            );
        }
    }

    fn is_keyword(name: &str) -> bool {
        ["host", "password", "service"].contains(&name)
    }

    fn found(text: &str) -> Result<Option<Settings>, String> {
        find_service(text, "prod", &is_keyword)
    }

    #[test]
    fn section_of_the_service_is_read() {
        let text = "# x\n[test]\nhost=a\n[prod]\n # y\n host=b c\nhost=e\npassword=p=q \n\n\
                    [last]\nhost=d\n";
        let expected = [("host", "b c"), ("password", "p=q")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(found(text), Ok(Some(expected.to_vec())));
        assert_eq!(found("[test]\nhost=a\n"), Ok(None));
        assert_eq!(found("[prod]"), Ok(Some(Vec::new())));
    }

    #[test]
    fn broken_lines_are_named_without_their_text() {
        for line in ["secret", "secret=1", "service=secret"] {
            let why = found(&format!("[prod]\n{line}")).unwrap_err();
            assert!(why.contains("line 2") && !why.contains("secret"), "{why}");
        }
    }

    #[test]
    fn file_of_the_system_completes_that_of_the_user() {
        let here = tempfile::tempdir().unwrap();
        let directory = here.path().to_str().unwrap().to_owned();
        let environment = |name: &str| (name == "PGSYSCONFDIR").then(|| directory.clone());
        let paths = service_files(None, Some(&here.path().join("home")), &environment);
        assert_eq!(paths.len(), 2);
        assert!(service_settings("prod", &paths, &is_keyword).is_err());
        std::fs::write(&paths[1], "[prod]\nhost=a\n").unwrap();
        let settings = service_settings("prod", &paths, &is_keyword).unwrap();
        assert_eq!(settings, [("host".to_owned(), "a".to_owned())]);
    }

    fn password_of(text: &str, host: &str) -> Option<Password> {
        find_password(text, [host, "5432", "db", "ann"])
    }

    #[test]
    fn first_line_that_matches_gives_the_password() {
        let text = "# h:5432:db:ann:no\nother:*:*:*:no\nh:5432:*:ann:a\\:b\\\\c\n*:*:*:*:late\n";
        assert_eq!(password_of(text, "h"), Some(Password::new("a:b\\c")));
        assert_eq!(password_of(text, "x"), Some(Password::new("late")));
        assert_eq!(password_of("h:5433:db:ann:no\nh:5432:db:bob:no", "h"), None);
        assert_eq!(password_of("h:5432:db:ann:", "h"), None);
        assert_eq!(password_of("h:5432", "h"), None);
        let escaped = password_of("h\\:1:5432:db:ann:p", "h:1");
        assert_eq!(escaped, Some(Password::new("p")));
    }

    #[test]
    fn password_is_in_no_message() {
        let text = format!("{:?}", Password::new("secret"));
        assert!(!text.contains("secret"));
    }

    #[test]
    fn file_that_others_may_read_is_ignored() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join("pass");
        assert_eq!(read_passwords(&path), Ok(String::new()));
        std::fs::write(&path, "*:*:*:*:p").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let why = read_passwords(&path).expect_err("it was read");
        assert!(why.contains("chmod 600"), "{why}");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read_passwords(&path), Ok("*:*:*:*:p".to_owned()));
        assert!(read_passwords(here.path()).is_err());
    }
}
