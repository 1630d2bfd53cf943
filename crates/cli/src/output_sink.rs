//! The file that an output path leads to, and the way of a document into it. Everything goes
//! through a descriptor of the directory, so that no exchange of the path leads anywhere else, and
//! a file that is replaced keeps its owner and mode.

use crate::input_files::{InputRole, role_of_file, role_of_name};
use diskproof_device::{PathError, TrustedPath};
use diskproof_report::format::{OutputFile, WriteContent};
use rustix::fs::{
    Access, AtFlags, CWD, FileType, Gid, Mode, OFlags, Stat, StatxAttributes, StatxFlags, Uid,
    accessat, fchmod, fchown, fstat, openat, renameat, stat, statat, statx, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, BufWriter, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// NAME_MAX of every filesystem that Linux writes to.
const NAME_BYTES_MAX: usize = 255;
/// Bytes that are kept free for the name of a chart, which takes the place of `%`.
const CHART_NAME_BYTES: usize = 64;

/// The error where a file is not the one that was found before.
const REPLACED: &str = "another process is replacing it; try again";

/// The way to find out whether a file can be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trial {
    /// By creating one and removing it.
    Create,
    /// By the permissions of its directory.
    Permission,
}

/// The reason why a file cannot be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutputError {
    /// The end of a sentence that names the file.
    pub why: String,
    /// The kernel's error; `None` where a rule of ours refuses the file.
    pub errno: Option<Errno>,
}

impl OutputError {
    fn refused(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            errno: None,
        }
    }

    /// The error of an output that is the same file as another of the command.
    pub(crate) fn same_as(other: &Path) -> Self {
        Self::refused(format!(
            "this is the same file as {}; name each file once",
            other.display()
        ))
    }

    fn kernel(errno: Errno, why: String) -> Self {
        let errno = Some(errno);
        Self { why, errno }
    }

    fn is_directory() -> Self {
        Self::kernel(Errno::ISDIR, "is a directory; name a file".to_owned())
    }
}

impl From<OutputError> for io::Error {
    fn from(error: OutputError) -> Self {
        Self::other(error.why)
    }
}

/// A name in a directory that is held open.
#[derive(Debug)]
pub(crate) struct Place {
    folder: OwnedFd,
    name: OsString,
    /// The directory as it was named, for messages.
    shown: PathBuf,
}

/// The file that an output path leads to.
#[derive(Debug)]
pub(crate) enum Sink {
    /// A file that a complete one replaces, or a new one.
    Replace(Place),
    /// A pipe, a terminal or a file that is a mount point: it is opened and written. The descriptor
    /// only holds it (O_PATH).
    Write(OwnedFd),
}

