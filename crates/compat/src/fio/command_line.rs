//! Job files as a command line, for `--showcmd`.

use super::options::NAME;
use crate::jobs::{DescribedJobs, JobOption};
use diskproof_model::shell::quoted;

/// The command line that describes the same jobs.
pub(super) fn command_line(described: &DescribedJobs) -> String {
    let mut words = vec![NAME.to_owned()];
    let option = |option: &JobOption| match &option.value {
        Some(value) => format!("--{}={}", option.key, quoted(value)),
        None => format!("--{}", option.key),
    };
    words.extend(described.global.iter().map(option));
    for job in &described.jobs {
        words.push(format!("--name={}", quoted(&job.name)));
        words.extend(job.options.iter().map(option));
    }
    words.join(" ") + " \n"
}
