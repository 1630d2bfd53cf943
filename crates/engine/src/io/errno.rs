//! Names of the errors that requests end with, for the record.

use diskproof_model::errno;

/// Takes the place of an errno where a read found the end of the file inside the span.
pub(crate) const END_OF_FILE: i32 = -1;

/// `EIO` for 5, and so on.
pub(crate) fn errno_name(errno: i32) -> String {
    match errno {
        END_OF_FILE => errno::END_OF_FILE.to_owned(),
        errno => errno::name(errno),
    }
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
