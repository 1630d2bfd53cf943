//! How requests reach the kernel: the backends, the memory they use and the clocks. Knows no
//! pattern, no statistics and no workload. Everything else in this crate rests on it.

pub mod aio;
mod backend;
pub mod buffers;
pub mod clock;
mod extent;
mod fault;
mod grouping;
pub mod mmap;
pub mod null;
mod ring;
pub mod sync;
pub mod uring;

pub use backend::{Backend, LOOK_UP_NS, Op, Patience, Request};
pub use extent::Extent;
pub use grouping::Submission;
