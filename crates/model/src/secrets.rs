//! Hides passwords in command lines and messages: every saved command line and every printed error
//! passes through here. Where a word may be a secret, it is hidden.

/// The words in place of a secret.
const HIDDEN: &str = "(hidden)";

/// True if a text of a record stands in for one with a password.
pub fn hides_secret(text: &str) -> bool {
    text.contains(HIDDEN)
}

/// Parts of a key whose value is a secret: `--mysql-password`, `sslpassword`, `PGPASSWORD`,
/// `http_s3_session_token`.
const SECRET_KEYS: [&str; 7] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "s3_key",
    "http_pass",
];
/// Keys that end like this name a file with secrets, or a place, and no secret.
const PLAIN_ENDS: [&str; 3] = ["file", "path", "id"];

/// A command line without its secrets: values of keys that name one, also as the next word, and
/// what stands between `:` and `@`.
#[must_use]
pub fn command_without_secrets(argv: Vec<String>) -> Vec<String> {
    let mut hidden = Vec::with_capacity(argv.len());
    let mut is_secret = false;
    for word in argv {
        // sysbench has options without a value.
        if is_secret && !is_long_flag(&word) {
            hidden.push(HIDDEN.to_owned());
            is_secret = false;
            continue;
        }
        is_secret = word.starts_with('-') && !word.contains('=') && is_secret_key(&word);
        // A word of a command line is one value, blanks included.
        let without_values = hide_values(&word);
        hidden.push(match login_secret(&without_values) {
            Some(range) => without_range(&without_values, range),
            None => hide_logins(&without_values),
        });
    }
    hidden
}

/// True of a flag with a long name, as every tool of ours spells them, and of no password that
/// begins with two dashes.
fn is_long_flag(word: &str) -> bool {
    let Some(flag) = word.strip_prefix("--") else {
        return false;
    };
    let name = match flag.split_once('=') {
        Some((name, _)) => name,
        None => flag,
    };
    name.chars().all(|character| {
        character.is_ascii_lowercase()
            || character.is_ascii_digit()
            || matches!(character, '-' | '_' | '.')
    })
}

/// A text, such as an error message, without the secrets in it: `key=value`, also with blanks
/// around the sign and quotes around the value, and `user:secret@host`.
#[must_use]
pub fn text_without_secrets(text: &str) -> String {
    hide_logins(&hide_values(text))
}

/// True if a key names a secret, and not the file that holds one.
fn is_secret_key(key: &str) -> bool {
    let key = key
        .trim_start_matches('-')
        .to_ascii_lowercase()
        .replace('-', "_");
    SECRET_KEYS.iter().any(|part| key.contains(part))
        && !PLAIN_ENDS.iter().any(|end| key.ends_with(end))
}

/// True of a character that the key of `key=value` may have.
fn is_key_char(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-')
}

/// Hides the value of each `key=value` whose key names a secret.
fn hide_values(text: &str) -> String {
    let mut hidden = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('=') {
        let key_end = before.trim_end();
        let key_start = key_end.trim_end_matches(is_key_char).len();
        let read = text.len() - rest.len();
        hidden.push_str(before);
        hidden.push('=');
        rest = after;
        if is_secret_key(&key_end[key_start..]) {
            let value = value_length(rest, ValueKind::after(&text[..read + key_start]));
            if value > 0 {
                hidden.push_str(HIDDEN);
            }
            rest = &rest[value..];
        }
    }
    hidden.push_str(rest);
    hidden
}

/// The place of a value, by which its end is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueKind {
    /// Among the parameters of a URI, which `&` separates.
    OfUri,
    /// Anywhere else, where `&` is a character like others.
    Plain,
}

impl ValueKind {
    /// The kind of the value whose key ends this text.
    fn after(before: &str) -> Self {
        let word = match before.rsplit(char::is_whitespace).next() {
            Some(word) => word,
            None => before,
        };
        let is_parameter = word.ends_with(['?', '&']) && word.contains('?');
        if is_parameter && word.contains("://") {
            Self::OfUri
        } else {
            Self::Plain
        }
    }
}

