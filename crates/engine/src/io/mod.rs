//! How requests reach the kernel: backends, buffers and clocks. Knows no pattern, no statistics and
//! no workload. All other folders use it.

pub mod aio;
pub mod any_backend;
mod backend;
mod batching;
pub mod buffers;
pub mod clock;
pub mod errno;
mod extent;
pub mod interruptions;
pub mod mmap;
pub mod null;
mod page_fault;
mod ring;
pub mod sync;
pub mod uring;

pub use backend::{Backend, Op, Request, WAIT_MAX_NS, WaitMode};
pub use batching::SubmitPolicy;
pub use extent::Extent;
