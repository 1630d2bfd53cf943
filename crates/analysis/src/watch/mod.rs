//! Turns the kernel's counters and traced requests into the steps that `watch` shows and the loads
//! that it records. It reads no clock and no file: the caller passes every reading.

mod capacity;
mod counters;
mod like;
mod observer;
mod profile;
mod seeks;
mod server;

pub use capacity::{disk_capacity, is_capacity_of};
pub use like::{
    LikeError, LikeTarget, LikeTransaction, like_plan, like_transaction, like_workloads,
};
pub use observer::{Observer, StepInput, WatchedLoad};
pub use server::{ServerObserver, ServerReading};