/// The bytes of a value at the start of a text: up to a blank or the next parameter of a URI, or to
/// the end of its quotes; a backslash protects a character.
fn value_length(text: &str, kind: ValueKind) -> usize {
    let blanks = text.len() - text.trim_start_matches(' ').len();
    let mut quote = None;
    let mut is_protected = false;
    for (index, character) in text.char_indices().skip(blanks) {
        if is_protected {
            is_protected = false;
        } else if character == '\\' {
            is_protected = true;
        } else if let Some(open) = quote {
            if character == open {
                quote = None;
            }
        } else if matches!(character, '\'' | '"') {
            quote = Some(character);
        } else if character.is_whitespace() || (character == '&' && kind == ValueKind::OfUri) {
            return index;
        }
    }
    text.len()
}

/// Hides what stands between the colon behind a user and the last `@` of a word, with a scheme
/// before the user or without one. A text in quotes is one word. A password behind a scheme may
/// have blanks without them: it ends at the next `@`.
fn hide_logins(text: &str) -> String {
    let mut hidden = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(quoted) = leading_quotation(rest)
            && let Some(range) = login_secret(quoted)
        {
            hidden.push_str(&without_range(quoted, range));
            rest = &rest[quoted.len()..];
            continue;
        }
        let Some(word) = rest.split_inclusive(char::is_whitespace).next() else {
            break;
        };
        let after = &rest[word.len()..];
        if let Some(range) = login_secret(word) {
            hidden.push_str(&without_range(word, range));
            rest = after;
        } else if opens_login(word)
            && let Some(at) = rest.find('@')
            && let Some(range) = login_secret(&rest[..=at])
        {
            hidden.push_str(&without_range(&rest[..=at], range));
            rest = &rest[at + 1..];
        } else {
            hidden.push_str(word);
            rest = after;
        }
    }
    hidden
}

/// The quotation with which a text begins, its quotes included. It ends at the first quote that no
/// letter follows: a password may have one inside.
fn leading_quotation(text: &str) -> Option<&str> {
    let quote = text
        .chars()
        .next()
        .filter(|first| matches!(first, '\'' | '"'))?;
    for (index, _) in text.match_indices(quote).skip(1) {
        let end = index + quote.len_utf8();
        if !text[end..].starts_with(char::is_alphanumeric) {
            return Some(&text[..end]);
        }
    }
    None
}

/// The text with the words of [`HIDDEN`] in place of a range.
fn without_range(text: &str, range: std::ops::Range<usize>) -> String {
    format!("{}{HIDDEN}{}", &text[..range.start], &text[range.end..])
}

/// True of a word that begins a login with a scheme, whose password goes on in the next word: not
/// of `http://host:8080/path`.
fn opens_login(word: &str) -> bool {
    let Some((_, login)) = word.split_once("://") else {
        return false;
    };
    let Some((user, secret)) = login.trim_end().split_once(':') else {
        return false;
    };
    let is_port = secret.starts_with(|first: char| first.is_ascii_digit());
    !user.contains('/') && !secret.is_empty() && !is_port
}

