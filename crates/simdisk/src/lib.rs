//! Disks with known properties, for tests of programs that measure disks. Never a dependency of
//! such a program.
//!
//! A [`models::Model`] says in numbers what a disk is. [`SimDisk`] serves it over FUSE as one
//! regular file that takes O_DIRECT; [`LoopDevice`] makes a block device of it; [`SimDirectory`] is
//! a directory in which O_DIRECT is refused. All need root.

mod backing;
mod directory;
mod disk;
mod fuse;
pub mod gallery;
mod loop_device;
pub mod models;
mod precedence;
mod schedule;
pub mod seccomp;
pub mod spec;
pub mod testbed;

pub use backing::Medium;
pub use directory::SimDirectory;
pub use disk::{Hanging, SimDisk, Stats};
pub use fuse::connection::ServeError;
pub use loop_device::{Direct, LoopDevice, LoopError};
pub use models::Model;
pub use models::direct::DirectAccess;
