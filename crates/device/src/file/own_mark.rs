//! Marks a file that diskproof made under a name, or overwrote later, and recognises it as long as
//! nothing has changed it since. Such a file holds no data of anyone else, so it may be overwritten
//! again.
//!
//! The mark is an extended attribute with the inode, the size and the time of the last change of
//! content, and with the time at which it was set. So neither a copy nor a file with new data has
//! it, nor one whose time was set back (`touch -r`). The marked time of the content lies before any
//! write: see [`set_content_time_back`].

use rustix::fs::{
    Stat, Timespec, Timestamps, UTIME_OMIT, XattrFlags, fgetxattr, fsetxattr, fstat, futimens,
    lgetxattr, lstat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::os::fd::BorrowedFd;
use std::path::Path;

/// The name of the attribute. It stays on users' files: a change of it, or of the text, makes their
/// files foreign to the next version.
const NAME: &str = "user.diskproof.own";
/// A mark is read up to here; none is longer.
const BYTES_MAX: usize = 160;
const NS_PER_S: i128 = 1_000_000_000;
/// The times that writing the mark may take, in ns; the first that is enough is part of the mark.
/// Writing it changes the inode's ctime, so that the mark cannot name that time exactly, only one
/// before and a limit.
const MARKING_NS: [i128; 3] = [10_000_000, 100_000_000, NS_PER_S];
/// The marked time of the content lies so far before the last write. Filesystems keep times in
/// steps: ext4 with inodes of 128 bytes in whole seconds, others as the kernel's clock ticks.
const SET_BACK_S: i64 = 2;
const MARKED: &str = " marked ";
const WITHIN: &str = " within ";

/// The part of the mark that names the file and its content.
fn content(stat: &Stat) -> String {
    format!(
        "inode {} size {} changed {}.{:09}",
        stat.st_ino, stat.st_size, stat.st_mtime, stat.st_mtime_nsec
    )
}

/// The time of the last change of anything, which no program can set.
fn changed_ns(stat: &Stat) -> i128 {
    i128::from(stat.st_ctime) * NS_PER_S + i128::from(stat.st_ctime_nsec)
}

/// Marks the file as it is now. Fails with EFBIG where it is larger than what was ours to write,
/// because another program added to it, and with ETIMEDOUT where no mark was valid in time.
/// Filesystems without extended attributes refuse with ENOTSUP.
pub(crate) fn set(fd: BorrowedFd<'_>, size_max: u64) -> Result<(), Errno> {
    set_content_time_back(fd)?;
    // The first writing shows what the filesystem's own clock says.
    write(fd, "")?;
    for within_ns in MARKING_NS {
        let stat = fstat(fd)?;
        if u64::try_from(stat.st_size).is_ok_and(|size| size > size_max) {
            return Err(Errno::FBIG);
        }
        let (content, marked_ns) = (content(&stat), changed_ns(&stat));
        write(
            fd,
            &format!("{content}{MARKED}{marked_ns}{WITHIN}{within_ns}"),
        )?;
        if is_valid(fd) {
            return Ok(());
        }
    }
    Err(Errno::TIMEDOUT)
}

/// Sets the time of the last change of content back. A write of another program in the same step of
/// the filesystem's clock as the last one of ours would otherwise leave it as it was.
fn set_content_time_back(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    let stat = fstat(fd)?;
    let times = Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: stat.st_mtime - SET_BACK_S,
            tv_nsec: 0,
        },
    };
    futimens(fd, &times)
}

fn write(fd: BorrowedFd<'_>, text: &str) -> Result<(), Errno> {
    fsetxattr(fd, NAME, text.as_bytes(), XattrFlags::empty())
}

/// True if the file has the mark of its present state, and belongs to this user.
pub(crate) fn is_valid(fd: BorrowedFd<'_>) -> bool {
    let mut mark = [0; BYTES_MAX];
    let bytes = fgetxattr(fd, NAME, &mut mark);
    belongs(bytes.map(|bytes| &mark[..bytes]), fstat(fd))
}

