//! The two spellings of a connection string (documentation of PostgreSQL, "Connection Strings"), as
//! names and values. Knows no names and repeats no text in its errors.

const SCHEMES: [&str; 2] = ["postgresql://", "postgres://"];

type Settings = Vec<(String, String)>;

/// The settings in the order in which they stand.
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

/// `name = value`, with quotes and backslashes.
fn parse_keywords(text: &str) -> Result<Settings, String> {
    let mut settings = Settings::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let at = settings.len() + 1;
        let end = rest.find(|c: char| c == '=' || c.is_whitespace());
        let (name, after) = rest.split_at(end.unwrap_or(rest.len()));
        let after = after.trim_start().strip_prefix('=').ok_or_else(|| {
            format!("keyword number {at} has no '='; put a value with spaces into quotes")
        })?;
        let (value, after) = value(after.trim_start())
            .ok_or_else(|| format!("the quote of value number {at} is not closed"))?;
        settings.push((name.to_owned(), value));
        rest = after.trim_start();
    }
    Ok(settings)
}

/// The value at the start, and what follows; `None` where its quote does not end.
fn value(text: &str) -> Option<(String, &str)> {
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
    quoted.is_none().then_some((value, ""))
}

/// `user:password@host:port,host:port/dbname?name=value&…` behind the scheme.
fn parse_uri(text: &str) -> Result<Settings, String> {
    let (before, query) = text.split_once('?').unwrap_or((text, ""));
    let (authority, database) = before.split_once('/').unwrap_or((before, ""));
    let (login, hosts) = match authority.split_once('@') {
        Some((login, hosts)) => (Some(login), hosts),
        None => (None, authority),
    };
    let mut settings = Settings::new();
    let mut add = |name: &str, value: &str| -> Result<(), String> {
        if !value.is_empty() {
            settings.push((name.to_owned(), decoded(value)?));
        }
        Ok(())
    };
    if let Some(login) = login {
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        add("user", user)?;
        add("password", password)?;
    }
    let (hosts, ports) = hosts_and_ports(hosts)?;
    add("host", &hosts)?;
    add("port", &ports)?;
    add("dbname", database)?;
    let parts = query.split('&').enumerate();
    for (at, part) in parts.filter(|(_, part)| !part.is_empty()) {
        let (name, value) = part
            .split_once('=')
            .ok_or_else(|| format!("parameter number {} after '?' has no '='", at + 1))?;
        match (name, value) {
            ("ssl", "true") => add("sslmode", "require")?,
            _ => add(&decoded(name)?, value)?,
        }
    }
    Ok(settings)
}

/// The lists of hosts and of ports, as the keywords take them.
fn hosts_and_ports(text: &str) -> Result<(String, String), String> {
    let (mut hosts, mut ports) = (Vec::new(), Vec::new());
    for one in text.split(',') {
        let (host, port) = match one.strip_prefix('[') {
            Some(rest) => {
                let (host, after) = rest
                    .split_once(']')
                    .ok_or("the address in brackets is not closed")?;
                (host, after.strip_prefix(':').unwrap_or(after))
            }
            None => one.rsplit_once(':').unwrap_or((one, "")),
        };
        hosts.push(host);
        ports.push(port);
    }
    let ports = if ports.iter().all(|port| port.is_empty()) {
        String::new()
    } else {
        ports.join(",")
    };
    Ok((hosts.join(","), ports))
}

/// With `%20` as the byte that it means.
fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => hex(rest.next())
                .zip(hex(rest.next()))
                .map(|(high, low)| high * 16 + low)
                .filter(|byte| *byte != 0)
                .ok_or("a '%' is not followed by two hex digits; write a percent sign as %25")?,
            other => other,
        });
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}

fn hex(byte: Option<u8>) -> Option<u8> {
    u8::try_from(char::from(byte?).to_digit(16)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        parse_settings(text).unwrap()
    }

    fn as_str(pairs: &[(String, String)]) -> Vec<(&str, &str)> {
        pairs
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect()
    }

    #[test]
    fn quotes_backslashes_and_spaces_of_keywords_are_understood() {
        let read = pairs(" host = a  user='b c' password=d\\ e options='' dbname='f\\\\g'");
        assert_eq!(
            as_str(&read),
            [
                ("host", "a"),
                ("user", "b c"),
                ("password", "d e"),
                ("options", ""),
                ("dbname", "f\\g")
            ]
        );
        assert!(pairs("").is_empty());
        assert!(parse_settings("a=1 b").is_err());
        assert!(parse_settings("a='1").is_err());
    }

    #[test]
    fn parts_of_a_uri_are_optional() {
        assert!(pairs("postgresql://").is_empty());
        assert_eq!(as_str(&pairs("postgres://h")), [("host", "h")]);
        assert_eq!(as_str(&pairs("postgres:///d")), [("dbname", "d")]);
        assert_eq!(
            as_str(&pairs("postgres://%2Frun%2Fpg:7/d?sslmode=disable")),
            [
                ("host", "/run/pg"),
                ("port", "7"),
                ("dbname", "d"),
                ("sslmode", "disable")
            ]
        );
        assert_eq!(
            as_str(&pairs("postgres://u@[::1]:7,h/")),
            [("user", "u"), ("host", "::1,h"), ("port", "7,")]
        );
        assert!(parse_settings("postgres://[::1/").is_err());
        assert!(parse_settings("postgres://h?x").is_err());
        assert!(parse_settings("postgres://h/%zz").is_err());
        assert!(parse_settings("postgres://h/%ff").is_err());
    }
}
