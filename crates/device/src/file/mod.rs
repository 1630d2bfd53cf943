//! One file or device and how it is reached: a path that no other process can divert, a descriptor
//! that stays with its inode, the mark of a file that diskproof made, and what direct I/O needs.

pub(crate) mod direct_io;
pub(crate) mod extents;
pub(crate) mod held;
pub(crate) mod own_mark;
pub(crate) mod small_file;
pub(crate) mod trusted_path;