impl Sink {
    /// Walks to where the path leads. Follows no symlink of another user, and ends at no file that
    /// this command line reads.
    pub(crate) fn find(path: &Path) -> Result<Self, OutputError> {
        steps::before();
        let place = match TrustedPath::walk(path) {
            Ok(TrustedPath::Name(trusted)) => Place {
                folder: trusted.directory.folder,
                name: trusted.name,
                shown: directory_of(path).to_owned(),
            },
            Ok(TrustedPath::Object(object)) => return Self::write_into(object),
            Ok(TrustedPath::Directory(_)) => return Err(OutputError::is_directory()),
            Err(error) => return Err(cannot_walk(path, &error)),
        };
        if let Some(role) = role_of_name(&place.folder, &place.name) {
            return Err(is_input(role));
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        steps::before();
        let held = match openat(&place.folder, &place.name, flags, Mode::empty()) {
            Ok(held) => held,
            Err(Errno::NOENT) => return Ok(Self::Replace(place)),
            Err(errno) => return Err(cannot_open(errno)),
        };
        let stat = fstat(&held).map_err(cannot_open)?;
        if !is_file(&stat) || place.is_mount_point() || is_standard_stream(&stat) {
            return Self::write_into(held);
        }
        match role_of_file(&stat) {
            Some(role) => Err(is_input(role)),
            None => Ok(Self::Replace(place)),
        }
    }

    /// The sink of something that is written as it is, such as a pipe.
    fn write_into(held: OwnedFd) -> Result<Self, OutputError> {
        let stat = fstat(&held).map_err(cannot_open)?;
        if !is_file(&stat) {
            check_type(&stat)?;
        }
        match role_of_file(&stat) {
            Some(role) => Err(is_input(role)),
            None => Ok(Self::Write(held)),
        }
    }

    /// Checks that it can be written, as far as that can be known without changing anything.
    pub(crate) fn check(&self, trial: Trial) -> Result<(), OutputError> {
        match self {
            Self::Write(held) => accessat(CWD, proc_path(held), Access::WRITE_OK, AtFlags::EACCESS)
                .map_err(|errno| {
                    let why = format!("cannot write to it: {}", io::Error::from(errno));
                    OutputError::kernel(errno, why)
                }),
            Self::Replace(place) => {
                check_name_length(&place.name)?;
                place.check_replaceable()?;
                let created = match trial {
                    Trial::Create => place.try_to_create(),
                    Trial::Permission => {
                        let needed = Access::WRITE_OK | Access::EXEC_OK;
                        accessat(&place.folder, ".", needed, AtFlags::EACCESS)
                            .map_err(io::Error::from)
                    }
                };
                created.map_err(|error| cannot_create(&place.shown, &error))
            }
        }
    }

    /// Writes the document, and returns its size in bytes.
    pub(crate) fn save(&self, write: &WriteContent<'_>) -> io::Result<u64> {
        match self {
            Self::Replace(place) => place.replace(write),
            Self::Write(held) => write_into(held, write),
        }
    }

    /// The sink of another name in the same directory.
    pub(crate) fn renamed(&self, name: &str) -> io::Result<Self> {
        match self {
            Self::Replace(place) => Ok(Self::Replace(Place {
                folder: place.folder.try_clone()?,
                name: name.into(),
                shown: place.shown.clone(),
            })),
            Self::Write(_) => Err(OutputError::is_directory().into()),
        }
    }

    /// Whether it is a pipe.
    pub(crate) fn is_pipe(&self) -> bool {
        match self {
            Self::Replace(_) => false,
            Self::Write(held) => match fstat(held) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode) == FileType::Fifo,
                Err(_) => false,
            },
        }
    }

    /// Whether both are one file, so that the later document would replace the earlier.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Replace(place), Self::Replace(other_place)) => {
                place.name == other_place.name && is_same_file(&place.folder, &other_place.folder)
            }
            // Text for /dev/null is lost twice, without harm.
            (Self::Write(held), Self::Write(other_held)) => {
                is_same_file(held, other_held) && !is_null_device(held)
            }
            _ => false,
        }
    }
}

fn is_input(role: InputRole) -> OutputError {
    OutputError::refused(format!("{}; name another file", role.refusal()))
}

fn cannot_open(errno: Errno) -> OutputError {
    if errno == Errno::NAMETOOLONG {
        return name_too_long(NAME_BYTES_MAX);
    }
    let why = format!("cannot open the file: {}", io::Error::from(errno));
    OutputError::kernel(errno, why)
}

fn cannot_walk(path: &Path, error: &PathError) -> OutputError {
    match error.errno() {
        None => OutputError::refused(error.to_string()),
        Some(errno @ Errno::NAMETOOLONG) => cannot_open(errno),
        Some(errno) => cannot_create(directory_of(path), &io::Error::from(errno)),
    }
}

