//! Files with names in directories of our own: how such a directory is made and claimed, which
//! files in it are ours, and how they are removed, by this run or by a later one after a crash.

pub(crate) mod claimed_directory;
mod criteria;
pub(crate) mod file_tree;
pub(crate) mod kept_directory;
pub(crate) mod removal;
