//! How Linux names block devices: by number and by node. Reads nothing.

use rustix::fs::{major, minor};

/// `major:minor`.
pub(crate) fn device_number(number: u64) -> String {
    format!("{}:{}", major(number), minor(number))
}

/// `/dev/NAME`, where the node of a kernel name usually stands; the kernel writes an exclamation
/// mark for a slash.
pub(crate) fn node(name: &str) -> String {
    format!("/dev/{}", name.replace('!', "/"))
}
