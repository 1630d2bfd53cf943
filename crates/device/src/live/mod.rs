//! What the machine's disks and processes do at this moment: the kernel's counters, the requests
//! that its tracing reports. Opens no device, and judges nothing.

mod devices;
mod disk_readings;
mod request_trace;
mod trace_lines;

pub use devices::{WatchedDevice, watched_device, whole_devices};
pub use disk_readings::read_disks;
pub use request_trace::{RequestTrace, TraceBatch};
