//! `diskproof accept`: whether a disk is what its label says.

use crate::failure::{Exit, Failure};
use crate::flags::MeasuringFlags;
use crate::provenance::random_seed;
use crate::saved::test_journal;
use crate::session::{MeasuringJob, measure};
use crate::stdio::eprint_line;
use diskproof_model::accept::{
    ACCEPT_BYTES_MIN, AcceptMeasurement, AcceptPlan, BLOCK_BYTES, Procedure,
};
use diskproof_model::plan::{Plan, Task};
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::{format_bytes, format_duration, format_percent, parse_size};
use std::path::PathBuf;

const HELP: &str = "\
accept overwrites the WHOLE device. It writes every block once, in random order,
with content that names its run, its address and the number of its write, then
reads everything in another random order and checks it. One verdict follows:
accept (0), reject (1), or undecided with the reason (5). A counterfeit is named
with its real size, whatever it does beyond it. The pass takes about as long as
writing and reading the disk once: 25 hours for 8 TB at 180 MB/s. A test that
was stopped goes on where it was with the same command.

--probe takes minutes. It finds every wrap and every end below 99.9 % of the
claim, but no disk that stores any address until its flash is full. It answers
'reject' or 'no fraud found', never 'accept'.

Afterwards the device holds the pattern of the test. Run 'wipefs' and 'mkfs', or
write to it what you like.

Exit codes: 0 accepted or no fraud found, 1 rejected, 2 usage, 3 refused for
safety, 4 the run failed or the disk vanished, 5 undecided, 130 Ctrl-C.

Examples:
  sudo diskproof accept /dev/sdb --dry-run --destroy S3Z8NB0K # what it would do
  sudo diskproof accept /dev/sdb --probe --destroy S3Z8NB0K # minutes
  sudo diskproof accept /dev/sdb --destroy S3Z8NB0K # every block
  sudo diskproof accept /dev/sdb --destroy S3Z8NB0K -o report.html";

/// Flags of every measuring verb that [`refuse_seed`] and [`refuse_engine`] always refuse: the help
/// omits them.
fn hide_refused(flag: clap::Arg) -> clap::Arg {
    if ["seed", "engine"].contains(&flag.get_id().as_str()) {
        flag.hide(true)
    } else {
        flag
    }
}

/// Prove the capacity and every block of a disk; finds counterfeits. Overwrites all of it
#[derive(Debug, clap::Args)]
#[command(after_help = HELP, mut_args = hide_refused)]
pub struct AcceptFlags {
    /// Block device, all of which is overwritten; needs --destroy NAME
    pub target: PathBuf,
    /// Write and read a sample only, and SIZE of filler that empties caches [default: as much as
    /// fits into four minutes, at most 64GiB]
    #[arg(long, value_name = "SIZE", num_args = 0..=1, require_equals = true,
        value_parser = parse_size)]
    pub probe: Option<Option<u64>>,
    /// Go on with a test that was stopped, or fail where there is none
    #[arg(long, conflicts_with_all = ["probe", "restart"])]
    pub resume: bool,
    /// Begin anew, also where a test was stopped
    #[arg(long)]
    pub restart: bool,
    /// Flags of every measuring verb.
    #[command(flatten)]
    pub measuring: MeasuringFlags,
}

/// Tests the device, from the beginning or from where an earlier test was stopped. The exit code is
/// the verdict.
pub fn run(accept: &AcceptFlags) -> anyhow::Result<Exit> {
    let flags = &accept.measuring;
    let identity = flags.probe(&accept.target)?;
    refuse_other_targets(&identity, flags)?;
    refuse_seed(flags)?;
    refuse_engine(flags)?;
    let stopped = stopped_test(accept, &identity)?;
    if let Some(measured) = &stopped
        && !flags.quiet
    {
        eprint_line(&resumed_text(&identity, measured));
    }
    let plan = accept_plan(accept, &identity, stopped.as_ref());
    let job = MeasuringJob {
        goes_on: stopped.is_some(),
        ..MeasuringJob::new(plan, vec![identity], flags)
    };
    measure(job)?.exit()
}

/// The test of a record on this device, which is tested as a whole. Its content is new: a disk that
/// ignores writes would pass with what an earlier test has left on it.
pub(crate) fn repeated_test(
    test: &AcceptPlan,
    identity: &TargetIdentity,
    flags: &MeasuringFlags,
) -> Result<AcceptPlan, Failure> {
    refuse_other_targets(identity, flags)?;
    refuse_seed(flags)?;
    Ok(new_test(test.procedure, identity))
}

