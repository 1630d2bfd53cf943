//! Keeps the state of an acceptance test that was stopped in a journal beside the history, from
//! which a later run goes on.

use super::document::saved_record;
use super::place::{history_answer, open_if_there};
use crate::failure::Failure;
use diskproof_history::{AcceptJournal, HistoryPlace};
use diskproof_model::accept::AcceptMeasurement;
use diskproof_model::target::{TargetIdentity, TargetKind};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The version of the journal's shape. A program refuses a journal with another one, so a renamed
/// or removed field needs a new number.
const FORMAT: &str = "diskproof.accept/1";
/// The most bytes of a disk's facts in the name of its journal: a name has room for 255.
const NAME_BYTES_MAX: usize = 60;

/// The facts by which a later run recognises a disk, or a file that stands for one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DiskKey {
    model: Option<String>,
    serial: Option<String>,
    /// The file of a loop device, or the path of a file or of a device without a serial number.
    place: Option<String>,
    size_bytes: u64,
}

impl DiskKey {
    /// The key of a target.
    pub(crate) fn new(identity: &TargetIdentity) -> Self {
        let device = identity.layers.first();
        let serial = device.and_then(|device| device.serial.clone());
        let backing_file = device.and_then(|device| device.backing_file.clone());
        let place = match (identity.kind, &serial) {
            (TargetKind::BlockDevice, Some(_)) => None,
            (TargetKind::BlockDevice, None) => {
                Some(backing_file.unwrap_or_else(|| identity.path.clone()))
            }
            // A disk holds many files.
            (TargetKind::Directory | TargetKind::File, _) => Some(identity.path.clone()),
        };
        Self {
            model: device.and_then(|device| device.model.clone()),
            place,
            serial,
            size_bytes: identity.size_bytes,
        }
    }

    /// The facts as a part of the name of a file.
    fn file_name(&self) -> String {
        let mut name = String::new();
        for text in [&self.model, &self.serial, &self.place]
            .into_iter()
            .flatten()
        {
            for letter in text.chars() {
                name.push(if letter.is_ascii_alphanumeric() {
                    letter
                } else {
                    '_'
                });
            }
            name.push('-');
        }
        debug_assert!(name.is_ascii(), "{name} is cut at any byte");
        // The end of a path says more than its beginning.
        let skipped_bytes = name.len().saturating_sub(NAME_BYTES_MAX);
        format!("{}{}", &name[skipped_bytes..], self.size_bytes)
    }
}

/// A test that was stopped, as its journal stores it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct SavedTest {
    format: String,
    disk: DiskKey,
    measured: AcceptMeasurement,
    /// The run that kept it. Where the history has the complete record of that run, only the
    /// removal of the journal is missing.
    #[serde(default)]
    run_id: String,
}

/// The proof that the record of a run is in the history. A save alone makes one, so nothing that
/// the record replaces can be removed before it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InHistory(());

impl InHistory {
    pub(super) fn new() -> Self {
        Self(())
    }
}

/// The journal of the acceptance test of a disk.
#[derive(Debug, Clone)]
pub(crate) struct TestJournal {
    journal: Arc<AcceptJournal>,
    disk: DiskKey,
    history: HistoryPlace,
}

impl TestJournal {
    /// The journal of this disk, beside a history that answers.
    pub(super) fn beside(place: &HistoryPlace, identity: &TargetIdentity) -> Result<Self, Failure> {
        let disk = DiskKey::new(identity);
        let name = disk.file_name();
        let journal = history_answer(place, move |place| AcceptJournal::for_disk(place, &name))?;
        Ok(Self {
            journal: Arc::new(journal),
            disk,
            history: place.clone(),
        })
    }

    /// The measurement of an earlier run that did not come to its end; `None` where there was none.
    /// Fails for a journal of another disk.
    pub(crate) fn read(&self) -> Result<Option<AcceptMeasurement>, Failure> {
        let Some(text) = self.journal.read()? else {
            return Ok(None);
        };
        let why = match serde_json::from_str::<SavedTest>(&text) {
            Err(_) => "is damaged".to_owned(),
            Ok(saved) if saved.format != FORMAT => {
                format!("has the format {}, not {FORMAT}", saved.format)
            }
            Ok(saved) if saved.disk != self.disk => "is of another disk".to_owned(),
            Ok(saved) if self.has_record_of(&saved.run_id) => return Ok(None),
            Ok(saved) => return Ok(Some(saved.measured)),
        };
        let path = self.journal.path().display();
        Err(Failure::Unconfirmed(format!(
            "{path}: this journal of an acceptance test {why}. Remove it, or begin anew with \
             --restart"
        )))
    }

    /// Returns `true` if the history has the record of this run, whose test is complete.
    fn has_record_of(&self, run_id: &str) -> bool {
        let Ok(Some(history)) = open_if_there(&self.history) else {
            return false;
        };
        let Some(record) = saved_record(&history, run_id) else {
            return false;
        };
        match record.accept() {
            Some(accept) => accept.data.finished && !record.partial,
            None => false,
        }
    }

    /// Keeps the measurement that the run with this id has so far, in place of the earlier one.
    pub(crate) fn keep(&self, measured: &AcceptMeasurement, run_id: &str) -> Result<(), Failure> {
        let saved = SavedTest {
            format: FORMAT.to_owned(),
            disk: self.disk.clone(),
            measured: measured.clone(),
            run_id: run_id.to_owned(),
        };
        let text = serde_json::to_string(&saved).map_err(|error| {
            Failure::Unconfirmed(format!("the journal cannot be written: {error}"))
        })?;
        Ok(self.journal.replace(&text)?)
    }

    /// Removes the journal of a test that is over: its record takes the place of the journal.
    pub(crate) fn end(&self, _saved: InHistory) -> Result<(), Failure> {
        Ok(self.journal.end()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::target::Layer;

    fn disk(kind: TargetKind, serial: Option<&str>) -> TargetIdentity {
        let mut identity = diskproof_device::probe(std::path::Path::new("/")).unwrap();
        "/dev/sdä".clone_into(&mut identity.path);
        identity.kind = kind;
        identity.size_bytes = 1000;
        identity.layers = vec![Layer {
            model: Some("WD Red".to_owned()),
            serial: serial.map(str::to_owned),
            ..Layer::default()
        }];
        identity
    }

    #[test]
    fn device_with_a_serial_number_is_known_without_its_path() {
        let key = DiskKey::new(&disk(TargetKind::BlockDevice, Some("S1")));
        assert_eq!(key.place, None);
        assert_eq!(key.file_name(), "WD_Red-S1-1000");
    }

    /// Each letter that a file name should not have becomes one underscore.
    #[test]
    fn device_without_a_serial_number_and_a_file_are_known_by_their_path() {
        let without_serial = DiskKey::new(&disk(TargetKind::BlockDevice, None));
        assert_eq!(without_serial.file_name(), "WD_Red-_dev_sd_-1000");
        let file = DiskKey::new(&disk(TargetKind::File, Some("S1")));
        assert_eq!(file.file_name(), "WD_Red-S1-_dev_sd_-1000");
    }

    #[test]
    fn long_name_keeps_its_end() {
        let mut target = disk(TargetKind::File, None);
        target.path = format!("/{}/disk.img", "a".repeat(100));
        let name = DiskKey::new(&target).file_name();
        assert_eq!(name.len(), NAME_BYTES_MAX + "1000".len());
        assert!(name.ends_with("a_disk_img-1000"), "{name}");
    }
}