impl Place {
    /// The file that has the name; `None` where nothing has it. Fails where it is no file any more.
    fn existing_file(&self) -> io::Result<Option<Stat>> {
        match statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if is_file(&stat) => Ok(Some(stat)),
            Ok(_) => Err(io::Error::other(REPLACED)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    fn attributes(&self) -> StatxAttributes {
        let stay = AtFlags::SYMLINK_NOFOLLOW;
        match statx(&self.folder, &self.name, stay, StatxFlags::BASIC_STATS) {
            Ok(statx) => statx.stx_attributes,
            Err(_) => StatxAttributes::empty(),
        }
    }

    /// A file that is mounted, as into a container, cannot be replaced (rename(2), EBUSY).
    fn is_mount_point(&self) -> bool {
        self.attributes().contains(StatxAttributes::MOUNT_ROOT)
    }

    /// Refuses to replace a file that this user may not replace by one with the same owner.
    fn check_replaceable(&self) -> Result<(), OutputError> {
        let existing = match self.existing_file() {
            Ok(Some(stat)) => stat,
            Ok(None) => return Ok(()),
            Err(error) => return Err(OutputError::refused(error.to_string())),
        };
        for (attribute, letter) in [
            (StatxAttributes::IMMUTABLE, 'i'),
            (StatxAttributes::APPEND, 'a'),
        ] {
            if self.attributes().contains(attribute) {
                let why = format!(
                    "the file has the attribute {letter} and cannot be replaced (EPERM); name \
                     another file, or run chattr -{letter} on it"
                );
                return Err(OutputError::kernel(Errno::PERM, why));
            }
        }
        if !geteuid().is_root() && existing.st_uid != geteuid().as_raw() {
            let why = "the file belongs to another user, and only its owner or root can replace \
                       it; name another file";
            return Err(OutputError::kernel(Errno::ACCESS, why.to_owned()));
        }
        Ok(())
    }

    /// Writes the document under a temporary name and renames it: the file is complete at every
    /// moment.
    fn replace(&self, write: &WriteContent<'_>) -> io::Result<u64> {
        self.check_replaceable()?;
        let replaced = self.existing_file()?;
        if let Some(role) = replaced.as_ref().and_then(role_of_file) {
            return Err(is_input(role).into());
        }
        // The new file gets the mode of the old one before it gets content.
        let mode = if replaced.is_some() {
            OWNER_ONLY
        } else {
            NEW_FILE
        };
        let temporary = self.create_temporary(mode)?;
        let saved = self.fill_and_rename(&temporary, replaced.as_ref(), write);
        if saved.is_err() {
            let _ = self.discard(&temporary);
        }
        saved
    }

    fn fill_and_rename(
        &self,
        temporary: &TemporaryFile,
        replaced: Option<&Stat>,
        write: &WriteContent<'_>,
    ) -> io::Result<u64> {
        let bytes = fill(&temporary.file, replaced, write)?;
        steps::before();
        self.check_still_named(temporary)?;
        renameat(&self.folder, &temporary.name, &self.folder, &self.name)?;
        Ok(bytes)
    }

    /// Creates a file beside it, and removes that.
    fn try_to_create(&self) -> io::Result<()> {
        let temporary = self.create_temporary(OWNER_ONLY)?;
        self.discard(&temporary)
    }

    /// Removes our file, unless another process has put one in its place.
    fn discard(&self, temporary: &TemporaryFile) -> io::Result<()> {
        self.check_still_named(temporary)?;
        Ok(unlinkat(&self.folder, &temporary.name, AtFlags::empty())?)
    }

    /// Fails where another process has put its file in the place of ours.
    fn check_still_named(&self, temporary: &TemporaryFile) -> io::Result<()> {
        let named = statat(&self.folder, &temporary.name, AtFlags::SYMLINK_NOFOLLOW)?;
        if is_same(&named, &fstat(&temporary.file)?) {
            Ok(())
        } else {
            Err(io::Error::other(REPLACED))
        }
    }

    fn create_temporary(&self, mode: u32) -> io::Result<TemporaryFile> {
        steps::before();
        let name = temporary_name(&self.name);
        let new =
            OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = openat(&self.folder, &name, new, Mode::from_raw_mode(mode))?;
        Ok(TemporaryFile {
            name,
            file: file.into(),
        })
    }
}

/// A new file beside the one that it is going to replace.
struct TemporaryFile {
    name: OsString,
    file: File,
}

/// The mode of a file until it has that of the file that it replaces: content that was private
/// stays so.
const OWNER_ONLY: u32 = 0o600;
/// The mode of a new file, less the bits of the umask.
const NEW_FILE: u32 = 0o666;
/// The bits of a mode that are permissions.
const PERMISSIONS: u32 = 0o777;
/// All permissions but those of the group.
const NO_GROUP: u32 = 0o707;

/// Writes the document into a new file, makes it durable, and returns its size in bytes.
fn fill(file: &File, replaced: Option<&Stat>, write: &WriteContent<'_>) -> io::Result<u64> {
    if let Some(replaced) = replaced {
        keep_owner(file, replaced)?;
    }
    let bytes = write_counted(file, write)?;
    file.sync_all()?;
    Ok(bytes)
}

/// Writes the document, and counts its bytes.
fn write_counted(file: &File, write: &WriteContent<'_>) -> io::Result<u64> {
    let counting = CountingWriter { file, bytes: 0 };
    let mut out = BufWriter::new(counting);
    write(&mut out)?;
    out.flush()?;
    Ok(out.get_ref().bytes)
}

/// Counts the bytes that it writes.
struct CountingWriter<'a> {
    file: &'a File,
    bytes: u64,
}

impl io::Write for CountingWriter<'_> {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        let written = self.file.write(part)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn cannot_create(folder: &Path, error: &io::Error) -> OutputError {
    OutputError {
        why: format!(
            "cannot create a file in {}: {error}; name a writable directory",
            folder.display()
        ),
        errno: Errno::from_io_error(error),
    }
}

