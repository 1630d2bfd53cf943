//! Differences between a job file and its translation: each is reported once, with the jobs that it
//! concerns. Pure.

use std::collections::BTreeMap;

/// A note names up to this many jobs, and counts the others.
const JOBS_NAMED_MAX: usize = 3;

/// Several files of a job.
pub(crate) const FILES: &str = "the files of a job (nrfiles) become one of their total size; fio \
                                opens each and switches files after each request";

/// All notes about one file.
#[derive(Debug, Clone, Default)]
pub(crate) struct TranslationNotes {
    /// Differences from fio, with the jobs that they concern.
    jobs: Vec<(&'static str, Vec<String>)>,
    ignored: BTreeMap<&'static str, Vec<&'static str>>,
    lines: Vec<String>,
}

impl TranslationNotes {
    /// Adds a note about a job.
    pub(crate) fn add(&mut self, note: &'static str, job: &str) {
        match self.jobs.iter_mut().find(|(other, _)| *other == note) {
            Some((_, jobs)) if jobs.iter().any(|other| other == job) => {}
            Some((_, jobs)) => jobs.push(job.to_owned()),
            None => self.jobs.push((note, vec![job.to_owned()])),
        }
    }

    /// Adds a sentence about the whole file.
    pub(crate) fn add_line(&mut self, line: String) {
        self.lines.push(line);
    }

    /// Adds an option that is ignored, and why it changes nothing.
    pub(crate) fn ignore_option(&mut self, option: &'static str, why: &'static str) {
        let options = self.ignored.entry(why).or_default();
        if !options.contains(&option) {
            options.push(option);
        }
    }

    /// The notes as lines. One that concerns all jobs names none of them; `count` is their number.
    pub(crate) fn lines(&self, count: usize) -> Vec<String> {
        let mut lines = self.lines.clone();
        for (note, jobs) in &self.jobs {
            lines.push(match jobs.len() {
                all if all == count => (*note).to_owned(),
                few if few <= JOBS_NAMED_MAX => format!("{}: {note}", jobs.join(", ")),
                many => {
                    let named = jobs[..JOBS_NAMED_MAX].join(", ");
                    format!("{named} and {} more: {note}", many - JOBS_NAMED_MAX)
                }
            });
        }
        let reasons = self.ignored.iter();
        let reasons = reasons.map(|(why, options)| format!("{} ({why})", options.join(", ")));
        let reasons = reasons.collect::<Vec<_>>().join("; ");
        if !reasons.is_empty() {
            let what = "ignored, because they do not change the load";
            lines.push(format!("{what}: {reasons}"));
        }
        lines
    }
}
