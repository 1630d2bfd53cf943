//! The FUSE protocol over a raw `/dev/fuse`: its numbers and layouts (`wire`) and a mounted
//! connection (`connection`).
//!
//! Not `fuser` 0.18 (tried 2026-11-22). It serves a regular file as root with O_DIRECT and 512-byte
//! requests at 46k to 97k IOPS, so speed is no reason. But after a lazy unmount its threads never
//! end while a file is open, and 350 lines here would become 15 packages with 380 kB of source,
//! which take about 100 s of CPU time to build on a busy machine.

pub(crate) mod connection;
pub(crate) mod wire;