/// Gives a file the owner, group and mode of another one. A user who may not give it that group
/// gives no group any permission.
fn keep_owner(file: &File, replaced: &Stat) -> io::Result<()> {
    let current = fstat(file)?;
    let mut mode = replaced.st_mode & PERMISSIONS;
    if current.st_uid != replaced.st_uid {
        fchown(file, Some(Uid::from_raw(replaced.st_uid)), None)?;
    }
    if current.st_gid != replaced.st_gid
        && fchown(file, None, Some(Gid::from_raw(replaced.st_gid))).is_err()
    {
        mode &= NO_GROUP;
    }
    // A filesystem without modes refuses those that it cannot store.
    if current.st_mode & PERMISSIONS != mode {
        match fchmod(file, Mode::from_raw_mode(mode)) {
            Err(Errno::PERM | Errno::NOTSUP) if geteuid().as_raw() == replaced.st_uid => {}
            changed => changed?,
        }
    }
    Ok(())
}

fn is_same(stat: &Stat, other: &Stat) -> bool {
    stat.st_dev == other.st_dev && stat.st_ino == other.st_ino
}

/// Whether two descriptors hold the same file; false where that cannot be known.
fn is_same_file(descriptor: impl AsFd, other: impl AsFd) -> bool {
    let Ok(stat) = fstat(descriptor) else {
        return false;
    };
    let Ok(other_stat) = fstat(other) else {
        return false;
    };
    is_same(&stat, &other_stat)
}

fn is_null_device(held: &OwnedFd) -> bool {
    match fstat(held) {
        Ok(stat) => is_null(stat.st_rdev),
        Err(_) => false,
    }
}

/// A path that leads to what a descriptor holds, and to nothing else (proc_pid_fd(5)).
fn proc_path(held: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", held.as_raw_fd())
}

fn is_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

/// Refuses what must never be written by a mistyped name, such as a disk behind a symlink.
fn check_type(stat: &Stat) -> Result<(), OutputError> {
    let rdev = stat.st_rdev;
    Err(match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo => return Ok(()),
        FileType::CharacterDevice if is_null(rdev) || is_standard_terminal(rdev) => return Ok(()),
        FileType::Directory => OutputError::is_directory(),
        FileType::BlockDevice => {
            OutputError::refused("is a block device, and would be overwritten; name a file")
        }
        FileType::CharacterDevice => OutputError::refused("is a character device; name a file"),
        FileType::Symlink => OutputError::refused(REPLACED),
        _ => OutputError::refused("is a socket; name a file"),
    })
}

