//! Differences between a job file and its translation: each is reported once, with the jobs that it
//! concerns. Pure.

use std::collections::BTreeMap;

/// A note names up to this many jobs, and counts the others.
const JOBS_NAMED_MAX: usize = 3;

/// A difference from fio, or a behaviour of fio that may surprise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TranslationNote {
    /// One request at a time, whatever the file sets.
    Depth,
    /// Trims with an engine that has none.
    BlockingTrims,
    /// Trims of a file.
    Holes,
    /// `direct=0`.
    Emptied,
    /// No map of blocks, with a mix of sizes.
    NoMapForMix,
    /// Open loop.
    Rate,
    /// Gaps.
    Stride,
    /// Checksums.
    Verify,
    /// `verify_backlog`.
    VerifyBacklog,
    /// Checksums in place of a pattern.
    VerifyPattern,
    /// The blocks are written before.
    Overwrites,
    /// The end of a group.
    EndTogether,
    /// One warm-up.
    Warmup,
    /// Copies on one file.
    Copies,
    /// Several files of one job.
    Files,
    /// Logs without `log_avg_msec`.
    LogCells,
    /// A search of the depth.
    LatencyTarget,
    /// Several files or disks of one job.
    Spread,
}

impl TranslationNote {
    fn text(self) -> &'static str {
        match self {
            Self::Depth => {
                "iodepth has no effect with an engine that takes one request at a time, as in fio"
            }
            Self::BlockingTrims => {
                "the engine has no trims: each is a blocking call, as in fio, and so are the \
                 writes of a trimwrite job"
            }
            Self::Holes => {
                "fio trims block devices only, and fails on files (ENOTTY); here a trim punches a \
                 hole into the file"
            }
            Self::Emptied => {
                "direct=0 (fio's default): the job empties and writes back the page cache while it \
                 runs, so the disk answers instead of memory; invalidate=0 does not empty it"
            }
            Self::NoMapForMix => {
                "with a mix of sizes, random offsets repeat, as with norandommap. No block is \
                 shortened, so the mix is exactly that of bssplit"
            }
            Self::Rate => {
                "a rate starts requests on schedule, even while earlier ones are in flight; \
                 latency counts from the intended start"
            }
            Self::Stride => {
                "with gaps, each pass starts one block later; fio visits the same blocks again"
            }
            Self::Verify => {
                "verify uses diskproof's own checksums, checked after all writes; fio cannot read \
                 them"
            }
            Self::VerifyPattern => {
                "verify uses diskproof's own checksums, checked after all writes; the blocks \
                 contain random data instead of the pattern"
            }
            Self::VerifyBacklog => {
                "verify_backlog: everything is read back after all writes; fio reads back while it \
                 writes"
            }
            Self::Overwrites => {
                "the job overwrites blocks, as with overwrite=1; without it fio writes to a new \
                 file, so a sync also has to record new blocks"
            }
            Self::EndTogether => {
                "concurrent jobs share the shortest of their runtimes; in fio each has its own"
            }
            Self::Warmup => "concurrent jobs share the longest of their warm-ups",
            Self::Files => {
                "the files of a job (nrfiles) become one of their total size; fio opens each and \
                 switches files after each request"
            }
            Self::LogCells => {
                "without log_avg_msec the logs have a line per 100 ms, not per request"
            }
            Self::LatencyTarget => {
                "a depth that narrowly misses latency_target, and the depth found, are measured up \
                 to three times; fio decides from single windows"
            }
            Self::Spread => {
                "each file or disk of a job has its own queue with a share of iodepth; fio fills \
                 one queue from all of them in turn, so the slowest delays the others"
            }
            Self::Copies => {
                "the copies of a job (numjobs) visit the same blocks, as in fio; each copy becomes \
                 a workload"
            }
        }
    }
}

/// All notes about one file.
#[derive(Debug, Clone, Default)]
pub(crate) struct TranslationNotes {
    jobs: BTreeMap<TranslationNote, Vec<String>>,
    ignored: BTreeMap<&'static str, Vec<&'static str>>,
    lines: Vec<String>,
}

impl TranslationNotes {
    /// Adds a note about a job.
    pub(crate) fn add(&mut self, note: TranslationNote, job: &str) {
        let jobs = self.jobs.entry(note).or_default();
        if jobs.iter().all(|other| other != job) {
            jobs.push(job.to_owned());
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

    /// Forgets that these options are ignored, because they are not.
    pub(crate) fn forget_ignored(&mut self, carried: &[&str]) {
        for options in self.ignored.values_mut() {
            options.retain(|option| !carried.contains(option));
        }
        self.ignored.retain(|_, options| !options.is_empty());
    }

    /// The notes as lines. One that concerns all jobs names none of them; `count` is their number.
    pub(crate) fn lines(&self, count: usize) -> Vec<String> {
        let mut lines = self.lines.clone();
        for (note, jobs) in &self.jobs {
            lines.push(match jobs.len() {
                all if all == count => note.text().to_owned(),
                few if few <= JOBS_NAMED_MAX => format!("{}: {}", jobs.join(", "), note.text()),
                many => format!(
                    "{} and {} more: {}",
                    jobs[..JOBS_NAMED_MAX].join(", "),
                    many - JOBS_NAMED_MAX,
                    note.text()
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
