//! Tests of the whole measuring path on simulated disks, in virtual time.

mod request_log;
mod transactions;
mod warmup;
