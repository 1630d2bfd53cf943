//! Connection service files (documentation of PostgreSQL, "The Connection Service File"): settings
//! of a connection under a name. No message repeats a value, as it may be a password.

use std::path::{Path, PathBuf};

/// Debian's packages, those of postgresql.org for Red Hat, and PostgreSQL's own default.
const SYSTEM_DIRECTORIES: [&str; 3] = [
    "/etc/postgresql-common",
    "/etc/sysconfig/pgsql",
    "/usr/local/pgsql/etc",
];
const SYSTEM_FILE: &str = "pg_service.conf";
const USER_FILE: &str = ".pg_service.conf";

/// The files in which a service is searched, in this order.
pub(crate) fn paths(
    named: Option<String>,
    home: Option<&Path>,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Vec<PathBuf> {
    let of_user = named.map(PathBuf::from);
    let of_user = of_user.or_else(|| home.map(|home| home.join(USER_FILE)));
    let named = environment("PGSYSCONFDIR").map(|directory| vec![PathBuf::from(directory)]);
    let usual = || SYSTEM_DIRECTORIES.map(PathBuf::from).to_vec();
    let of_system = named.unwrap_or_else(usual).into_iter();
    let of_system = of_system.map(|directory| directory.join(SYSTEM_FILE));
    of_user.into_iter().chain(of_system).collect()
}

/// The settings of a service, from the first file that has it.
pub(crate) fn read(
    service: &str,
    paths: &[PathBuf],
    is_keyword: &dyn Fn(&str) -> bool,
) -> Result<Vec<(String, String)>, String> {
    let mut searched = Vec::new();
    for path in paths {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(format!("{}: {error}", path.display())),
        };
        let found = find(&text, service, is_keyword);
        if let Some(settings) = found.map_err(|why| format!("{}, {why}", path.display()))? {
            return Ok(settings);
        }
        searched.push(path.display().to_string());
    }
    let searched = if searched.is_empty() {
        "there is no ~/.pg_service.conf; name a file with PGSERVICEFILE".to_owned()
    } else {
        format!("it is not in {}", searched.join(" or "))
    };
    Err(format!("service={service} is unknown: {searched}"))
}

/// The lines below `[service]`; `None` where there is no such line.
fn find(
    text: &str,
    service: &str,
    is_keyword: &dyn Fn(&str) -> bool,
) -> Result<Option<Vec<(String, String)>>, String> {
    let mut settings: Option<Vec<(String, String)>> = None;
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
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
            let pair = line.split_once('=');
            // Another service or file within a service is an error of libpq, too.
            let is_usable = |name: &str| is_keyword(name) && !name.starts_with("service");
            match pair.filter(|(name, _)| is_usable(name)) {
                Some((name, value)) => settings.push((name.to_owned(), value.to_owned())),
                None => return Err(format!("line {number}: not a keyword and its value")),
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

    fn found(text: &str) -> Result<Option<Vec<(String, String)>>, String> {
        find(text, "prod", &is_keyword)
    }

    #[test]
    fn section_of_the_service_is_read() {
        let text =
            "# x\n[test]\nhost=a\n[prod]\n # y\n host=b c\npassword=p=q \n\n[last]\nhost=d\n";
        let expected = [("host", "b c"), ("password", "p=q")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(found(text), Ok(Some(expected.to_vec())));
        assert_eq!(found("[test]\nhost=a\n"), Ok(None));
        assert_eq!(found("[prod]"), Ok(Some(Vec::new())));
    }

    #[test]
    fn broken_lines_are_named_without_their_text() {
        for text in [
            "[prod]\nsecret",
            "[prod]\nsecret=1",
            "[prod]\nservice=secret",
        ] {
            let why = found(text).unwrap_err();
            assert!(why.contains("line 2") && !why.contains("secret"), "{why}");
        }
    }

    #[test]
    fn file_of_the_system_completes_that_of_the_user() {
        let here = tempfile::tempdir().unwrap();
        let directory = here.path().to_str().unwrap().to_owned();
        let environment = |name: &str| (name == "PGSYSCONFDIR").then(|| directory.clone());
        let paths = paths(None, Some(&here.path().join("home")), &environment);
        assert_eq!(paths.len(), 2);
        assert!(read("prod", &paths, &is_keyword).is_err());
        std::fs::write(&paths[1], "[prod]\nhost=a\n").unwrap();
        let settings = read("prod", &paths, &is_keyword).unwrap();
        assert_eq!(settings, [("host".to_owned(), "a".to_owned())]);
    }
}