/// Whether a device is /dev/null (Linux, Documentation/admin-guide/devices.txt).
fn is_null(rdev: u64) -> bool {
    rustix::fs::major(rdev) == 1 && rustix::fs::minor(rdev) == 3
}

/// What stdout and stderr lead to.
fn standard_streams() -> impl Iterator<Item = Stat> {
    ["/proc/self/fd/1", "/proc/self/fd/2"]
        .into_iter()
        .filter_map(|path| stat(path).ok())
}

/// Whether this is the terminal on stdout or stderr.
fn is_standard_terminal(rdev: u64) -> bool {
    for stream in standard_streams() {
        let kind = FileType::from_raw_mode(stream.st_mode);
        if kind == FileType::CharacterDevice && stream.st_rdev == rdev {
            return true;
        }
    }
    false
}

/// Whether stdout or stderr goes to this file: replacing it would lose what is printed.
fn is_standard_stream(stat: &Stat) -> bool {
    standard_streams().any(|stream| is_same(&stream, stat))
}

fn check_name_length(name: &OsStr) -> Result<(), OutputError> {
    let bytes_max = if name.as_bytes().contains(&b'%') {
        NAME_BYTES_MAX - CHART_NAME_BYTES
    } else {
        NAME_BYTES_MAX
    };
    if name.len() > bytes_max {
        Err(name_too_long(bytes_max))
    } else {
        Ok(())
    }
}

fn name_too_long(bytes_max: usize) -> OutputError {
    let why = format!("the name is longer than {bytes_max} bytes; use a shorter one");
    OutputError::kernel(Errno::NAMETOOLONG, why)
}

/// The directory of a file; `.` for a path that names none.
pub(crate) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Saves a document to its path, and returns its size in bytes.
pub(crate) fn save_file(output: &OutputFile<'_>) -> io::Result<u64> {
    let sink = Sink::find(&output.path)?;
    sink.save(&output.write)
}

/// Writes the document into a pipe, a terminal or a mounted file, and returns its size in bytes.
/// Opening a pipe waits for its reader.
fn write_into(held: &OwnedFd, write: &WriteContent<'_>) -> io::Result<u64> {
    steps::before();
    let stat = fstat(held)?;
    let is_stream = is_standard_stream(&stat);
    let path = proc_path(held);
    let file = File::options().write(true).append(is_stream).open(path)?;
    if is_file(&stat) && !is_stream {
        file.set_len(0)?;
    }
    write_counted(&file, write)
}

/// Refuses to print into a file that this command line reads, as `>>data.bin` of a shell would.
pub(crate) fn check_standard_streams() -> Result<(), String> {
    for stream in standard_streams() {
        if let Some(role) = role_of_file(&stream) {
            return Err(format!("stdout or stderr: {}", is_input(role).why));
        }
    }
    Ok(())
}

/// The path under which a file is written before it gets its own.
pub(crate) fn temporary_path(path: &Path) -> PathBuf {
    path.with_file_name(temporary_name(path.file_name().unwrap_or_default()))
}

/// The temporary name has only a hash of a long name, so that it is no longer than a name may be.
fn temporary_name(name: &OsStr) -> OsString {
    let suffix = format!(".{}.unfinished", std::process::id());
    let mut temporary = OsString::from(".");
    if 1 + name.len() + suffix.len() <= NAME_BYTES_MAX {
        temporary.push(name);
    } else {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        temporary.push(format!("{:016x}", hasher.finish()));
    }
    temporary.push(suffix);
    temporary
}

/// The points at which another process can exchange the path. Tests exchange it at each of them.
#[cfg(not(test))]
mod steps {
    pub(super) const fn before() {}
}

