//! A password, and where libpq finds one: passwords of a file (`~/.pgpass`). It appears in no
//! message.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

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

/// What a password file gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PasswordFile {
    /// Its text.
    Text(String),
    /// There is none.
    Missing,
    /// It is not used, and why.
    Ignored(String),
}

impl PasswordFile {
    /// Reads a file that only its owner may read, as libpq demands.
    pub(crate) fn read(path: &Path) -> Self {
        let Ok(metadata) = std::fs::metadata(path) else {
            return Self::Missing;
        };
        let ignored = |why: &str| Self::Ignored(format!("{}: ignored: {why}", path.display()));
        if !metadata.is_file() {
            return ignored("it is not a plain file");
        }
        if metadata.mode() & 0o077 != 0 {
            return ignored("other users may read it; use chmod 600");
        }
        match std::fs::read_to_string(path) {
            Ok(text) => Self::Text(text),
            Err(error) => ignored(&error.to_string()),
        }
    }

    /// The password of the first line that matches.
    pub(crate) fn find(
        &self,
        host: &str,
        port: u16,
        database: &str,
        user: &str,
    ) -> Option<Password> {
        let Self::Text(text) = self else {
            return None;
        };
        let wanted = [host, &port.to_string(), database, user];
        text.lines()
            .filter(|line| !line.starts_with('#'))
            .find_map(|line| match_line(line, &wanted))
    }
}

/// `host:port:database:user:password`; `*` matches everything, a backslash protects a character.
fn match_line(line: &str, wanted: &[&str; 4]) -> Option<Password> {
    let mut rest = line;
    for wanted in wanted {
        let (field, after) = next_field(rest)?;
        let is_any = rest.starts_with("*:");
        if !is_any && field != *wanted {
            return None;
        }
        rest = after;
    }
    let mut password = String::new();
    let mut chars = rest.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => password.extend(chars.next()),
            // libpq ends it there, too.
            ':' => break,
            c => password.push(c),
        }
    }
    (!password.is_empty()).then(|| Password::new(&password))
}

/// The text up to the next colon, and what follows it.
fn next_field(text: &str) -> Option<(String, &str)> {
    let mut field = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => field.extend(chars.next().map(|(_, c)| c)),
            ':' => return Some((field, &text[at + 1..])),
            c => field.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::os::unix::fs::PermissionsExt as _;

    fn found(text: &str, host: &str) -> Option<Password> {
        PasswordFile::Text(text.to_owned()).find(host, 5432, "db", "ann")
    }

    #[test]
    fn first_line_that_matches_gives_the_password() {
        let text = "# h:5432:db:ann:no\nother:*:*:*:no\nh:5432:*:ann:a\\:b\\\\c\n*:*:*:*:late\n";
        assert_eq!(found(text, "h"), Some(Password::new("a:b\\c")));
        assert_eq!(found(text, "x"), Some(Password::new("late")));
        assert_eq!(found("h:5433:db:ann:no\nh:5432:db:bob:no", "h"), None);
        assert_eq!(found("h:5432:db:ann:", "h"), None);
        assert_eq!(found("h:5432", "h"), None);
        assert_eq!(
            found("h\\:1:5432:db:ann:p", "h:1"),
            Some(Password::new("p"))
        );
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
        assert_eq!(PasswordFile::read(&path), PasswordFile::Missing);
        std::fs::write(&path, "*:*:*:*:p").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let PasswordFile::Ignored(why) = PasswordFile::read(&path) else {
            panic!("it was read");
        };
        assert!(why.contains("chmod 600"), "{why}");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(matches!(PasswordFile::read(&path), PasswordFile::Text(_)));
        assert!(matches!(
            PasswordFile::read(here.path()),
            PasswordFile::Ignored(_)
        ));
    }
}
