//! Explains the errors of I/O: their numbers, meanings and remedies, in one table for the engine,
//! the program and the findings.

/// A row of the table: errors with one meaning.
struct Entry {
    /// The names of the errors.
    names: &'static [&'static str],
    /// The meaning, as a clause.
    meaning: &'static str,
    /// What to do, as a clause.
    remedy: &'static str,
}

const fn entry(
    names: &'static [&'static str],
    meaning: &'static str,
    remedy: &'static str,
) -> Entry {
    Entry {
        names,
        meaning,
        remedy,
    }
}

// The remedies, each named by the cause or by the limit that it is about.
const DISK: &str = "the disk or the path to it is failing: save the data, see the kernel log \
                    (dmesg) and smartctl -a, and do not rely on the figures";
const GONE: &str = "see the kernel log (dmesg) for the reason, and check the cable and the power";
const RESERVED: &str = "stop the other host's use of the device, or release its reservation \
                        (sg_persist)";
const READ_ONLY: &str = "see the kernel log (dmesg) for why the filesystem became read-only, \
                         usually a disk failure; save the data before you check the filesystem";
const FULL: &str = "the disk is full: free space, or use a smaller --size";
const QUOTA: &str = "the quota is exhausted: free space, raise it, or use a smaller --size";
const LIMIT: &str = "raise the file size limit (ulimit -f), or use a smaller --size";
const THREADS: &str = "raise the limit on processes and threads (ulimit -u), or use --engine sync";
const SHORT: &str = "make sure that nothing truncates the target during the measurement";
const BLOCK: &str = "use a block size that is a multiple of the device's logical block";

/// The errors that this program explains. Those with one remedy stand together.
const TABLE: &[Entry] = &[
    entry(&["EIO"], "the medium or the path to it failed", DISK),
    entry(&["ENODATA"], "the medium failed at this place", DISK),
    entry(&["ENOLINK"], "the path to the device failed", DISK),
    entry(&["EREMOTEIO"], "the device refused the request", DISK),
    entry(&["EILSEQ", "EBADMSG"], "a checksum did not match", DISK),
    entry(
        &["ETIMEDOUT", "ETIME"],
        "the device did not answer in time",
        DISK,
    ),
    entry(&["ENODEV", "ENXIO"], "the device went away", GONE),
    entry(&["EBADE"], "another host has reserved the device", RESERVED),
    entry(&["EROFS"], "the filesystem became read-only", READ_ONLY),
    entry(&["ENOSPC"], "no space left", FULL),
    entry(&["EDQUOT"], "the quota is used up", QUOTA),
    entry(&["EFBIG"], "the file size limit is reached", LIMIT),
    entry(
        &["EAGAIN", "ECANCELED"],
        "the kernel had no thread or memory for the request",
        THREADS,
    ),
    entry(
        &["EOF"],
        "the target is shorter than its reported size",
        SHORT,
    ),
    entry(
        &["EINVAL"],
        "the kernel refused the size or the alignment",
        BLOCK,
    ),
];
/// The entry of every other error: errno(3) explains them, and the kernel log has details.
const OTHER: Entry = entry(&[], "see errno(3)", "see the kernel log (dmesg)");

