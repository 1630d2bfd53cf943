//! Programs that diskproof starts: each in a process group of its own, with a deadline, and with
//! the user's limit on open descriptors.

pub(crate) mod descriptor_limit;
pub(crate) mod external_program;
pub(crate) mod guard_lines;
