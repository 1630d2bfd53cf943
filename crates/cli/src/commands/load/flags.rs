//! The command line of `load`.

use super::promise::Promise;
use crate::flags::MeasuringFlags;
use crate::workload::{BlockSize, Time};
use diskproof_model::op::OpKind;
use diskproof_model::rw::{Rw, RwError};
use std::path::PathBuf;

const HELP: &str = "\
The answer is the highest rate of transactions whose latency keeps the promise
of --slo, with its 95 % interval. They arrive at random times (Poisson), and
latency counts from the intended start. The search doubles the rate, saturates
the disk, measures around the rate in question, holds the lower end of the
interval for a minute, and then offers more: that must break the promise.

A transaction of --mix oltp is 4 random reads of 8 KiB, a log record of 8 KiB
made durable by fdatasync, which sessions share (group commit), and one random
write after it. etcd is a log record of 4 KiB. FILE is a TOML file:

  reads = 4
  block = '8k'
  log = '8k'
  writes = 1

--rw offers plain requests in place of transactions. --rays searches the rate of
random reads and writes of 4 KiB in seven mixes, from writes alone to reads
alone: the boundary of what the disk keeps the promise at. Seven searches take
about 54 min; --time is shared out. Their exports set schedulers: .iocost
(Linux), .yaml (Seastar), .ceph, .cockroach. In a directory, load measures a
scratch file without a name. A file or a block device is only read unless
--overwrite or --destroy releases it: then use --rw randread.

A burst credit of up to two minutes does not pass for capacity; of a longer one,
or one over a base just below the answer, the page says how much would not have
shown ('diskproof help load.md').

Exit codes: 0 done, 1 a threshold was missed, 2 usage, 3 refused for safety,
4 the run failed or the disk returned errors, 5 undecided, 130 Ctrl-C.

Examples:
  diskproof load /data                          # 99 % within 5 ms, in 8 min
  diskproof load /data --slo 'p99.9<=20ms'      # another promise
  diskproof load /data --mix etcd               # log records alone
  diskproof load /data --like latest            # a load that watch recorded
  diskproof load /data --prove 10m              # holds the answer for 10 min
  diskproof load /data --time 30m               # a narrower interval
  diskproof load /data --jobs 4                 # a disk too fast for one thread
  diskproof load /data --rays -o io-properties.yaml     # reads against writes
  sudo diskproof load /dev/sdb --rw randread --slo 'p99<=2ms'";

/// Find the highest rate at which a promise about latency is kept
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct LoadFlags {
    /// Directory, regular file or block device
    #[arg(default_value = ".")]
    pub target: PathBuf,
    /// What is promised: the share of transactions that take no longer than a limit
    #[arg(long, value_name = "PROMISE", default_value = "p99<=5ms")]
    pub slo: Promise,
    /// The transaction: oltp, etcd, or a TOML file that describes one
    #[arg(long, value_name = "MIX|FILE", default_value = "oltp", conflicts_with_all = ["rw", "bs"])]
    pub mix: String,
    /// Offer the transaction of a load that 'watch --record' saved: 'latest', an id, or a file. A
    /// flush stands for a commit
    #[arg(long, value_name = "RUN", conflicts_with_all = ["rw", "bs", "mix"])]
    pub like: Option<String>,
    /// Device whose load --like repeats [default: the busiest]
    #[arg(long, value_name = "NAME", requires = "like")]
    #[arg(conflicts_with_all = ["rw", "bs", "mix", "rays"])]
    pub like_device: Option<String>,
    /// Offer plain requests: randread, randwrite, randrw, read, write or rw
    #[arg(long, visible_alias = "readwrite", value_name = "OPERATION", value_parser = parse_rw)]
    pub rw: Option<Rw>,
    /// Search the boundary of random reads and writes, in N mixes from 3 to 21 [default: 7]
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "7", conflicts_with_all = ["mix", "like", "rw"])]
    #[arg(value_parser = clap::value_parser!(u16).range(3..=21))]
    pub rays: Option<u16>,
    /// Bytes of each request of --rw [default: 8k], or of --rays [default: 4k]
    #[arg(long, visible_alias = "blocksize", value_name = "BYTES")]
    pub bs: Option<BlockSize>,
    /// Share of reads of a --rw that mixes, in percent [default: 50]
    #[arg(long, value_name = "PERCENT", requires = "rw")]
    #[arg(conflicts_with_all = ["mix", "like", "like_device", "rays"])]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=99))]
    pub rwmixread: Option<u16>,
    /// Sessions, or requests in flight at most [default: 100 sessions, 256 requests]
    #[arg(long, visible_alias = "iodepth", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub depth: Option<u32>,
    /// Threads that share --depth, for a disk that serves more than one thread can send
    #[arg(long, visible_alias = "numjobs", value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=64))]
    pub jobs: u32,
    /// Time of the cells of all searches, at least 20s for each; what comes before and between them
    /// adds a tenth [default: 7m for each]
    #[arg(long, value_name = "DURATION")]
    pub time: Option<Time>,
    /// Hold the answer for so long; the search takes that much longer [default: 1m of 7m]
    #[arg(long, value_name = "DURATION")]
    pub prove: Option<Time>,
    /// Flags of every measuring verb.
    #[command(flatten)]
    pub measuring: MeasuringFlags,
}

/// Reads the operation of `--rw`. What moves no data, as a trim, is refused.
fn parse_rw(word: &str) -> Result<Rw, String> {
    let rw: Rw = word.parse().map_err(|error: RwError| error.to_string())?;
    if !rw.kinds().all(OpKind::moves_data) {
        return Err(format!("'{word}' moves no data; use reads or writes"));
    }
    Ok(rw)
}
