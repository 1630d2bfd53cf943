//! Gives the facts that identify a run: its id, its start, its seed and the command line.

use diskproof_model::record::Tool;
use diskproof_model::target::HostFacts;
use sha2::{Digest as _, Sha256};
use std::time::SystemTime;

/// The name and version of this program, as records state them.
pub(crate) fn tool() -> Tool {
    Tool {
        name: "diskproof".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// An instant as text in UTC, RFC 3339 with nine digits after the second. An instant beyond the
/// year 9999, which no clock that was ever set shows, becomes the start of 1970.
pub(crate) fn timestamp(instant: SystemTime) -> String {
    let time = jiff::Timestamp::try_from(instant).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    format!("{time:.9}")
}

/// 128 random bits in hex: unique among all runs on all machines. Where the kernel gives no random
/// bits, it is unique among the runs of a machine.
pub(crate) fn run_id() -> String {
    random_bytes::<16>()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Hexadecimal digits of the digest that identifies a machine.
const MACHINE_DIGITS: usize = 16;
/// The id of this installation; see machine-id(5).
const MACHINE_ID: &str = "/etc/machine-id";

/// Identifies this machine in records: a digest, because machine-id(5) asks programs not to show
/// the id itself. `None` where the machine has no id.
fn machine() -> Option<String> {
    machine_of_id(&std::fs::read_to_string(MACHINE_ID).ok()?)
}

/// The machine of a process on this host; `None` in a container, which has the file of its image.
pub(crate) fn machine_of(host: &HostFacts) -> Option<String> {
    match host.container {
        Some(_) => None,
        None => machine(),
    }
}

/// The digest of a machine id. `None` of a file of an image whose machine has not got its id yet.
fn machine_of_id(text: &str) -> Option<String> {
    let id = text.trim();
    let is_id = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_id {
        return None;
    }
    let mut digits = String::new();
    for byte in Sha256::digest(format!("diskproof machine {id}")) {
        digits.push_str(&format!("{byte:02x}"));
    }
    digits.truncate(MACHINE_DIGITS);
    Some(digits)
}

/// The command line. Records hold text only, so invalid UTF-8 becomes replacement characters.
pub(crate) fn command_line() -> Vec<String> {
    std::env::args_os()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect()
}

/// JSON readers in every language keep a number of so many bits exact.
const SEED_BITS: u32 = 53;

/// A seed for a run without `--seed`, of [`SEED_BITS`] bits.
pub(crate) fn random_seed() -> u64 {
    u64::from_le_bytes(random_bytes::<8>()) >> (u64::BITS - SEED_BITS)
}

/// Random bytes of the kernel, or bytes that differ between runs of this machine.
fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty()).is_err() {
        // Blocked by seccomp: time and process id still differ between runs.
        let now_ns = jiff::Timestamp::now().as_nanosecond() as u64;
        let process = u64::from(std::process::id()) << 32;
        let unique = (now_ns ^ process).to_le_bytes();
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = unique[index % unique.len()];
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn timestamp_has_nine_digits_in_utc() {
        let instant = SystemTime::UNIX_EPOCH + Duration::from_nanos(1_700_000_000_000_000_001);
        assert_eq!(timestamp(instant), "2023-11-14T22:13:20.000000001Z");
    }

    #[test]
    fn run_id_has_32_digits_and_differs() {
        let id = run_id();
        assert_eq!(id.len(), 32);
        assert!(id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
        assert_ne!(id, run_id());
    }

    #[test]
    fn seed_is_exact_in_a_double() {
        for _ in 0..100 {
            let seed = random_seed();
            assert!(seed < 1 << SEED_BITS, "{seed}");
            assert_eq!(seed as f64 as u64, seed);
        }
    }

    #[test]
    fn machine_is_a_digest_of_its_id() {
        let id = "0123456789abcdef0123456789abcdef";
        let machine = machine_of_id(&format!("{id}\n")).unwrap();
        assert_eq!(machine.len(), MACHINE_DIGITS);
        assert!(!id.contains(&machine));
        assert_ne!(Some(machine), machine_of_id(&id.replace('0', "1")));
        for image in ["", "uninitialized\n"] {
            assert_eq!(machine_of_id(image), None);
        }
    }
}