#[cfg(test)]
mod steps {
    use std::cell::{Cell, RefCell};

    type Act = Box<dyn FnMut()>;

    thread_local! {
        static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
        static ACT: RefCell<Option<Act>> = const { RefCell::new(None) };
    }

    pub(super) fn before() {
        LEFT.set(LEFT.get().wrapping_sub(1));
        if LEFT.get() == 0 {
            ACT.with_borrow_mut(|act| act.as_mut().map(|act| act()));
        }
    }

    /// Acts once, before step `number`, which counts from 1.
    pub(super) fn act_before(number: usize, act: impl FnMut() + 'static) {
        LEFT.set(number);
        ACT.set(Some(Box::new(act)));
    }

    /// Whether the step was reached.
    pub(super) fn was_reached() -> bool {
        LEFT.get() == 0 || LEFT.get() > usize::MAX / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt, chown, lchown, symlink};

    /// A directory whose files have numbers that no input of another test had: tmpfs gives none a
    /// second time.
    fn place() -> tempfile::TempDir {
        tempfile::tempdir_in("/dev/shm").unwrap()
    }

    /// More steps than a save has.
    const STEPS_MAX: usize = 20;

    fn save(path: &Path) -> io::Result<u64> {
        save_file(&OutputFile {
            path: path.to_owned(),
            write: Box::new(|out| out.write_all(b"new")),
        })
    }

    #[test]
    fn temporary_name_fits_beside_the_longest_name() {
        for length in [1, 240, 241, 255] {
            let path = Path::new("/folder").join("n".repeat(length));
            let temporary = temporary_path(&path);
            assert_eq!(temporary.parent(), path.parent());
            assert!(
                temporary.file_name().unwrap().len() <= NAME_BYTES_MAX,
                "{length}"
            );
        }
    }

    #[test]
    fn block_devices_are_refused_as_output() {
        let Some(device) = ["/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/loop0"]
            .map(Path::new)
            .into_iter()
            .find(|path| path.exists())
        else {
            return;
        };
        let error = Sink::find(device).unwrap_err();
        assert!(error.errno.is_none() && error.why.contains("block device"));
    }

    /// What the path may be before and after the exchange.
    #[derive(Debug, Clone, Copy)]
    enum Thing {
        Nothing,
        File,
        /// Of this user, to a file of this user.
        Link,
        /// Of another user, to the file that must not change.
        Trap,
        /// Of another user, to a name that does not exist.
        DanglingTrap,
    }

    fn put(thing: Thing, folder: &Path, outside: &Path) {
        let path = folder.join("out.json");
        let _ = std::fs::remove_file(&path);
        match thing {
            Thing::Nothing => {}
            Thing::File => std::fs::write(&path, "old").unwrap(),
            Thing::Link => symlink(folder.join("own"), &path).unwrap(),
            Thing::Trap => symlink_of_nobody(&outside.join("precious"), &path),
            Thing::DanglingTrap => symlink_of_nobody(&outside.join("missing"), &path),
        }
    }

    fn symlink_of_nobody(target: &Path, path: &Path) {
        symlink(target, path).unwrap();
        lchown(path, Some(65534), None).unwrap();
    }

    #[test]
    fn output_never_follows_a_foreign_link_whenever_it_appears() {
        if !geteuid().is_root() {
            eprintln!("SKIPPED: output_never_follows_a_foreign_link_whenever_it_appears: root");
            return;
        }
        // A directory like /tmp, and the home of another user.
        for (mode, owner) in [(0o1777, 0), (0o755, 65534)] {
            never_follows_a_foreign_link(mode, owner);
        }
    }

