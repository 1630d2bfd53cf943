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
                few if few <= JOBS_NAMED_MAX => format!("{}: {}", jobs.join(", "), note),
                many => format!(
                    "{} and {} more: {}",
                    jobs[..JOBS_NAMED_MAX].join(", "),
                    many - JOBS_NAMED_MAX,
                    note
                ),
            });
        }
        if !self.ignored.is_empty() {
            let reasons: Vec<String> = self
                .ignored
                .iter()
                .map(|(why, options)| format!("{} ({why})", options.join(", ")))
                .collect();
            lines.push(format!(
                "ignored, because they do not change the load: {}",
                reasons.join("; ")
            ));
        }
        lines
    }
}