fn new_test(procedure: Procedure, identity: &TargetIdentity) -> AcceptPlan {
    AcceptPlan {
        procedure,
        size_bytes: identity.size_bytes / BLOCK_BYTES * BLOCK_BYTES,
        salt: random_seed(),
    }
}

fn refuse_seed(flags: &MeasuringFlags) -> Result<(), Failure> {
    if flags.seed.is_none() {
        return Ok(());
    }
    Err(Failure::Usage(
        "--seed: each test writes new content, because a disk that ignores writes would pass with \
         that of an earlier test; omit --seed"
            .to_owned(),
    ))
}

fn refuse_engine(flags: &MeasuringFlags) -> Result<(), Failure> {
    if flags.engine.is_none() {
        return Ok(());
    }
    Err(Failure::Usage(
        "--engine does not apply: accept uses the fastest one that the device allows".to_owned(),
    ))
}

/// The plan of `accept` for this device, or that of the test that goes on.
fn accept_plan(
    accept: &AcceptFlags,
    identity: &TargetIdentity,
    stopped: Option<&AcceptMeasurement>,
) -> Plan {
    let base = accept
        .measuring
        .plan("accept", std::slice::from_ref(identity));
    let test = match stopped {
        Some(measured) => measured.plan,
        None => {
            let procedure = match accept.probe {
                None => Procedure::Whole,
                Some(filler_bytes) => Procedure::Probe { filler_bytes },
            };
            new_test(procedure, identity)
        }
    };
    Plan {
        seed: test.salt,
        tasks: vec![Task::Accept(test)],
        ..base
    }
}

fn refuse_other_targets(identity: &TargetIdentity, flags: &MeasuringFlags) -> Result<(), Failure> {
    let path = &identity.path;
    let other_kind = match identity.kind {
        TargetKind::BlockDevice => None,
        TargetKind::Directory => Some("a directory"),
        TargetKind::File => Some("a file"),
    };
    if let Some(other_kind) = other_kind {
        return Err(Failure::Usage(format!(
            "{path} is {other_kind}: accept tests a whole device, because a filesystem decides \
             itself which blocks a file gets. Name the disk (diskproof info {path} shows it), or \
             check the content of a file with 'diskproof run {path} --rw write --verify'"
        )));
    }
    if identity.size_bytes < ACCEPT_BYTES_MIN {
        return Err(Failure::Usage(format!(
            "{path} has {}: too small for a verdict; accept needs {}",
            format_bytes(identity.size_bytes),
            format_bytes(ACCEPT_BYTES_MIN)
        )));
    }
    flags.needs_scratch(identity, "omit it").map(drop)
}

/// The progress of an earlier test of this device that was stopped; `None` where a new one begins.
fn stopped_test(
    accept: &AcceptFlags,
    identity: &TargetIdentity,
) -> Result<Option<AcceptMeasurement>, Failure> {
    if accept.probe.is_some() {
        return Ok(None);
    }
    let flags = &accept.measuring;
    let Some(journal) = test_journal(&flags.history, identity)? else {
        if accept.resume {
            return Err(Failure::Usage(
                "--resume: no history is kept, in which a test that was stopped would be"
                    .to_owned(),
            ));
        }
        return Ok(None);
    };
    if accept.restart {
        // The gate may still refuse. The new test, with a salt of its own, replaces the journal.
        return Ok(None);
    }
    let stopped = journal.read()?;
    if stopped.is_none() && accept.resume {
        return Err(Failure::Usage(format!(
            "--resume: there is no test of {} that was stopped; omit --resume to begin one",
            identity.path
        )));
    }
    Ok(stopped)
}

/// `/dev/sdb: going on with a test that was stopped while it wrote, at 43 %; the rest takes about
/// 3 h at its rate so far; --restart begins anew`
fn resumed_text(identity: &TargetIdentity, measured: &AcceptMeasurement) -> String {
    let count = measured.states.0.len() as u64;
    let (doing, done) = if measured.written < count {
        ("wrote", measured.written)
    } else {
        ("read", measured.read)
    };
    let share = format_percent(done as f64 / count.max(1) as f64);
    let rest = match measured.rest_ns() {
        Some(ns) => format!(
            "; the rest takes about {} at its rate so far",
            format_duration(ns)
        ),
        None => String::new(),
    };
    format!(
        "{}: going on with a test that was stopped while it {doing}, at {share}{rest}; --restart \
         begins anew",
        identity.path
    )
}
