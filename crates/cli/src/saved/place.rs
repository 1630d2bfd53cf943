//! Finds the place of the history by the flag, the environment variables, or the home directory,
//! and opens it there, in bounded time.

use crate::failure::Failure;
use crate::input_files::{InputRole, register};
use diskproof_device::{PathError, TrustedPath, without_symlinks};
use diskproof_engine::watchdog::{Deferred, Waited};
use diskproof_history::{Folders, History, HistoryError, HistoryPlace, make_writable};
use rustix::process::geteuid;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The reason why there is no place for the history.
pub(super) const NOWHERE: &str =
    "neither HOME nor XDG_STATE_HOME is set. Name a file with --history FILE or DISKPROOF_HISTORY";

/// Waiting for the lock of a history takes up to 20 s, checking a large one a few more.
const HISTORY_LIMIT: Duration = Duration::from_secs(60);
/// Finding out whether files exist takes milliseconds.
const LOOK_LIMIT: Duration = Duration::from_secs(5);
/// Name of the threads that read and write the history.
const THREAD_NAME: &str = "diskproof-saved";
/// Root's home where passwd(5) does not name it.
const ROOT_HOME: &str = "/root";

/// The place of the history, for verbs that need one. Fails where there is none.
pub(crate) fn history_place(history: Option<&Path>) -> Result<HistoryPlace, Failure> {
    let mut environment = HistoryEnvironment::real();
    // DISKPROOF_NO_HISTORY prevents saving, not reading.
    environment.is_off = false;
    match environment.place(history) {
        Destination::At(place) => Ok(resolve_folder(place)?),
        Destination::Off | Destination::Nowhere => {
            Err(Failure::Usage(format!("there is no history: {NOWHERE}")))
        }
    }
}

/// The place, with the symlinks of its folder resolved. Those of another user are followed nowhere:
/// they may lead to a file that only this user can replace.
pub(super) fn resolve_folder(place: HistoryPlace) -> Result<HistoryPlace, HistoryError> {
    match resolved_folder_path(&place.path) {
        Ok(path) => Ok(HistoryPlace { path, ..place }),
        Err(PathError::ForeignLink(path)) => Err(HistoryError::NotOurs {
            path,
            why: "is a symbolic link that another user made or may change",
        }),
        // The history says it in its own words.
        Err(PathError::Kernel { .. }) => Ok(place),
    }
}

/// The path, with the symlinks of its folder resolved.
fn resolved_folder_path(path: &Path) -> Result<PathBuf, PathError> {
    TrustedPath::walk(path)?;
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(path.to_owned());
    };
    let real_folder = if folder.as_os_str().is_empty() {
        without_symlinks(Path::new("."))?
    } else {
        without_symlinks(folder)?
    };
    Ok(real_folder.join(name))
}

/// Registers the history, and the files beside it that belong to it, so that no output replaces
/// them. `flag` is the value of --history.
pub(crate) fn register_history(flag: Option<&Path>) {
    let mut environment = HistoryEnvironment::real();
    environment.is_off = false;
    let Destination::At(place) = environment.place(flag) else {
        return;
    };
    let registering = Deferred::start_or_run(THREAD_NAME, move || {
        for path in place.files() {
            register(&path, InputRole::History);
        }
    });
    // A home on a dead network filesystem does not keep a run from being measured.
    let _ = registering.wait(LOOK_LIMIT);
}

/// The result of an operation on a history, in bounded time.
pub(super) fn history_answer<T: Send + 'static>(
    place: &HistoryPlace,
    work: impl FnOnce(&HistoryPlace) -> Result<T, HistoryError> + Send + 'static,
) -> Result<T, Failure> {
    let thread_place = place.clone();
    match Deferred::start_or_run(THREAD_NAME, move || work(&thread_place)).wait(HISTORY_LIMIT) {
        Waited::Done(result) => Ok(result?),
        Waited::TimedOut(_) | Waited::Lost => Err(Failure::History(HistoryError::NoAnswer {
            path: place.path.clone(),
            seconds: HISTORY_LIMIT.as_secs(),
        })),
    }
}

/// Opens the history to read it; `None` when there is no file.
pub(crate) fn open_if_there(place: &HistoryPlace) -> Result<Option<History>, Failure> {
    history_answer(place, History::open)
}

/// Makes the history where there is none. Fails where no run could be saved in it.
pub(crate) fn make_history(history: Option<&Path>) -> Result<(), Failure> {
    match HistoryEnvironment::real().place(history) {
        Destination::At(place) => history_answer(&resolve_folder(place)?, make_writable),
        Destination::Off => Err(Failure::Usage(
            "DISKPROOF_NO_HISTORY is set, so no run would be saved; unset it".to_owned(),
        )),
        Destination::Nowhere => Err(Failure::Usage(format!("there is no history: {NOWHERE}"))),
    }
}

/// The message for a history that does not exist or is empty.
pub(crate) fn empty_text(path: &Path) -> String {
    format!(
        "the history {} is empty. Each run is saved there; start with 'diskproof check'",
        path.display()
    )
}

/// The program's own folder for what outlives a run; `None` without a home.
pub(crate) fn state_folder() -> Option<PathBuf> {
    let folder = HistoryEnvironment::real().state_folder()?;
    Some(folder.join("diskproof"))
}

/// The environment variables that decide where the history lies.
#[derive(Debug, Clone)]
pub(super) struct HistoryEnvironment {
    /// The value of DISKPROOF_HISTORY.
    named: Option<OsString>,
    /// True if DISKPROOF_NO_HISTORY is set.
    is_off: bool,
    /// The value of XDG_STATE_HOME.
    state_home: Option<OsString>,
    /// The value of HOME.
    home: Option<OsString>,
    /// Root's own home, where this is root.
    root_home: Option<PathBuf>,
}