/// As [`is_valid`], for a file that is not open. A symlink has no such mark.
pub(crate) fn is_valid_at(path: &Path) -> bool {
    let mut mark = [0; BYTES_MAX];
    let bytes = lgetxattr(path, NAME, &mut mark);
    belongs(bytes.map(|bytes| &mark[..bytes]), lstat(path))
}

fn belongs(mark: Result<&[u8], Errno>, stat: Result<Stat, Errno>) -> bool {
    let (Ok(mark), Ok(stat)) = (mark, stat) else {
        return false;
    };
    stat.st_uid == geteuid().as_raw() && is_mark_of(mark, &stat) == Some(true)
}

/// True if the mark is that of the file's present state; `None` where it is no mark at all.
fn is_mark_of(mark: &[u8], stat: &Stat) -> Option<bool> {
    let (content_then, time) = std::str::from_utf8(mark).ok()?.split_once(MARKED)?;
    let (marked_ns, within_ns) = time.split_once(WITHIN)?;
    let (marked_ns, within_ns): (i128, i128) = (marked_ns.parse().ok()?, within_ns.parse().ok()?);
    let since_ns = changed_ns(stat).checked_sub(marked_ns)?;
    let is_as_marked = (0..=within_ns).contains(&since_ns) && MARKING_NS.contains(&within_ns);
    Some(is_as_marked && content_then == content(stat))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, OpenOptions};
    use std::io::Write as _;
    use std::os::fd::AsFd as _;

    /// Within the time that the mark allows for its own writing, a change whose time is set back is
    /// not seen. The filesystem's clock has ticks of some milliseconds.
    fn wait_for_the_end_of_marking(path: &Path) {
        let mut mark = [0; BYTES_MAX];
        let bytes = lgetxattr(path, NAME, &mut mark).unwrap();
        let text = std::str::from_utf8(&mark[..bytes]).unwrap();
        let (_, within_ns) = text.split_once(WITHIN).unwrap();
        let within = std::time::Duration::from_nanos(within_ns.parse().unwrap());
        std::thread::sleep(within + std::time::Duration::from_millis(50));
    }

    #[test]
    fn mark_is_lost_by_any_change_and_by_copying() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = place.path().join("file");
        let mut file = File::create(&path).unwrap();
        file.write_all(&[1; 4096]).unwrap();
        assert!(!is_valid(file.as_fd()));
        if let Err(errno) = set(file.as_fd(), 4096) {
            println!("SKIPPED: mark_is_lost_by_any_change_and_by_copying: {errno}");
            return;
        }
        assert!(is_valid(file.as_fd()));
        let copy = place.path().join("copy");
        let copied = std::process::Command::new("cp")
            .args(["-a", "--preserve=all"])
            .args([&path, &copy])
            .status();
        assert!(copied.unwrap().success());
        assert!(!is_valid(File::open(&copy).unwrap().as_fd()));
        assert!(is_valid_at(&path) && !is_valid_at(&copy));
        let link = place.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(!is_valid_at(&link));
        let mut other = OpenOptions::new().write(true).open(&path).unwrap();
        // At once: the clock of the filesystem need not have ticked since the mark.
        other.write_all(b"x").unwrap();
        assert!(!is_valid(file.as_fd()));
        set(file.as_fd(), 4096).unwrap();
        wait_for_the_end_of_marking(&path);
        let before = file.metadata().unwrap().modified().unwrap();
        other.write_all(b"x").unwrap();
        assert!(!is_valid(file.as_fd()));
        // As touch -r does.
        other.set_modified(before).unwrap();
        assert_eq!(file.metadata().unwrap().modified().unwrap(), before);
        assert!(!is_valid(file.as_fd()));
        set(file.as_fd(), 4096).unwrap();
        other.set_len(8192).unwrap();
        assert!(!is_valid(file.as_fd()));
        assert_eq!(set(file.as_fd(), 4096), Err(Errno::FBIG));
        assert!(!is_valid(file.as_fd()));
    }
}
