//! What the user has to know about a translation: once each, with the jobs that it is about. Pure.

use std::collections::BTreeMap;

/// So many jobs are named; of more, their number is.
const NAMED_MAX: usize = 3;

/// What differs from fio, or would be a surprise to somebody who knows only the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TranslationNote {
    /// One request at a time, whatever the file says.
    Depth,
    /// `direct=0`.
    Emptied,
    /// No map of blocks.
    NoMap,
    /// No map of blocks that cuts them.
    NoMapForMix,
    /// Open loop.
    Rate,
    /// Gaps.
    Stride,
    /// Checksums.
    Verify,
    /// Writes to what is written.
    Overwrites,
    /// The end of a group.
    EndTogether,
    /// One warm-up.
    Warmup,
    /// Copies on one file.
    Copies,
}

impl TranslationNote {
    fn text(self) -> &'static str {
        match self {
            Self::Depth => {
                "iodepth has no effect with an engine that takes one request at a time, in fio as \
                 well: one is in flight"
            }
            Self::Emptied => {
                "direct=0, which is fio's default: the page cache is emptied and written back as \
                 the job goes, so that the disk answers and not memory; invalidate=0 leaves it \
                 alone"
            }
            Self::NoMap => {
                "random offsets are drawn without fio's map, as with norandommap: some blocks come \
                 twice before others come once"
            }
            Self::NoMapForMix => {
                "random offsets are drawn without fio's map, as with norandommap: some blocks come \
                 twice before others come once, and none is cut short where it meets one that was \
                 used, so that the mix of sizes is what bssplit says"
            }
            Self::Rate => {
                "a rate starts requests on time, whether earlier ones are done or not; latency \
                 counts from the intended start"
            }
            Self::Stride => {
                "each lap over the gaps begins a block further on, where fio meets the same blocks \
                 again"
            }
            Self::Verify => "blocks are verified by checksums of our own, after the writing",
            Self::Overwrites => {
                "the writes go to blocks that were written before, as with overwrite=1; fio's are \
                 the first of a new file, where a sync also has to make new blocks known"
            }
            Self::EndTogether => {
                "jobs that run together end together, as soon as the first has done its share; fio \
                 lets the others go on"
            }
            Self::Warmup => "jobs that run together share one warm-up, the longest",
            Self::Copies => {
                "the copies of a job (numjobs) go over the same blocks, as in fio: each is a \
                 workload of its own"
            }
        }
    }
}

/// All of them.
#[derive(Debug, Clone, Default)]
pub struct TranslationNotes {
    told: BTreeMap<TranslationNote, Vec<String>>,
    left_out: BTreeMap<&'static str, Vec<&'static str>>,
    lines: Vec<String>,
}

impl TranslationNotes {
    /// Something about a job.
    pub fn tell(&mut self, remark: TranslationNote, job: &str) {
        let jobs = self.told.entry(remark).or_default();
        if jobs.iter().all(|other| other != job) {
            jobs.push(job.to_owned());
        }
    }

    /// A sentence about the whole file.
    pub fn say(&mut self, line: String) {
        self.lines.push(line);
    }

    /// An option that changes nothing, and why.
    pub fn leave_out(&mut self, option: &'static str, why: &'static str) {
        let options = self.left_out.entry(why).or_default();
        if !options.contains(&option) {
            options.push(option);
        }
    }

    /// As they are shown; a remark about each of `jobs` names none of them.
    pub fn lines(&self, jobs: usize) -> Vec<String> {
        let told = self.told.iter().map(|(remark, about)| {
            let whose = match about.len() {
                all if all == jobs => String::new(),
                few if few <= NAMED_MAX => format!("{}: ", about.join(", ")),
                many => format!(
                    "{} and {} more: ",
                    about[..NAMED_MAX].join(", "),
                    many - NAMED_MAX
                ),
            };
            format!("{whose}{}", remark.text())
        });
        let why = self
            .left_out
            .iter()
            .map(|(why, options)| format!("{} ({why})", options.join(", ")))
            .collect::<Vec<_>>();
        let left_out = (!why.is_empty()).then(|| {
            format!(
                "left out, as the load is the same without: {}",
                why.join("; ")
            )
        });
        self.lines
            .iter()
            .cloned()
            .chain(told)
            .chain(left_out)
            .collect()
    }
}
