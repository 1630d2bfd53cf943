//! Tests if a disk keeps, across a power cut, what it acknowledged as durable. A writer fills the
//! target and reports to a log on a second machine; after the cut the target is compared with the
//! log. Protocol, log and judgement are pure; only `diskproof-device` opens targets.
#![forbid(unsafe_code)]

mod client;
mod commit_schedule;
mod deadline_stream;
mod error;
mod judge;
mod kept_reports;
mod log_store;
mod page;
mod places;
mod protocol;
mod random;
mod reader;
mod rehearsal;
mod report_pace;
mod run;
mod run_files;
mod server;
mod text;
mod token;
mod volatile_disk;
mod writer;

pub use client::{LogClient, LogError, PORT_DEFAULT};
pub use error::CutError;
pub use judge::{
    CutReport, CutVerdict, NotProvenReason, StreamContent, StreamOutcome, VerifyFacts, judge,
};
pub use log_store::LogStore;
pub use page::{PAGE_BYTES, SlotState};
pub use reader::{boot_id, directory_change_time, read_content, region_fingerprint};
pub use rehearsal::{RehearsedCut, rehearse};
pub use run::{
    CutMethod, CutTarget, LogEnd, RunDescription, RunLog, RunProgress, StreamKind, WORKERS_MAX,
    WriteStream, short_id,
};
pub use run_files::{PAGES_FILE, holds_only_files_of_run};
pub use server::{ListenError, LogServer};
pub use text::{write_rehearsal, write_report};
pub use token::Token;
pub use volatile_disk::DiskBehaviour;
pub use writer::{NextStep, WriteRun, Written};
