//! Writes and reads the state of each piece of an acceptance test after its read, as a short text:
//! runs of letters with their lengths, such as `119209R` for a good disk.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

/// The state of a piece: the fault of most of its bad bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PieceState {
    /// The piece was not read yet.
    Pending,
    /// Every byte came back as it was written.
    Right,
    /// None of it came back.
    Lost,
    /// A part of it did not come back.
    PartlyLost,
    /// Holds what was written to another address.
    Displaced,
    /// A part of it holds what was written elsewhere.
    PartlyDisplaced,
    /// Holds wrong bits.
    Flipped,
    /// None of it could be written or read.
    Failed,
    /// A part of it could not be written or read.
    PartlyFailed,
}

/// Every state with its letter. Records hold the letters: with another letter, a saved test would
/// be read wrongly or not at all.
const LETTERS: [(PieceState, char); 9] = [
    (PieceState::Pending, '-'),
    (PieceState::Right, 'R'),
    (PieceState::Lost, 'L'),
    (PieceState::PartlyLost, 'l'),
    (PieceState::Displaced, 'D'),
    (PieceState::PartlyDisplaced, 'd'),
    (PieceState::Flipped, 'f'),
    (PieceState::Failed, 'E'),
    (PieceState::PartlyFailed, 'e'),
];

impl PieceState {
    fn letter(self) -> char {
        for (state, letter) in LETTERS {
            if state == self {
                return letter;
            }
        }
        '-'
    }

    fn from_letter(wanted: char) -> Option<Self> {
        for (state, letter) in LETTERS {
            if letter == wanted {
                return Some(state);
            }
        }
        None
    }

    /// True if it was read, and something in it was wrong.
    pub fn is_bad(self) -> bool {
        !matches!(self, Self::Pending | Self::Right)
    }
}

/// The most pieces of a record that is read: of 64 MiB each they are 1 PiB. Whoever wrote the
/// record must not decide how much memory it takes.
pub(crate) const PIECES_MAX: usize = 1 << 24;

/// The states of the pieces, in the order in which they are written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PieceStates(pub Vec<PieceState>);

impl PieceStates {
    /// The states of so many pieces that were not read yet.
    pub fn pending(count: usize) -> Self {
        Self(vec![PieceState::Pending; count])
    }

    /// The text of the states: a letter for each run of equal states, after the length of a run of
    /// several.
    fn text(&self) -> String {
        let mut text = String::new();
        for run in self.0.chunk_by(|one, other| one == other) {
            if run.len() > 1 {
                text.push_str(&run.len().to_string());
            }
            text.push(run[0].letter());
        }
        text
    }

    /// The states of such a text; `None` of any other text, and of too many states.
    fn parsed(text: &str) -> Option<Self> {
        let mut states = Vec::new();
        let mut length: Option<usize> = None;
        for letter in text.chars() {
            if let Some(digit) = letter.to_digit(10) {
                let tens = length.unwrap_or(0).checked_mul(10)?;
                length = Some(tens.checked_add(digit as usize)?);
                continue;
            }
            let end = states.len().checked_add(length.take().unwrap_or(1))?;
            if end > PIECES_MAX {
                return None;
            }
            states.resize(end, PieceState::from_letter(letter)?);
        }
        match length {
            None => Some(Self(states)),
            Some(_) => None,
        }
    }
}

impl Serialize for PieceStates {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

impl<'de> Deserialize<'de> for PieceStates {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parsed(&text).ok_or_else(|| {
            D::Error::custom("invalid states of pieces: runs such as '12R3L' are expected")
        })
    }
}

impl JsonSchema for PieceStates {
    fn schema_name() -> Cow<'static, str> {
        "PieceStates".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_back_as_they_were_written() {
        let mut states = PieceStates::pending(2);
        states.0.extend([PieceState::Right; 12]);
        states.0.push(PieceState::Lost);
        let text = serde_json::to_string(&states).unwrap();
        assert_eq!(text, "\"2-12RL\"");
        assert_eq!(serde_json::from_str::<PieceStates>(&text).unwrap(), states);
        for bad in [
            "\"12\"",
            "\"R?\"",
            "\"99999999999999999999R\"",
            "\"18446744073709551616R\"",
            "\"R18446744073709551615R\"",
            "\"17179869184R\"",
            "7",
        ] {
            assert!(serde_json::from_str::<PieceStates>(bad).is_err(), "{bad}");
        }
    }
}