/// The names of error numbers, from 1 on: those of Linux on all machines but Alpha, MIPS, PA-RISC
/// and SPARC. 41 and 58 are not used.
#[rustfmt::skip]
const NAMES: [&str; 133] = [
    "EPERM", "ENOENT", "ESRCH", "EINTR", "EIO", "ENXIO", "E2BIG", "ENOEXEC", "EBADF", "ECHILD",
    "EAGAIN", "ENOMEM", "EACCES", "EFAULT", "ENOTBLK", "EBUSY", "EEXIST", "EXDEV", "ENODEV",
    "ENOTDIR", "EISDIR", "EINVAL", "ENFILE", "EMFILE", "ENOTTY", "ETXTBSY", "EFBIG", "ENOSPC",
    "ESPIPE", "EROFS", "EMLINK", "EPIPE", "EDOM", "ERANGE", "EDEADLK", "ENAMETOOLONG", "ENOLCK",
    "ENOSYS", "ENOTEMPTY", "ELOOP", "", "ENOMSG", "EIDRM", "ECHRNG", "EL2NSYNC", "EL3HLT", "EL3RST",
    "ELNRNG", "EUNATCH", "ENOCSI", "EL2HLT", "EBADE", "EBADR", "EXFULL", "ENOANO", "EBADRQC",
    "EBADSLT", "", "EBFONT", "ENOSTR", "ENODATA", "ETIME", "ENOSR", "ENONET", "ENOPKG", "EREMOTE",
    "ENOLINK", "EADV", "ESRMNT", "ECOMM", "EPROTO", "EMULTIHOP", "EDOTDOT", "EBADMSG", "EOVERFLOW",
    "ENOTUNIQ", "EBADFD", "EREMCHG", "ELIBACC", "ELIBBAD", "ELIBSCN", "ELIBMAX", "ELIBEXEC",
    "EILSEQ", "ERESTART", "ESTRPIPE", "EUSERS", "ENOTSOCK", "EDESTADDRREQ", "EMSGSIZE",
    "EPROTOTYPE", "ENOPROTOOPT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT", "EOPNOTSUPP", "EPFNOSUPPORT",
    "EAFNOSUPPORT", "EADDRINUSE", "EADDRNOTAVAIL", "ENETDOWN", "ENETUNREACH", "ENETRESET",
    "ECONNABORTED", "ECONNRESET", "ENOBUFS", "EISCONN", "ENOTCONN", "ESHUTDOWN", "ETOOMANYREFS",
    "ETIMEDOUT", "ECONNREFUSED", "EHOSTDOWN", "EHOSTUNREACH", "EALREADY", "EINPROGRESS", "ESTALE",
    "EUCLEAN", "ENOTNAM", "ENAVAIL", "EISNAM", "EREMOTEIO", "EDQUOT", "ENOMEDIUM", "EMEDIUMTYPE",
    "ECANCELED", "ENOKEY", "EKEYEXPIRED", "EKEYREVOKED", "EKEYREJECTED", "EOWNERDEAD",
    "ENOTRECOVERABLE", "ERFKILL", "EHWPOISON",
];

/// Takes the place of an error's name where a read found the end of the file.
pub const END_OF_FILE: &str = "EOF";

/// The number of an error, for formats that know numbers only: also of `errno 123`. `EOF` has no
/// number of its own and counts as EIO, as in fio; `None` for an unknown name.
pub fn number(errno: &str) -> Option<u32> {
    const EIO: u32 = 5;
    if errno == END_OF_FILE {
        return Some(EIO);
    }
    // The numbers that are not used have empty names.
    if !errno.is_empty()
        && let Some(index) = NAMES.iter().position(|name| *name == errno)
    {
        return Some(index as u32 + 1);
    }
    errno.strip_prefix("errno ")?.parse().ok()
}

/// `EINVAL` for 22, and so on; `errno 524` for a number that manual pages do not name.
pub fn name(number: i32) -> String {
    let index = usize::try_from(number)
        .ok()
        .and_then(|number| number.checked_sub(1));
    match index.and_then(|index| NAMES.get(index)) {
        Some(name) if !name.is_empty() => (*name).to_owned(),
        _ => format!("errno {number}"),
    }
}

/// The words that tools print for an error: `No space left on device`, as strerror(3) has them.
pub fn text(errno: &str) -> String {
    if errno == END_OF_FILE {
        return "unexpected end of file".to_owned();
    }
    let Some(number) = number(errno) else {
        return errno.to_owned();
    };
    let full = std::io::Error::from_raw_os_error(number as i32).to_string();
    let end = full.rfind(" (os error").unwrap_or(full.len());
    full[..end].to_owned()
}