/// The place where a run is saved, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Destination {
    At(HistoryPlace),
    /// DISKPROOF_NO_HISTORY prevents saving.
    Off,
    /// Neither a file nor a home is known.
    Nowhere,
}

impl HistoryEnvironment {
    /// The environment of this process.
    pub(super) fn real() -> Self {
        Self {
            named: variable("DISKPROOF_HISTORY"),
            is_off: variable("DISKPROOF_NO_HISTORY").is_some(),
            state_home: variable("XDG_STATE_HOME"),
            home: variable("HOME"),
            root_home: if geteuid().is_root() {
                Some(root_home())
            } else {
                None
            },
        }
    }

    /// The place by `flag`, the value of --history, or by the environment.
    pub(super) fn place(&self, flag: Option<&Path>) -> Destination {
        if let Some(path) = flag {
            return named_file(path);
        }
        if self.is_off {
            return Destination::Off;
        }
        if let Some(path) = &self.named {
            return named_file(Path::new(path));
        }
        match self.state_folder() {
            Some(folder) => Destination::At(HistoryPlace {
                path: folder.join("diskproof/history.db"),
                folders: Folders::Made,
            }),
            None => Destination::Nowhere,
        }
    }

    /// The state folder of the XDG base directory specification, which ignores relative paths.
    fn state_folder(&self) -> Option<PathBuf> {
        let state = match absolute_path(self.state_home.as_deref()) {
            Some(folder) => folder.to_owned(),
            None => absolute_path(self.home.as_deref())?.join(".local/state"),
        };
        match &self.root_home {
            // Under sudo these variables may still name the user's folder. Files of root there
            // would lock the user out of their own history.
            Some(own_home) if belongs_to_user(&state) => Some(own_home.join(".local/state")),
            _ => Some(state),
        }
    }
}

/// The value of an environment variable that is set and not empty.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn named_file(path: &Path) -> Destination {
    Destination::At(HistoryPlace {
        path: path.to_owned(),
        folders: Folders::Expected,
    })
}

fn absolute_path(value: Option<&OsStr>) -> Option<&Path> {
    value.map(Path::new).filter(|path| path.is_absolute())
}

/// True if the folder, or its nearest existing ancestor, belongs to a user other than root.
fn belongs_to_user(folder: &Path) -> bool {
    for path in folder.ancestors() {
        if let Ok(metadata) = path.metadata() {
            return metadata.uid() != 0;
        }
    }
    false
}

/// Root's home by passwd(5), or else the usual one.
fn root_home() -> PathBuf {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    for line in users.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        if let [_, _, "0", _, _, home, ..] = fields.as_slice() {
            let folder = if home.starts_with('/') {
                home
            } else {
                ROOT_HOME
            };
            return folder.into();
        }
    }
    ROOT_HOME.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> HistoryEnvironment {
        HistoryEnvironment {
            named: None,
            is_off: false,
            state_home: None,
            home: None,
            root_home: None,
        }
    }

    fn value(text: &str) -> Option<OsString> {
        Some(text.into())
    }

    fn destination(path: &str, folders: Folders) -> Destination {
        Destination::At(HistoryPlace {
            path: path.into(),
            folders,
        })
    }

    #[test]
    fn history_place_prefers_flag_then_variables_then_home() {
        let home = HistoryEnvironment {
            home: value("/home/ann"),
            ..environment()
        };
        let made = destination("/home/ann/.local/state/diskproof/history.db", Folders::Made);
        assert_eq!(home.place(None), made);
        let state = HistoryEnvironment {
            state_home: value("/state"),
            ..home.clone()
        };
        let in_state = destination("/state/diskproof/history.db", Folders::Made);
        assert_eq!(state.place(None), in_state);
        let relative_state = HistoryEnvironment {
            state_home: value("state"),
            ..home
        };
        assert_eq!(relative_state.place(None), made);
        let named = HistoryEnvironment {
            named: value("h.db"),
            ..state
        };
        let expected = destination("h.db", Folders::Expected);
        assert_eq!(named.place(None), expected);
        let without_saving = HistoryEnvironment {
            is_off: true,
            ..named
        };
        assert_eq!(without_saving.place(None), Destination::Off);
        let flag = without_saving.place(Some(Path::new("other.db")));
        assert_eq!(flag, destination("other.db", Folders::Expected));
        let empty = HistoryEnvironment {
            home: value(""),
            ..environment()
        };
        for nowhere in [environment(), empty] {
            assert_eq!(nowhere.place(None), Destination::Nowhere);
        }
    }

    #[test]
    fn root_keeps_its_history_out_of_the_home_of_a_user() {
        if !geteuid().is_root() {
            eprintln!("SKIPPED: root_keeps_its_history_out_of_the_home_of_a_user: root");
            return;
        }
        let home = tempfile::tempdir().unwrap();
        let sudo = HistoryEnvironment {
            home: Some(home.path().into()),
            root_home: Some("/root".into()),
            ..environment()
        };
        let own = home.path().join(".local/state/diskproof/history.db");
        let in_home = destination(own.to_str().unwrap(), Folders::Made);
        assert_eq!(sudo.place(None), in_home);
        std::os::unix::fs::chown(home.path(), Some(65534), None).unwrap();
        let of_root = destination("/root/.local/state/diskproof/history.db", Folders::Made);
        assert_eq!(sudo.place(None), of_root);
    }
}
