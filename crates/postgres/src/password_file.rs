//! Finds the password of a connection in the password file of libpq (documentation of PostgreSQL,
//! "The Password File"). No message shows it.

use crate::service_file::SETTINGS_BYTES_MAX;
use diskproof_device::read_small_file;
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
