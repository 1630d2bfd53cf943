//! Finds the programs of a PostgreSQL server. Starts `postgres --version` only, as the user of the
//! server: a directory of PATH may belong to anyone.

use crate::error::PostgresError;
use crate::user::ServerUser;
use diskproof_device::{NoAnswer, output_of};
use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Directories in which Debian and Red Hat install servers, each with the beginning of the names in
/// it.
const INSTALLED: [(&str, &str); 2] = [("/usr/lib/postgresql", ""), ("/usr", "pgsql-")];

/// The same places in words, for the error where none has a server.
const SEARCHED: &str = "PATH, /usr/lib/postgresql/*/bin and /usr/pgsql-*/bin";

/// The longest that a program may take to print its version. Also a busy machine prints it at once.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

/// The programs of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    /// The directory of the programs.
    pub folder: PathBuf,
    /// Major version of the server.
    pub version: u32,
    /// The whole version, such as `15.8`.
    pub version_text: String,
}

impl Programs {
    /// The path of a program.
    pub(crate) fn path(&self, program: &str) -> PathBuf {
        self.folder.join(program)
    }

    /// True if pgbench is installed with the server.
    pub fn has_pgbench(&self) -> bool {
        self.path("pgbench").exists()
    }

    /// The programs in this directory, with the version that they print within `limit`.
    fn in_folder(folder: &Path, limit: Duration) -> Result<Self, PostgresError> {
        let program = folder.join("postgres");
        match printed_version(&program, limit) {
            Ok(version) => Ok(Self {
                folder: folder.to_owned(),
                version: version.major,
                version_text: version.text,
            }),
            Err(why) => Err(PostgresError::program(program.display(), why)),
        }
    }
}

/// The version of a server.
#[derive(Debug, PartialEq, Eq)]
struct ServerVersion {
    major: u32,
    /// Such as `15.8` or `19beta1`.
    text: String,
}

/// The version that a program prints; the error says why there is none.
fn printed_version(program: &Path, limit: Duration) -> Result<ServerVersion, String> {
    let mut command = Command::new(program);
    command.arg("--version").current_dir("/");
    if let Some(user) = ServerUser::needed() {
        command.uid(user.uid).gid(user.gid);
    }
    match output_of(command, limit) {
        Ok(text) => parse_version(&text)
            .ok_or_else(|| format!("it prints '{}' as its version", text.trim())),
        Err(NoAnswer::Late) => Err(format!("no answer within {} s", limit.as_secs())),
        Err(NoAnswer::Failed(error)) => Err(error.to_string()),
    }
}

/// `postgres (PostgreSQL) 15.8 (Debian 15.8-0+deb12u1)`; `19beta1` before a release.
fn parse_version(text: &str) -> Option<ServerVersion> {
    let (_, behind) = text.split_once("(PostgreSQL)")?;
    let word = behind.split_whitespace().next()?;
    let digits: String = word.chars().take_while(char::is_ascii_digit).collect();
    Some(ServerVersion {
        major: digits.parse().ok()?,
        text: word.to_owned(),
    })
}

/// The server in the directory `named`; without one the first one on `search_path` (the variable
/// PATH, without its relative directories), else the newest one that a distribution installed.
pub fn find_programs(
    named: Option<&Path>,
    search_path: Option<&OsStr>,
) -> Result<Programs, PostgresError> {
    let folder = match named {
        Some(folder) if has_server(folder) => absolute_folder(folder),
        Some(folder) => {
            return Err(PostgresError::NoServer {
                searched: folder.display().to_string(),
            });
        }
        None => usual_folder(search_path.unwrap_or_default()).ok_or_else(|| {
            PostgresError::NoServer {
                searched: SEARCHED.to_owned(),
            }
        })?,
    };
    Programs::in_folder(&folder, VERSION_TIMEOUT)
}

