//! Decides when a long silence of a target is worth a line.

use crate::flags::SECOND_NS;

/// A note about a silence comes after this time; each further one after twice the time. Chosen, not
/// measured.
pub(super) const FIRST_NOTE_NS: u64 = 10 * SECOND_NS;

/// Decides when a silence is noted: after ten seconds, and again after twice the time each.
#[derive(Debug)]
pub(super) struct SilenceNotes {
    /// The length of the silence that the next note reports.
    next_ns: u64,
}

impl Default for SilenceNotes {
    fn default() -> Self {
        Self {
            next_ns: FIRST_NOTE_NS,
        }
    }
}

impl SilenceNotes {
    /// True if a silence of this length is noted now. A short one begins the notes anew.
    pub(super) fn is_due(&mut self, silence_ns: u64) -> bool {
        if silence_ns >= self.next_ns {
            self.next_ns *= 2;
            return true;
        }
        if silence_ns < FIRST_NOTE_NS {
            self.next_ns = FIRST_NOTE_NS;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_noted_after_ten_seconds_and_after_twice_the_time_each() {
        let mut notes = SilenceNotes::default();
        let mut noted = Vec::new();
        // A longer silence goes on, a shorter one is another.
        for seconds in [2, 9, 10, 11, 19, 20, 39, 40, 3, 9, 10, 19] {
            if notes.is_due(seconds * SECOND_NS) {
                noted.push(seconds);
            }
        }
        assert_eq!(noted, [10, 20, 40, 10]);
    }
}
