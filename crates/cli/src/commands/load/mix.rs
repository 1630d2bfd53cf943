//! The transaction whose rate is searched: one of a name, of a file, or of a recorded load.

use super::flags::LoadFlags;
use crate::failure::Failure;
use crate::job_file::read_text;
use crate::observed_load::ObservedLoad;
use crate::workload::{Bytes, ValueError};
use diskproof_analysis::watch::{LikeTransaction, like_transaction};
use diskproof_model::transaction::{LOG_BYTES_MAX, TRANSACTION_PARTS_MAX};
use diskproof_model::units::{counted, format_bytes};
use std::path::Path;

/// Log records and blocks are whole sectors.
const SECTOR_BYTES: u64 = 512;

/// A transaction as a file describes it.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct MixFile {
    #[serde(default)]
    reads: u32,
    #[serde(default = "default_block")]
    block: String,
    log: String,
    #[serde(default)]
    writes: u32,
}

/// PostgreSQL's page, as a file writes it.
fn default_block() -> String {
    "8k".to_owned()
}

/// A transaction, before the size of the target is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mix {
    /// Random reads before the commit.
    pub(super) reads: u32,
    /// Size of each read and each write.
    pub(super) block_bytes: u32,
    /// Size of the log record that the commit makes durable.
    pub(super) log_bytes: u32,
    /// Random writes after the commit.
    pub(super) writes: u32,
}

/// Some index pages and a heap page, its record in the log, and the page that a checkpoint or an
/// eviction writes later: the ratio of pgbench's TPC-B beyond the cache.
const OLTP: Mix = Mix {
    reads: 4,
    block_bytes: 8192,
    log_bytes: 8192,
    writes: 1,
};
/// etcd appends some 2 kB to its log, which the kernel writes as a page.
const ETCD: Mix = Mix {
    reads: 0,
    block_bytes: 4096,
    log_bytes: 4096,
    writes: 0,
};

impl Mix {
    /// The mix of this name, or that of the file of this name.
    pub(super) fn named(name: &str) -> Result<Self, Failure> {
        match name {
            "oltp" => Ok(OLTP),
            "etcd" => Ok(ETCD),
            _ => Self::read_file(Path::new(name)),
        }
    }

    /// The transaction of a load that `watch` recorded. Fails where its device was never flushed.
    pub(super) fn observed(load: &LoadFlags, reference: &str) -> Result<Self, Failure> {
        let history = load.measuring.history.history.as_deref();
        let observed = ObservedLoad::find(reference, load.like_device.as_deref(), history)?;
        if let Some(note) = &observed.note {
            load.measuring.verbosity().note(note);
        }
        let Some(transaction) = like_transaction(&observed.device) else {
            return Err(Failure::Usage(format!(
                "--like {reference}: {} was not flushed while it was watched, so that nothing \
                 tells its transactions apart; use --mix",
                observed.device.name
            )));
        };
        let LikeTransaction {
            reads,
            block_bytes,
            log_bytes,
            writes,
        } = transaction;
        let parts = format!(
            "{} of {}, {}",
            counted(u64::from(reads), "read"),
            format_bytes(u64::from(block_bytes)),
            counted(u64::from(writes), "random write")
        );
        if !transaction.may_be_commit() {
            let read_percent = 100 * reads / (reads + writes).max(1);
            return Err(Failure::Usage(format!(
                "--like {reference}: {} was flushed so rarely that its flushes are no commits: \
                 {parts} for each. Offer plain requests: --rw randrw --rwmixread {read_percent} \
                 --bs {block_bytes}",
                observed.device.name
            )));
        }
        load.measuring.verbosity().note(&format!(
            "--like {reference}: a transaction is {parts} and a log record of {}",
            format_bytes(u64::from(log_bytes))
        ));
        Ok(Self {
            reads,
            block_bytes,
            log_bytes,
            writes,
        })
    }

    fn read_file(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let text = read_text(path).map_err(|why| {
            Failure::Usage(format!(
                "--mix {shown}: {why}. Name oltp, etcd or a TOML file"
            ))
        })?;
        let file: MixFile = toml::from_str(&text)
            .map_err(|error| Failure::Usage(format!("--mix {shown}: {error}")))?;
        let mix = Self {
            reads: file.reads,
            block_bytes: size_in_file(path, "block", &file.block)?,
            log_bytes: size_in_file(path, "log", &file.log)?,
            writes: file.writes,
        };
        let parts = mix.reads.max(mix.writes);
        if parts > TRANSACTION_PARTS_MAX {
            return Err(Failure::Usage(format!(
                "--mix {shown}: {parts} in one transaction are too many; use at most \
                 {TRANSACTION_PARTS_MAX} reads and writes"
            )));
        }
        Ok(mix)
    }
}

/// Reads the size of a key in the file of a mix. `path` and `key` are for the error.
fn size_in_file(path: &Path, key: &str, text: &str) -> Result<u32, Failure> {
    parse_mix_size(text).map_err(|why| {
        let file = path.display();
        Failure::Usage(format!("--mix {file}: {key} = '{text}': {why}"))
    })
}

fn parse_mix_size(text: &str) -> Result<u32, String> {
    let Bytes(bytes) = text
        .parse()
        .map_err(|error: ValueError| error.to_string())?;
    let is_whole = bytes > 0 && bytes.is_multiple_of(SECTOR_BYTES);
    if !is_whole || bytes > u64::from(LOG_BYTES_MAX) {
        return Err("use whole sectors of 512 bytes, up to 64 MiB".to_owned());
    }
    Ok(bytes as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mix_of_a_file_says_which_key_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mix.toml");
        for (text, key) in [
            ("reads = 2", "log"),
            ("log = '700'", "log"),
            ("log = '8k'\nreads = 1001", "1001"),
            ("log = '8k'\nread = 1", "read"),
        ] {
            std::fs::write(&path, text).unwrap();
            let failure = Mix::read_file(&path).unwrap_err();
            assert!(failure.to_string().contains(key), "{failure}");
        }
        std::fs::write(&path, "log = '16k'\nreads = 2").unwrap();
        let mix = Mix::read_file(&path).unwrap();
        assert_eq!((mix.reads, mix.log_bytes, mix.writes), (2, 16384, 0));
    }
}
