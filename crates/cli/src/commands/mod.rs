//! One file per verb: flags in, plan out, then the common way.

pub mod check;
pub mod info;
pub mod run;
