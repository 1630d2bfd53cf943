//! Passwords in command lines and messages: every saved command line and every printed error passes
//! through here. Rather hides a word too many.

/// What stands in place of a secret.
const HIDDEN: &str = "(hidden)";

/// Whether a text of a record stands in for one with a password.
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
pub fn without_secrets(argv: Vec<String>) -> Vec<String> {
    let mut hidden = Vec::with_capacity(argv.len());
    let mut is_secret = false;
    for word in argv {
        let is_flag = word.starts_with('-');
        if is_secret && !is_flag {
            hidden.push(HIDDEN.to_owned());
            is_secret = false;
            continue;
        }
        is_secret = is_flag && !word.contains('=') && is_secret_key(&word);
        hidden.push(without_secret(&word));
    }
    hidden
}

/// A text, such as an error message, without the secrets in it: `key=value`, also with blanks
/// around the sign and quotes around the value, and `user:secret@host`.
#[must_use]
pub fn without_secret(text: &str) -> String {
    hide_logins(&hide_values(text))
}

fn is_secret_key(key: &str) -> bool {
    let key = key
        .trim_start_matches('-')
        .to_ascii_lowercase()
        .replace('-', "_");
    SECRET_KEYS.iter().any(|part| key.contains(part))
        && !PLAIN_ENDS.iter().any(|end| key.ends_with(end))
}

fn is_key_char(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-')
}

fn hide_values(text: &str) -> String {
    let mut hidden = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('=') {
        let key_end = before.trim_end();
        let key_start = key_end.trim_end_matches(is_key_char).len();
        hidden.push_str(before);
        hidden.push('=');
        rest = after;
        if is_secret_key(&key_end[key_start..]) {
            let value = value_length(rest);
            if value > 0 {
                hidden.push_str(HIDDEN);
            }
            rest = &rest[value..];
        }
    }
    hidden.push_str(rest);
    hidden
}

/// The bytes of a value at the start of a text: up to a blank or the next parameter of a URI, or to
/// the end of its quotes; a backslash protects a character.
fn value_length(text: &str) -> usize {
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
        } else if character.is_whitespace() || character == '&' {
            return index;
        }
    }
    text.len()
}

/// Hides what stands between the colon behind a user and the last `@` of a word, with a scheme
/// before the user or without one.
fn hide_logins(text: &str) -> String {
    let mut hidden = String::with_capacity(text.len());
    for word in text.split_inclusive(char::is_whitespace) {
        match login_secret(word) {
            Some(range) => {
                hidden.push_str(&word[..range.start]);
                hidden.push_str(HIDDEN);
                hidden.push_str(&word[range.end..]);
            }
            None => hidden.push_str(word),
        }
    }
    hidden
}

fn login_secret(word: &str) -> Option<std::ops::Range<usize>> {
    let end = word.rfind('@')?;
    let login_start = match word[..end].find("://") {
        Some(scheme) => scheme + "://".len(),
        None => word[..end]
            .rfind(['=', '\'', '"', '('])
            .map_or(0, |at| at + 1),
    };
    let login = &word[login_start..end];
    let (user, secret) = login.split_once(':')?;
    // A path with a colon, such as /dev/disk/by-path/pci-0000:00:1f.2, is no login.
    if user.contains('/') || secret.is_empty() {
        return None;
    }
    Some(login_start + user.len() + 1..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &str) -> String {
        let words = words.split(' ').map(str::to_owned).collect();
        without_secrets(words).join(" ")
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
    fn message_loses_its_secrets() {
        for (text, hidden) in [
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
                "error: http://u:p@h/x and u2:q@h",
                "error: http://u:(hidden)@h/x and u2:(hidden)@h",
            ),
            ("a token=x", "a token=(hidden)"),
        ] {
            assert_eq!(without_secret(text), hidden);
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
            assert_eq!(without_secret(text), text);
        }
    }
}
