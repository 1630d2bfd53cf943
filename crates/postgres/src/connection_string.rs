//! Parses a connection string in the two spellings of libpq, `keyword = value …` and a URI
//! (documentation of PostgreSQL, "Connection Strings"). What a keyword means is in `conninfo`. No
//! message repeats a value, as it may be a password.

/// The beginnings of a URI.
const SCHEMES: [&str; 2] = ["postgresql://", "postgres://"];

/// Keywords with their values, in the order in which they stand. Of a keyword that stands twice the
/// last value wins.
pub(crate) type Settings = Vec<(String, String)>;

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

#[cfg(test)]
mod tests {
    use super::*;

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
        // A '/' ends the login: what stands behind is a database.
        assert_eq!(pairs("postgres://a/b@c"), ["host|a", "dbname|b@c"]);
        assert_eq!(
            pairs("postgres://h?ssl=true"),
            ["host|h", "sslmode|require"]
        );
        for wrong in ["[::1/", "h?x", "h/%zz", "h/%ff", "h/%00"] {
            assert!(
                parse_settings(&format!("postgres://{wrong}")).is_err(),
                "{wrong}"
            );
        }
    }
}