/// A message with the names of errors in place of their numbers: `(ENOENT)` for `(os error 2)`,
/// which Rust's standard library writes.
pub fn with_names(message: &str) -> String {
    const NUMBER: &str = "(os error ";
    let mut text = String::new();
    let mut rest = message;
    while let Some((before, after)) = rest.split_once(NUMBER) {
        text.push_str(before);
        let behind = after.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = &after[..after.len() - behind.len()];
        match digits.parse() {
            Ok(number) if behind.starts_with(')') => {
                text.push_str(&format!("({}", name(number)));
                rest = behind;
            }
            _ => {
                text.push_str(NUMBER);
                rest = after;
            }
        }
    }
    text + rest
}

/// The row of the table for the error with this name.
fn entry_named(errno: &str) -> &'static Entry {
    TABLE
        .iter()
        .find(|entry| entry.names.contains(&errno))
        .unwrap_or(&OTHER)
}

/// True for an error that a disk, or the path to it, answers a request with: the kernel's
/// translation of block statuses (`blk_errors` in block/blk-core.c). It says nothing about the way
/// in which the request was sent.
pub fn is_of_disk(errno: &str) -> bool {
    [DISK, GONE, RESERVED].contains(&entry_named(errno).remedy)
}

/// The meaning of an error as a clause: `no space left`.
pub fn meaning(errno: &str) -> &'static str {
    entry_named(errno).meaning
}

/// Remedies for these errors, each once and in the order of the table, as clauses with semicolons
/// between.
pub fn remedy<'a>(errnos: impl IntoIterator<Item = &'a str>) -> String {
    let mut wanted = Vec::new();
    for errno in errnos {
        wanted.push(entry_named(errno).remedy);
    }
    let mut remedies: Vec<&str> = Vec::new();
    for entry in TABLE.iter().chain([&OTHER]) {
        if wanted.contains(&entry.remedy) {
            remedies.push(entry.remedy);
        }
    }
    // Errors with one remedy are neighbours in the table.
    remedies.dedup();
    remedies.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn numbers_of_errors_in_a_message_become_names() {
        for (message, expected) in [
            (
                "cannot read x: No such file or directory (os error 2)",
                "cannot read x: No such file or directory (ENOENT)",
            ),
            ("a (os error 28), b (os error 5)", "a (ENOSPC), b (EIO)"),
            ("(os error 524)", "(errno 524)"),
            ("(os error x), (os error 2", "(os error x), (os error 2"),
            ("", ""),
        ] {
            assert_eq!(with_names(message), expected);
        }
    }

    #[test]
    fn every_error_has_a_meaning_and_a_remedy() {
        assert_eq!(meaning("ENOSPC"), "no space left");
        assert_eq!(meaning("EOWNERDEAD"), "see errno(3)");
        for (name, part) in [
            ("ENOSPC", "--size"),
            ("EIO", "smartctl -a"),
            ("EROFS", "read-only"),
            ("EOWNERDEAD", "dmesg"),
        ] {
            assert!(remedy([name]).contains(part), "{name}");
        }
    }

    #[test]
    fn names_and_numbers_of_all_errors_agree() {
        for errno in 1..=600 {
            assert_eq!(number(&name(errno)), Some(errno as u32), "{}", name(errno));
        }
        let names = [5, 28, 75, 122, 133, 524].map(name);
        let wanted = [
            "EIO",
            "ENOSPC",
            "EOVERFLOW",
            "EDQUOT",
            "EHWPOISON",
            "errno 524",
        ];
        assert_eq!(names, wanted);
        assert_eq!(["EOF", "EVIL", ""].map(number), [Some(5), None, None]);
        assert_eq!(text("EDQUOT"), "Disk quota exceeded");
        let mut names = TABLE.iter().flat_map(|entry| entry.names);
        assert!(names.all(|name| number(name).is_some()));
    }

    #[test]
    fn remedy_names_each_action_once() {
        let both = format!("{DISK}; {}", remedy(["ENOSPC"]));
        assert_eq!(remedy(["EIO", "ETIMEDOUT", "EIO", "ENOSPC"]), both);
        assert_eq!(remedy([]), "");
    }

    #[test]
    fn table_names_each_error_once() {
        let names: Vec<&str> = TABLE
            .iter()
            .flat_map(|entry| entry.names)
            .copied()
            .collect();
        let distinct: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(distinct.len(), names.len());
    }
}
