//! How requests reach the kernel: backends, buffers and clocks. Knows no pattern, no statistics and
//! no workload. All other folders use it.

pub(crate) mod aio;
pub(crate) mod any_backend;
mod backend;
mod batching;
mod block_call;
pub(crate) mod buffers;
pub mod clock;
pub(crate) mod errno;
mod extent;
pub(crate) mod interruptions;
pub(crate) mod mmap;
pub(crate) mod null;
mod page_fault;
mod ring;
pub(crate) mod shared_sync;
pub(crate) mod sync;
pub(crate) mod uring;

pub use backend::Op;
pub(crate) use backend::{Backend, BlockCall, Request, RequestSource, WAIT_MAX_NS, WaitMode};
pub(crate) use batching::SubmitPolicy;
pub(crate) use block_call::call_block;
pub use extent::Extent;