/// The place of a password in a text that is one login: behind the first colon after its user, to
/// its last `@`.
fn login_secret(text: &str) -> Option<std::ops::Range<usize>> {
    let end = text.rfind('@')?;
    let scheme_end = text[..end].find("://").map(|at| at + "://".len());
    let search_start = scheme_end.unwrap_or(0);
    let colon = search_start + text[search_start..end].find(':')?;
    let before = &text[search_start..colon];
    let user = match scheme_end {
        Some(_) => before,
        None => before.rsplit(['=', '\'', '"', '(']).next()?,
    };
    let secret = &text[colon + 1..end];
    // A path with a colon, such as /dev/disk/by-path/pci-0000:00:1f.2, is no login, nor is a
    // sentence.
    let is_user = !user.contains(['/', '@']) && !user.contains(char::is_whitespace);
    if !is_user || secret.is_empty() || secret.starts_with(char::is_whitespace) {
        return None;
    }
    Some(colon + 1..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &str) -> String {
        let words = words.split(' ').map(str::to_owned).collect();
        command_without_secrets(words).join(" ")
    }

    #[test]
    fn command_line_loses_its_secrets() {
        for (words, hidden) in [
            (
                "watch --postgres postgres://ann:secret@h/d sda",
                "watch --postgres postgres://ann:(hidden)@h/d sda",
            ),
            (
                "--postgres=postgresql://a:s/e@c@h",
                "--postgres=postgresql://a:(hidden)@h",
            ),
            (
                "--postgres postgres:SECRET@host",
                "--postgres postgres:(hidden)@host",
            ),
            ("--postgres=host=a", "--postgres=host=a"),
            (
                "--postgres=sslpassword=S",
                "--postgres=sslpassword=(hidden)",
            ),
            (
                "postgres://h/d?sslpassword=S&user=a",
                "postgres://h/d?sslpassword=(hidden)&user=a",
            ),
            ("--mysql-password=S run", "--mysql-password=(hidden) run"),
            ("--mysql-password S run", "--mysql-password (hidden) run"),
            (
                "--mysql-password --db-ps-mode=auto",
                "--mysql-password --db-ps-mode=auto",
            ),
            ("--mysql-password -S3c run", "--mysql-password (hidden) run"),
            (
                "--mysql-password --S3c run",
                "--mysql-password (hidden) run",
            ),
            (
                "commit d postgres:SE=CRET@127.0.0.1",
                "commit d postgres:(hidden)@127.0.0.1",
            ),
            (
                "watch --postgres=postgres:a(b'c\"d@127.0.0.1",
                "watch --postgres=postgres:(hidden)@127.0.0.1",
            ),
            ("PGPASSWORD=S psql", "PGPASSWORD=(hidden) psql"),
            (
                "--http_s3_key=S --http_pass=T",
                "--http_s3_key=(hidden) --http_pass=(hidden)",
            ),
        ] {
            assert_eq!(line(words), hidden);
        }
    }

    #[test]
    fn word_of_a_command_line_is_one_value() {
        for (word, hidden) in [
            (
                "postgresql://u:pa ss@h:1/d",
                "postgresql://u:(hidden)@h:1/d",
            ),
            ("postgresql://u:p@a s:s@h/d", "postgresql://u:(hidden)@h/d"),
            ("postgres:SE CRET@h", "postgres:(hidden)@h"),
            ("host=h password=S3c&ret", "host=h password=(hidden)"),
            ("host=h password=S3c?a&ret=b", "host=h password=(hidden)"),
            ("use job: mail a@b", "use job: mail a@b"),
        ] {
            assert_eq!(command_without_secrets(vec![word.to_owned()]), [hidden]);
        }
    }

    #[test]
    fn message_loses_its_secrets() {
        for (text, hidden) in [
            (
                "cannot parse postgresql://u:pa ss@h:1/d: no host",
                "cannot parse postgresql://u:(hidden)@h:1/d: no host",
            ),
            ("password=S3c&ret x=1", "password=(hidden) x=1"),
            (
                "'postgres:a(b=c@h': no such host",
                "'postgres:(hidden)@h': no such host",
            ),
            (
                "http://host:8080/x is down, mail a@b",
                "http://host:8080/x is down, mail a@b",
            ),
            (
                "host=a sslpassword='b \\' c' user=d",
                "host=a sslpassword=(hidden) user=d",
            ),
            ("password = S x=1", "password =(hidden) x=1"),
            (
                "'postgres:S@h': no such host",
                "'postgres:(hidden)@h': no such host",
            ),
            (
                "no host in 'postgres:pa ss@h': use 'postgres@h'",
                "no host in 'postgres:(hidden)@h': use 'postgres@h'",
            ),
            ("'name': mail 'a@b' or 'c'", "'name': mail 'a@b' or 'c'"),
            (
                "error: http://u:p@h/x and u2:q@h",
                "error: http://u:(hidden)@h/x and u2:(hidden)@h",
            ),
            ("a token=x", "a token=(hidden)"),
        ] {
            assert_eq!(text_without_secrets(text), hidden);
        }
    }

    #[test]
    fn text_without_secrets_stays() {
        for text in [
            "",
            "--filename=/dev/disk/by-path/pci-0000:00:1f.2-ata-1 --rw=read",
            "use ~/.pgpass or PGPASSWORD instead; passfile=/root/.pgpass",
            "job@host: 12:30",
            "postgres://ann@host:5432/db",
            "--filename=a:b:c",
            "user@host:/path",
        ] {
            assert_eq!(text_without_secrets(text), text);
        }
    }
}
