//! Finds the settings of a service (`service=NAME`) in the service files of libpq (documentation of
//! PostgreSQL, "The Connection Service File"). No message repeats a value, as it may be a password.

use crate::connection_string::Settings;
use diskproof_device::{SmallFile, read_small_file};
use std::path::{Path, PathBuf};

/// The directories with a file of services: of Debian's packages, of those of postgresql.org for
/// Red Hat, and of PostgreSQL's own default.
const SYSTEM_DIRECTORIES: [&str; 3] = [
    "/etc/postgresql-common",
    "/etc/sysconfig/pgsql",
    "/usr/local/pgsql/etc",
];
/// The most bytes of a file of services or passwords: far more than those of an organisation have.
pub(crate) const SETTINGS_BYTES_MAX: u64 = 4 << 20;
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

#[cfg(test)]
mod tests {
    use super::*;

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
        // The user's own comes first, and a named one instead of that.
        std::fs::create_dir(here.path().join("home")).unwrap();
        std::fs::write(&paths[0], "[prod]\nhost=b\n").unwrap();
        let settings = service_settings("prod", &paths, &is_keyword).unwrap();
        assert_eq!(settings, [("host".to_owned(), "b".to_owned())]);
        let named = service_files(Some("/x".to_owned()), Some(here.path()), &environment);
        assert_eq!(named, [PathBuf::from("/x"), paths[1].clone()]);
    }
}
