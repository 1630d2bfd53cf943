//! The program as its users start it, from the command line to its output files. One binary, so
//! that `cargo test` links the program's crates once.
#![allow(clippy::unwrap_used)] // a failed step fails the test

mod accepted;
mod cli;
mod commit;
mod compare;
mod compare_live;
mod curve;
mod curve_findings;
mod docs_commands;
mod drop_in;
mod faults;
mod files;
mod fio;
mod fitness;
mod formats;
mod fuzz_seeds;
mod health;
mod history;
mod honesty;
mod hung;
mod hung_writing;
mod interrupted;
mod job_files;
mod latency_target;
mod layers;
mod manuals;
mod outputs;
mod ping;
mod pipeline;
mod postgres;
mod powercut;
mod program;
mod run;
mod safety;
mod schema;
mod slow_disk;
mod sweep;
mod targets;
mod together;
mod trims;
mod watch;
mod watch_hostile;
mod watch_server;
mod watch_tls;
mod write_cache;
