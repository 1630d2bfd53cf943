//! Gives access to the settings of one section while it is read.

use crate::job_file::sections::{Section, Setting, last_by_name};
use crate::job_file::translation::Translation;
use diskproof_compat::fio_values::Base;
use std::collections::BTreeMap;

/// The values of `kb_base`.
pub(super) const BASES: [(&str, Base); 2] = [("1024", Base::Binary), ("1000", Base::Decimal)];

/// Reads the settings of one section.
pub(super) struct JobReader<'a> {
    /// The section whose settings are read.
    pub section: &'a Section,
    /// The last setting of each option, by its first name.
    pub given: BTreeMap<&'static str, &'a Setting>,
    /// The copies of the jobs before it.
    pub copies_before: u64,
    /// The file and the target that the section is read for, and the notes about it.
    pub translation: &'a Translation<'a>,
}

impl<'a> JobReader<'a> {
    pub(super) fn new(
        section: &'a Section,
        copies_before: u64,
        translation: &'a Translation<'_>,
    ) -> Self {
        Self {
            section,
            given: last_by_name(&section.settings),
            copies_before,
            translation,
        }
    }

    /// Adds a note about this job.
    pub(super) fn note(&self, note: &'static str) {
        self.translation.note(note, &self.section.name);
    }
}
