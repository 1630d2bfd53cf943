//! One file per verb: flags in, plan out, then the common way.

pub mod check;
pub mod compare;
pub mod curve;
pub mod export;
pub mod history;
pub mod info;
pub mod run;
pub mod show;
