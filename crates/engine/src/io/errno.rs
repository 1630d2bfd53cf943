//! Names of the errors that requests end with, for the record.

use diskproof_model::errno;

/// Takes the place of an errno where a read found the end of the file inside the span.
pub(crate) const END_OF_FILE: i32 = -1;

/// `EIO` for 5, and so on; `errno 123` for an error without a known name.
pub(crate) fn errno_name(errno: i32) -> String {
    if errno == END_OF_FILE {
        return "EOF".to_owned();
    }
    let known = u32::try_from(errno).ok().and_then(errno::name);
    known.map_or_else(|| format!("errno {errno}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errno_names_read_back_as_their_numbers() {
        // 133, EHWPOISON, is the last one of Linux.
        for errno in 1..=133 {
            assert_eq!(
                diskproof_model::errno::number(&errno_name(errno)),
                Some(errno as u32),
                "{}",
                errno_name(errno)
            );
        }
        assert_eq!(
            diskproof_model::errno::number(&errno_name(END_OF_FILE)),
            Some(libc::EIO as u32)
        );
    }
}