/// The first directory of the search path with a server, else that of the newest installed one.
fn usual_folder(search_path: &OsStr) -> Option<PathBuf> {
    for folder in std::env::split_paths(search_path) {
        if folder.is_absolute() && has_server(&folder) {
            return Some(absolute_folder(&folder));
        }
    }
    newest_folder(&INSTALLED.map(|(folder, prefix)| (Path::new(folder), prefix)))
}

/// True if a directory has the programs that every server has.
fn has_server(folder: &Path) -> bool {
    ["postgres", "initdb"]
        .iter()
        .all(|program| folder.join(program).exists())
}

/// The absolute directory of all programs of a server, since the guard works in another directory.
/// Where a directory has links to some of the programs, it is the one that the links lead to.
fn absolute_folder(folder: &Path) -> PathBuf {
    if let Ok(program) = folder.join("postgres").canonicalize()
        && let Some(own_folder) = program.parent()
        && has_server(own_folder)
    {
        return own_folder.to_owned();
    }
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}

/// The directory with the programs of the newest server below these directories. Each version has
/// its own directory there: the given prefix and the number. Versions that are no whole number are
/// skipped.
fn newest_folder(folders: &[(&Path, &str)]) -> Option<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = Vec::new();
    for (folder, prefix) in folders {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let bin = entry.path().join("bin");
            if let Some(version) = entry.file_name().to_string_lossy().strip_prefix(prefix)
                && let Ok(number) = version.parse()
                && has_server(&bin)
            {
                found.push((number, bin));
            }
        }
    }
    found.into_iter().max().map(|(_, bin)| bin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn version_is_read_from_what_every_packager_prints() {
        for (printed, major, text) in [
            (
                "postgres (PostgreSQL) 15.8 (Debian 15.8-0+deb12u1)\n",
                15,
                "15.8",
            ),
            ("postgres (PostgreSQL) 19beta1", 19, "19beta1"),
        ] {
            let version = ServerVersion {
                major,
                text: text.to_owned(),
            };
            assert_eq!(parse_version(printed), Some(version));
        }
        assert_eq!(parse_version("postgres 9"), None);
    }

    #[test]
    fn relative_directories_of_the_search_path_are_skipped() {
        let here = tempfile::tempdir_in(".").unwrap();
        for program in ["postgres", "initdb"] {
            std::fs::write(here.path().join(program), "").unwrap();
        }
        let relative = Path::new(here.path().file_name().unwrap());
        assert!(has_server(relative));
        let absolute = relative.canonicalize().unwrap();
        let found = |folder: &Path| match find_programs(None, Some(folder.as_os_str())) {
            Err(PostgresError::Program { program, .. }) => {
                program.starts_with(absolute.to_str().unwrap())
            }
            _ => false,
        };
        // The file does not run, so that an error names it where it is found.
        assert!(found(&absolute));
        assert!(!found(relative));
    }

    #[test]
    fn server_that_prints_no_version_is_late() {
        let place = tempfile::tempdir().unwrap();
        let program = place.path().join("postgres");
        std::fs::write(&program, "#!/bin/sh\nexec sleep 600\n").unwrap();
        let all = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(place.path(), all.clone()).unwrap();
        std::fs::set_permissions(&program, all).unwrap();
        let late = Programs::in_folder(place.path(), Duration::from_millis(200));
        assert!(matches!(late, Err(PostgresError::Program { .. })));
    }

    #[test]
    fn newest_installed_server_is_found_and_half_installed_ones_are_not() {
        let place = tempfile::tempdir().unwrap();
        for (version, programs) in [("9.6", 2), ("15", 2), ("17", 2), ("18", 1)] {
            let bin = place.path().join(version).join("bin");
            std::fs::create_dir_all(&bin).unwrap();
            for program in &["postgres", "initdb"][..programs] {
                std::fs::write(bin.join(program), "").unwrap();
            }
        }
        let found = newest_folder(&[(place.path(), "")]).unwrap();
        assert_eq!(found, place.path().join("17/bin"));
        let empty = place.path().join("18/bin");
        let error = find_programs(Some(&empty), None).unwrap_err().to_string();
        assert!(error.contains("--pg-bin"), "{error}");
    }
}