    fn never_follows_a_foreign_link(mode: u32, owner: u32) {
        let (outside, shared) = (place(), place());
        let precious = outside.path().join("precious");
        std::fs::write(&precious, "precious").unwrap();
        let before = std::fs::metadata(&precious).unwrap().ino();
        std::fs::set_permissions(shared.path(), PermissionsExt::from_mode(mode)).unwrap();
        chown(shared.path(), Some(owner), None).unwrap();
        std::fs::write(shared.path().join("own"), "own").unwrap();
        let things = [Thing::Nothing, Thing::File, Thing::Link];
        let traps = [Thing::Trap, Thing::DanglingTrap];
        let pairs = things
            .iter()
            .flat_map(|one| traps.map(|other| (*one, other)));
        for (one, other) in pairs.flat_map(|(one, other)| [(one, other), (other, one)]) {
            let mut steps = 0;
            for step in 1..STEPS_MAX {
                put(one, shared.path(), outside.path());
                let folders = (shared.path().to_owned(), outside.path().to_owned());
                steps::act_before(step, move || put(other, &folders.0, &folders.1));
                let _ = save(&shared.path().join("out.json"));
                if !steps::was_reached() {
                    break;
                }
                steps = step;
                let now = std::fs::metadata(&precious).unwrap().ino();
                let content = std::fs::read_to_string(&precious).unwrap();
                assert_eq!(
                    (now, content.as_str()),
                    (before, "precious"),
                    "{one:?} {step}"
                );
                let names = std::fs::read_dir(outside.path()).unwrap().count();
                assert_eq!(names, 1, "{one:?} {other:?} {step}");
            }
            assert!(steps >= 1, "{one:?} {other:?}");
        }
    }

    #[test]
    fn output_stays_in_its_directory_when_that_is_exchanged() {
        for step in 1..STEPS_MAX {
            let place = place();
            let (folder, trap) = (place.path().join("folder"), place.path().join("trap"));
            std::fs::create_dir(&folder).unwrap();
            std::fs::create_dir(&trap).unwrap();
            std::fs::write(folder.join("out.json"), "old").unwrap();
            std::fs::write(trap.join("out.json"), "precious").unwrap();
            let moved = (folder.clone(), place.path().join("moved"), trap.clone());
            // The first steps look at the path for the first time.
            steps::act_before(step + 2, move || {
                std::fs::rename(&moved.0, &moved.1).unwrap();
                symlink(&moved.2, &moved.0).unwrap();
            });
            let _ = save(&folder.join("out.json"));
            if !steps::was_reached() {
                assert!(step > 2);
                break;
            }
            let content = std::fs::read_to_string(trap.join("out.json")).unwrap();
            assert_eq!(content, "precious", "{step}");
        }
    }

    #[test]
    fn file_in_the_place_of_the_unfinished_one_stays() {
        let place = place();
        let path = place.path().join("out.json");
        let unfinished = temporary_path(&path);
        for step in 1..STEPS_MAX {
            let _ = std::fs::remove_file(&path);
            let theirs = (unfinished.clone(), place.path().join("theirs"));
            std::fs::write(&theirs.1, "precious").unwrap();
            steps::act_before(step, move || {
                let _ = std::fs::rename(&theirs.1, &theirs.0);
            });
            let _ = save(&path);
            if !steps::was_reached() {
                assert!(step > 2);
                break;
            }
            let content = std::fs::read_to_string(&unfinished).unwrap();
            assert_eq!(content, "precious", "{step}");
            std::fs::remove_file(&unfinished).unwrap();
        }
    }

    #[test]
    fn replaced_output_keeps_owner_and_mode() {
        let place = place();
        let path = place.path().join("out.json");
        for (mode, owner) in [(0o600, None), (0o444, None), (0o640, Some(65534))] {
            if owner.is_some() && !geteuid().is_root() {
                continue;
            }
            std::fs::write(&path, "old").unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            chown(&path, owner, owner).unwrap();
            let before = std::fs::metadata(&path).unwrap();
            save(&path).unwrap();
            let after = std::fs::metadata(&path).unwrap();
            assert_eq!(after.uid(), before.uid());
            assert_eq!(after.gid(), before.gid());
            assert_eq!(after.mode(), before.mode());
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
            std::fs::remove_file(&path).unwrap();
        }
    }
}
