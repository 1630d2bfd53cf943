//! Facts that identify a run: its id, its start, its seed and the command line.

use diskproof_model::record::Tool;
use std::time::SystemTime;

/// The name and version of this program, as records state them.
pub(crate) fn tool() -> Tool {
    Tool {
        name: "diskproof".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// An instant as text in UTC, RFC 3339 with nine digits after the second.
pub(crate) fn timestamp(instant: SystemTime) -> String {
    let time = jiff::Timestamp::try_from(instant).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    format!("{time:.9}")
}

/// 128 random bits in hex: unique among all runs on all machines.
pub(crate) fn run_id() -> String {
    random_bytes::<16>()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The command line. Records hold text only, so invalid UTF-8 becomes replacement characters.
pub(crate) fn command_line() -> Vec<String> {
    std::env::args_os()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect()
}

/// A seed for a run without `--seed`.
pub(crate) fn random_seed() -> u64 {
    // Below 2⁵³: JSON readers in every language keep it exact.
    u64::from_le_bytes(random_bytes::<8>()) >> 11
}

fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty()).is_err() {
        // Before Linux 3.17, or blocked by seccomp: time and process id still differ between runs.
        let now_ns = jiff::Timestamp::now().as_nanosecond() as u64;
        let process = u64::from(std::process::id()) << 32;
        let unique = (now_ns ^ process).to_le_bytes();
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = unique[index % unique.len()];
        }
    }
    bytes
}
