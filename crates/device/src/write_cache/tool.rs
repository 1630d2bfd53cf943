//! The command lines of hdparm, nvme and sdparm, and what they print.

use crate::external_program::{NoAnswer, output_of};
use diskproof_model::shell::quoted;
use diskproof_model::target::WriteCache;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A disk that is switched off writes its cache out first.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// Longer text is no answer worth quoting.
const QUOTE_CHARS_MAX: usize = 200;

/// What reads and switches the write cache of a kind of disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheTool {
    /// ATA: SET FEATURES 02h and 82h.
    Hdparm,
    /// NVMe: feature 6.
    Nvme,
    /// SCSI: bit WCE of the caching mode page, the current value only.
    Sdparm,
}

impl CacheTool {
    pub(crate) const ALL: [Self; 3] = [Self::Hdparm, Self::Nvme, Self::Sdparm];

    pub(crate) fn program(self) -> &'static str {
        match self {
            Self::Hdparm => "hdparm",
            Self::Nvme => "nvme",
            Self::Sdparm => "sdparm",
        }
    }

    pub(crate) fn package(self) -> &'static str {
        match self {
            Self::Nvme => "nvme-cli",
            _ => self.program(),
        }
    }

    fn query(self) -> &'static [&'static str] {
        match self {
            Self::Hdparm => &["-W"],
            Self::Nvme => &["get-feature", "--feature-id=6"],
            Self::Sdparm => &["--get=WCE"],
        }
    }

    fn change(self, state: WriteCache) -> &'static [&'static str] {
        match (self, state) {
            (Self::Hdparm, WriteCache::WriteBack) => &["-W1"],
            (Self::Hdparm, WriteCache::WriteThrough) => &["-W0"],
            (Self::Nvme, WriteCache::WriteBack) => &["set-feature", "--feature-id=6", "--value=1"],
            (Self::Nvme, WriteCache::WriteThrough) => {
                &["set-feature", "--feature-id=6", "--value=0"]
            }
            (Self::Sdparm, WriteCache::WriteBack) => &["--set=WCE"],
            (Self::Sdparm, WriteCache::WriteThrough) => &["--clear=WCE"],
        }
    }

    /// The query for a shell.
    pub(crate) fn query_text(self, node: &Path) -> String {
        self.text(self.query(), node)
    }

    /// The change for a shell.
    pub(crate) fn change_text(self, node: &Path, state: WriteCache) -> String {
        self.text(self.change(state), node)
    }

    fn text(self, words: &[&str], node: &Path) -> String {
        format!(
            "{} {} {}",
            self.program(),
            words.join(" "),
            quoted(&node.display().to_string())
        )
    }

    /// The state of a disk. The error is what the tool said, as the end of a clause.
    pub(crate) fn state(self, program: &Path, node: &Path) -> Result<WriteCache, String> {
        let text = run(program, self.query(), node)?;
        self.parse(&text).ok_or_else(|| quote(&text))
    }

    /// Switches, and has the disk confirm it. The error is a clause.
    pub(crate) fn switch(
        self,
        program: &Path,
        node: &Path,
        state: WriteCache,
    ) -> Result<(), String> {
        let command = self.change_text(node, state);
        let said = run(program, self.change(state), node)
            .map_err(|said| format!("'{command}' failed{said}"))?;
        match self.state(program, node) {
            Ok(now) if now == state => Ok(()),
            Ok(now) => Err(format!(
                "after '{command}' the disk reports that it is {}{}",
                state_text(now),
                quote(&said)
            )),
            Err(said) => Err(format!(
                "after '{command}', '{}' does not report its state{said}",
                self.query_text(node)
            )),
        }
    }

    /// ` write-caching =  1 (on)`, `... Current value:0x00000001`, `WCE           1  [cha: y, ...`.
    pub(super) fn parse(self, text: &str) -> Option<WriteCache> {
        let value = match self {
            Self::Hdparm => number_after(text, "write-caching =")?,
            Self::Nvme => number_after(&text.to_lowercase(), "current value:")? & 1,
            Self::Sdparm => number_after(text, "WCE ")?,
        };
        match value {
            0 => Some(WriteCache::WriteThrough),
            1 => Some(WriteCache::WriteBack),
            _ => None,
        }
    }
}

/// `on` or `off`.
pub(crate) fn state_text(state: WriteCache) -> &'static str {
    match state {
        WriteCache::WriteBack => "on",
        WriteCache::WriteThrough => "off",
    }
}

/// The number, decimal or hexadecimal, behind a label.
fn number_after(text: &str, label: &str) -> Option<u64> {
    let rest = text.split(label).nth(1)?.trim_start();
    let word = rest
        .split(|c: char| !c.is_ascii_alphanumeric())
        .next()
        .unwrap_or("");
    match word.strip_prefix("0x") {
        Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16).ok(),
        None => word.parse().ok(),
    }
}

/// What a command printed. The error is what happened, as the end of a clause.
fn run(program: &Path, words: &[&str], node: &Path) -> Result<String, String> {
    // Through a shell without a script of ours, for its stderr among its stdout.
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", "exec 2>&1; exec \"$0\" \"$@\""])
        .arg(program)
        .args(words)
        .arg(node)
        .env("LC_ALL", "C");
    output_of(command, TIME_LIMIT).map_err(|silence| match silence {
        NoAnswer::Late => format!(": no answer within {} s", TIME_LIMIT.as_secs()),
        NoAnswer::Failed(error) => format!(": {error}"),
    })
}

/// What a tool printed, as the end of a clause.
fn quote(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let text = lines.collect::<Vec<_>>().join("; ");
    let text: String = text.chars().take(QUOTE_CHARS_MAX).collect();
    match text.as_str() {
        "" => " (it printed nothing)".to_owned(),
        text => format!(" (it printed: {text})"),
    }
}
