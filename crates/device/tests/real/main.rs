//! On real loop devices, filesystems and special files. Needs root and the tools of the
//! filesystems; each test says what it misses.
// Clippy's own exception for tests covers test functions only, not what they call.
#![allow(clippy::unwrap_used)]

mod cache_modes;
mod databases;
mod files;
mod formats;
mod gate;
mod identity;
mod in_use;
mod loops;
mod mapping;
mod opening;
mod races;
mod scratch;
mod space;
mod support;
mod unknown;
