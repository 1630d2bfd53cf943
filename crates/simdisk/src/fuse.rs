//! The FUSE protocol over a raw `/dev/fuse`: its numbers and layouts (`wire`) and a mounted
//! connection (`connection`). Must not know disks, models or files.

pub mod connection;
pub mod wire;
