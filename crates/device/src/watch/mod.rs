//! The load that other programs put on the machine's disks: the disks, their counters, and their
//! requests one by one.

pub(crate) mod disks;
pub(crate) mod request_trace;
