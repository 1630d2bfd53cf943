//! Names in the directory of many small files: made from numbers, and recognised again in what a
//! killed run left. Touches no filesystem.

use std::ffi::CStr;

const FOLDER_PREFIX: u8 = b'd';
const DIGITS: &[u8; 16] = b"0123456789abcdef";
/// A letter, 16 digits and the zero byte.
const NAME_BYTES: usize = 18;

/// Which of its two names a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameState {
    /// The one with which it was created.
    First,
    /// The one that it got by a rename.
    Renamed,
}

/// The name of a file: its directory, a number and which of its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileName {
    /// Index of its directory.
    pub folder: usize,
    /// Its number, which sorts as the name does.
    pub number: u64,
    /// Which of its names.
    pub state: NameState,
}

impl FileName {
    /// The same file after its rename.
    pub(crate) fn renamed(self) -> Self {
        Self {
            state: NameState::Renamed,
            ..self
        }
    }

    pub(crate) fn bytes(self) -> [u8; NAME_BYTES] {
        let mut name = [0; NAME_BYTES];
        name[0] = match self.state {
            NameState::First => b'a',
            NameState::Renamed => b'b',
        };
        for (place, byte) in name[1..NAME_BYTES - 1].iter_mut().enumerate() {
            *byte = DIGITS[(self.number >> (60 - 4 * place)) as usize & 15];
        }
        name
    }
}

/// The name as system calls take it.
pub(crate) fn text(name: &[u8; NAME_BYTES]) -> &CStr {
    CStr::from_bytes_until_nul(name).expect("the last byte of a name stays zero")
}

/// The name of a directory inside.
pub(crate) fn folder_name(index: usize) -> String {
    format!("{}{index:07}", char::from(FOLDER_PREFIX))
}

/// Whether a directory inside may be one of ours.
pub(crate) fn is_folder_name(name: &[u8]) -> bool {
    matches!(name, [FOLDER_PREFIX, digits @ ..]
        if digits.len() == 7 && digits.iter().all(u8::is_ascii_digit))
}

/// Whether a file may be one of ours.
pub(crate) fn is_file_name(name: &[u8]) -> bool {
    matches!(name, [b'a' | b'b', digits @ ..]
        if digits.len() == 16 && digits.iter().all(|digit| DIGITS.contains(digit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_as_their_numbers_and_are_recognised() {
        let of = |number| {
            let name = FileName {
                folder: 0,
                number,
                state: NameState::First,
            };
            text(&name.bytes()).to_owned()
        };
        assert_eq!(of(0x12ab).to_str(), Ok("a00000000000012ab"));
        assert!(of(9) < of(10) && of(u64::MAX - 1) < of(u64::MAX));
        assert!(is_file_name(of(7).as_bytes()) && is_folder_name(folder_name(3).as_bytes()));
        for wrong in ["", "a", "a12", "c0000000000000000", "a000000000000000G"] {
            assert!(!is_file_name(wrong.as_bytes()), "{wrong}");
        }
        for wrong in ["", "d", "d00000001", "d000000x", "e0000001"] {
            assert!(!is_folder_name(wrong.as_bytes()), "{wrong}");
        }
    }
}
