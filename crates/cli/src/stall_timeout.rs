//! How long a target may be silent, as the environment sets it.

use crate::failure::Failure;
use diskproof_engine::STALL_NS;
use diskproof_model::units::parse_duration;
use std::time::Duration;

const VARIABLE: &str = "DISKPROOF_GIVE_UP_AFTER";

/// How long a target may leave requests unanswered before the run ends without it. A multipath
/// device that queues while it has no path needs longer than the default.
pub(crate) fn stall_timeout() -> Result<Duration, Failure> {
    let text = std::env::var_os(VARIABLE).filter(|text| !text.is_empty());
    let Some(text) = text else {
        return Ok(Duration::from_nanos(STALL_NS));
    };
    let text = text.to_string_lossy();
    parse_duration(&text)
        .map(Duration::from_nanos)
        .map_err(|error| Failure::Usage(format!("{VARIABLE}={text}: {error}")))
}
