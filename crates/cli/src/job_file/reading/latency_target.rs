//! Reads the options that search the depth at which requests meet a latency limit.

use super::JobReader;
use crate::job_file::error::JobFileError;
use crate::job_file::notes::TranslationNote;
use diskproof_model::latency_target::LatencyTarget;

/// fio judges whenever it looks without `latency_window`; so short a time still shows a rate.
const WINDOW_NS_DEFAULT: u64 = 1_000_000_000;
/// fio's default: no request may be late.
const PERCENT_DEFAULT: f64 = 100.0;

impl JobReader<'_, '_> {
    /// `latency_target`, `latency_window` and `latency_percentile`.
    pub(super) fn latency_target(&mut self) -> Result<Option<LatencyTarget>, JobFileError> {
        let latency_ns = self.short_time("latency_target")?;
        if latency_ns == 0 {
            return Ok(None);
        }
        self.notes
            .add(TranslationNote::LatencyTarget, &self.section.name);
        let percent = match self.value("latency_percentile")? {
            None => PERCENT_DEFAULT,
            Some((setting, text)) => text
                .parse()
                .ok()
                .filter(|percent| (1.0..=100.0).contains(percent))
                .ok_or_else(|| setting.error("write a percentage from 1 to 100"))?,
        };
        let window_ns = match self.short_time("latency_window")? {
            0 => WINDOW_NS_DEFAULT,
            ns => ns,
        };
        Ok(Some(LatencyTarget {
            latency_ns,
            percent,
            window_ns,
        }))
    }
}
