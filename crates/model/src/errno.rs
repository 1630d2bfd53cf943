//! What the errors of I/O mean and what to do about them: one table for the engine, the program and
//! the findings. Knows the kernel's names of errors, and the engine's `EOF`.

/// An error, what it means and what to do, both as clauses.
struct Entry {
    names: &'static [&'static str],
    meaning: &'static str,
    remedy: &'static str,
}

const DISK: &str = "the disk or the path to it is failing: save the data, see the kernel log \
                    (dmesg) and smartctl -a, and do not rely on the figures";

const TABLE: &[Entry] = &[
    Entry {
        names: &["EIO"],
        meaning: "the medium or the path to it failed",
        remedy: DISK,
    },
    Entry {
        names: &["EREMOTEIO"],
        meaning: "the device refused the request",
        remedy: DISK,
    },
    Entry {
        names: &["EILSEQ", "EBADMSG"],
        meaning: "a checksum did not match",
        remedy: DISK,
    },
    Entry {
        names: &["ETIMEDOUT"],
        meaning: "the device did not answer in time",
        remedy: DISK,
    },
    Entry {
        names: &["ENODEV", "ENXIO"],
        meaning: "the device went away",
        remedy: "see the kernel log (dmesg) for the reason, and check the cable and the power",
    },
    Entry {
        names: &["EROFS"],
        meaning: "the filesystem became read-only",
        remedy: "see the kernel log (dmesg) for why the filesystem became read-only, usually a \
                 disk failure; save the data before you check the filesystem",
    },
    Entry {
        names: &["ENOSPC"],
        meaning: "no space left",
        remedy: "the disk is full: free space, or use a smaller --size",
    },
    Entry {
        names: &["EDQUOT"],
        meaning: "the quota is used up",
        remedy: "the quota is exhausted: free space, raise it, or use a smaller --size",
    },
    Entry {
        names: &["EFBIG"],
        meaning: "the file size limit is reached",
        remedy: "raise the file size limit (ulimit -f), or use a smaller --size",
    },
    Entry {
        names: &["EAGAIN", "ECANCELED"],
        meaning: "the kernel had no thread or memory for the request",
        remedy: "raise the limit on processes and threads (ulimit -u), or use --engine sync",
    },
    Entry {
        names: &["EOF"],
        meaning: "the target is shorter than its reported size",
        remedy: "make sure that nothing truncates the target during the measurement",
    },
    Entry {
        names: &["EINVAL"],
        meaning: "the kernel refused the size or the alignment",
        remedy: "use a block size that is a multiple of the device's logical block",
    },
];

/// For errors without an entry: errno(3) explains them, and the kernel log has details.
const OTHER: Entry = Entry {
    names: &[],
    meaning: "see errno(3)",
    remedy: "see the kernel log (dmesg)",
};

/// Numbers of the names that the engine gives to errors: those of Linux on all machines but Alpha,
/// MIPS, PA-RISC and SPARC.
const NUMBERS: [(&str, u32); 31] = [
    ("EPERM", 1),
    ("EINTR", 4),
    ("EIO", 5),
    ("ENXIO", 6),
    ("EBADF", 9),
    ("EAGAIN", 11),
    ("ENOMEM", 12),
    ("EACCES", 13),
    ("EFAULT", 14),
    ("EBUSY", 16),
    ("ENODEV", 19),
    ("EINVAL", 22),
    ("EFBIG", 27),
    ("ENOSPC", 28),
    ("EROFS", 30),
    ("ENOTCONN", 107),
    ("ECONNABORTED", 103),
    ("ENOLINK", 67),
    ("EBADE", 52),
    ("ETIME", 62),
    ("ETIMEDOUT", 110),
    ("EOPNOTSUPP", 95),
    ("EDQUOT", 122),
    ("EREMOTEIO", 121),
    ("EILSEQ", 84),
    ("ENODATA", 61),
    ("EBADMSG", 74),
    ("EUCLEAN", 117),
    ("ESTALE", 116),
    ("ECANCELED", 125),
    ("EOF", 5),
];

/// The number of an error, for formats that know numbers only: also of `errno 123`. `EOF` has no
/// number of its own and counts as EIO, as in fio; `None` for an unknown name.
pub fn number(errno: &str) -> Option<u32> {
    let known = NUMBERS
        .iter()
        .find(|(name, _)| *name == errno)
        .map(|(_, number)| *number);
    known.or_else(|| errno.strip_prefix("errno ")?.parse().ok())
}

/// The name of an error number; `None` for a number without an entry in the table.
pub fn name(number: u32) -> Option<&'static str> {
    NUMBERS
        .iter()
        .find(|(_, known)| *known == number)
        .map(|(name, _)| *name)
}

fn entry(errno: &str) -> &'static Entry {
    TABLE
        .iter()
        .find(|entry| entry.names.contains(&errno))
        .unwrap_or(&OTHER)
}

/// What an error means, as a clause: `no space left`.
pub fn meaning(errno: &str) -> &'static str {
    entry(errno).meaning
}

/// What to do about these errors, each thing once and in the order of the table, as clauses with
/// semicolons between.
pub fn remedy<'a>(errnos: impl IntoIterator<Item = &'a str>) -> String {
    let seen: Vec<&str> = errnos
        .into_iter()
        .map(|errno| entry(errno).remedy)
        .collect();
    let all = TABLE.iter().chain([&OTHER]).map(|entry| entry.remedy);
    let mut told: Vec<&str> = all.filter(|remedy| seen.contains(remedy)).collect();
    told.dedup();
    told.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_a_meaning_and_a_remedy() {
        assert_eq!(
            (meaning("ENOSPC"), meaning("EOWNERDEAD")),
            ("no space left", "see errno(3)")
        );
        assert_eq!(
            remedy(["ENOSPC"]),
            "the disk is full: free space, or use a smaller --size"
        );
        assert!(remedy(["EIO"]).contains("smartctl -a") && remedy(["EROFS"]).contains("read-only"));
        assert_eq!(remedy(["EOWNERDEAD"]), "see the kernel log (dmesg)");
    }

    #[test]
    fn numbers_of_names() {
        assert_eq!(
            ["EIO", "EOF", "ETIMEDOUT", "errno 133", "EVIL"].map(number),
            [Some(5), Some(5), Some(110), Some(133), None]
        );
    }

    #[test]
    fn remedy_names_each_action_once() {
        assert_eq!(
            remedy(["EIO", "ETIMEDOUT", "EIO", "ENOSPC"]),
            format!("{DISK}; {}", remedy(["ENOSPC"]))
        );
        assert_eq!(remedy([]), "");
    }

    #[test]
    fn table_names_each_error_once() {
        let names: Vec<&str> = TABLE
            .iter()
            .flat_map(|entry| entry.names)
            .copied()
            .collect();
        assert!(
            names
                .iter()
                .enumerate()
                .all(|(index, name)| !names[..index].contains(name))
        );
    }
}
