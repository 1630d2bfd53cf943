//! Tests of the whole measuring path on simulated disks, in virtual time.

mod transactions;
mod warmup;
