//! Rehearses the whole test on simulated disks (`powercut rehearse`). Pages, log, protocol and
//! judgement are the real ones; the disk, its clock and the cut are simulated, and every figure of
//! the judgement is compared with the disk's own account, which is counted write by write.

use crate::client::LogClient;
use crate::commit_schedule::CommitSchedule;
use crate::error::CutError;
use crate::judge::{CutReport, CutVerdict, NotProvenReason, StreamContent, VerifyFacts, judge};
use crate::page::{FILE_BYTES, PAGE_BYTES, SlotState, fill, inspect};
use crate::random::Splitmix;
use crate::run::{CutMethod, CutTarget, RunDescription, RunProgress, StreamKind};
use crate::token::Token;
use crate::volatile_disk::{DiskBehaviour, VolatileDisk};
use diskproof_model::target::TargetKind;
use serde::Serialize;
use std::time::Duration;

/// The time between two commits of a stream on the simulated disk: about that of an SSD.
const STEP: Duration = Duration::from_millis(1);
/// The steps between two control pages, as on a real disk (`CONTROL_INTERVAL`).
const CONTROL_STEPS: u64 = 5;
/// The steps between two reports: some writes are in flight at the cut, as on a real disk.
const REPORT_STEPS: u64 = 8;
/// The cut comes after this many steps at least. Every slot has been written several times then.
const STEPS_MIN: u64 = 800;
/// The cut comes more than this many steps into a pause. The log has then heard of a control page
/// that no sync followed: control pages and reports come more often.
const PAUSE_STEPS: u64 = 20;
/// The slots of each stream: few, so that every slot is written several times.
const REHEARSED_SLOTS: u32 = 64;

/// A cut of a simulated disk, and its judgement.
#[derive(Debug, Clone, Serialize)]
pub struct RehearsedCut {
    /// Words for the disk.
    pub disk: &'static str,
    /// The verdict that follows from the disk's behaviour.
    pub expected: CutVerdict,
    /// The judgement by the log.
    pub report: CutReport,
    /// Damaged acknowledged writes, as the disk itself counts them.
    pub damaged: u64,
    /// True if verdict and every count agree with the disk's own account.
    pub is_right: bool,
}

/// Cuts the power of one disk and judges it by the log that `server` keeps.
pub fn rehearse(
    behaviour: DiskBehaviour,
    seed: u64,
    server: &str,
) -> Result<RehearsedCut, CutError> {
    let mut rehearsal = Rehearsal::new(behaviour, seed);
    let mut client = LogClient::connect(server, &Token::default())?;
    client.start(&rehearsal.run)?;
    let reported = rehearsal.write_until_cut(&mut client)?;
    drop(client);
    rehearsal.disk.cut();
    let log = LogClient::connect(server, &Token::default())?.fetch(&rehearsal.run.run)?;
    let facts = VerifyFacts {
        has_restarted: None,
        is_same_target: false,
    };
    let report = judge(&log, &rehearsal.content(), facts);
    Ok(rehearsal.compare(behaviour, &reported, report))
}

/// A rehearsal: a run that writes to a simulated disk by a simulated clock.
struct Rehearsal {
    run: RunDescription,
    disk: VolatileDisk,
    schedule: CommitSchedule,
    random: Splitmix,
    /// The writes of each stream that are durable, or for control pages, accepted.
    counts: Vec<u64>,
}

impl Rehearsal {
    fn new(behaviour: DiskBehaviour, seed: u64) -> Self {
        // Disks of the same seed are different runs.
        let mut random = Splitmix(seed ^ (behaviour as u64) << 60);
        let run = format!("{:016x}{:016x}", random.next_number(), random.next_number());
        let mut streams = RunDescription::streams(2, true);
        for stream in &mut streams {
            stream.slots = REHEARSED_SLOTS;
        }
        let run = RunDescription {
            run,
            started_ms: 0,
            host: "rehearsal".to_owned(),
            boot_id: String::new(),
            target: CutTarget {
                path: behaviour.title().to_owned(),
                kind: TargetKind::BlockDevice,
                size_bytes: 0,
                serial: None,
                model: None,
                inode: 0,
                filesystem: None,
            },
            method: CutMethod::Fdatasync,
            is_control_evidence: true,
            streams,
            before: None,
        };
        let mut rehearsal = Self {
            disk: VolatileDisk::new(behaviour, random.next_number()),
            schedule: CommitSchedule::new(random.next_number()),
            counts: vec![0; run.streams.len()],
            random,
            run,
        };
        rehearsal.lay_out();
        rehearsal
    }

    /// Puts the first content of every page on the medium. On a real disk it is old enough to be
    /// there, whatever the disk does with syncs.
    fn lay_out(&mut self) {
        let mut layout = VolatileDisk::new(DiskBehaviour::WriteThrough, 0);
        for (index, stream) in self.run.streams.clone().into_iter().enumerate() {
            if !stream.is_paged() {
                continue;
            }
            for slot in 0..stream.slots {
                layout.write((index, u64::from(slot)), 0, Some(self.page(index, slot, 0)));
            }
        }
        self.disk.take_medium(layout);
    }

    /// The content of a write of the stream with this index.
    fn page(&self, index: usize, slot: u32, number: u64) -> Vec<u8> {
        let bytes = if self.run.streams[index].is_paged() {
            PAGE_BYTES
        } else {
            FILE_BYTES
        };
        let mut page = vec![0; bytes];
        fill(&mut page, self.run.label(index, slot, number));
        page
    }

    /// Writes, syncs and reports until the cut; returns all that was reported.
    fn write_until_cut(&mut self, client: &mut LogClient) -> Result<Vec<RunProgress>, CutError> {
        let cut_after = STEPS_MIN + self.random.below(STEPS_MIN);
        let mut reported = Vec::new();
        let mut paused_steps = 0;
        for step in 0.. {
            let now = STEP * step as u32;
            let is_burst = self.schedule.time_until_commit(now).is_zero();
            paused_steps = if is_burst { 0 } else { paused_steps + 1 };
            for index in 0..self.run.streams.len() {
                let is_control = self.run.streams[index].kind == StreamKind::Control;
                if is_control && step % CONTROL_STEPS == 0 {
                    self.write(index);
                    self.counts[index] += 1;
                } else if !is_control && is_burst {
                    self.write(index);
                    self.disk.sync();
                    self.counts[index] += 1;
                }
            }
            if step % REPORT_STEPS == 0 {
                let progress = RunProgress {
                    elapsed_ns: now.as_nanos() as u64,
                    counts: self.counts.clone(),
                };
                client.report(&progress)?;
                reported.push(progress);
            }
            if step >= cut_after && paused_steps > PAUSE_STEPS {
                // One page is being written when the power goes.
                self.write(0);
                break;
            }
        }
        Ok(reported)
    }

    /// Gives the disk the next write of a stream.
    fn write(&mut self, index: usize) {
        let (stream, number) = (self.run.streams[index], self.counts[index] + 1);
        let slot = stream.slot_of(number);
        if stream.kind != StreamKind::Entries {
            let (place, page) = ((index, u64::from(slot)), self.page(index, slot, number));
            return self.disk.write(place, number, Some(page));
        }
        self.disk.write((index, number), number, Some(Vec::new()));
        if let Some(old) = stream.replaced_write(number) {
            self.disk.write((index, old), number, None);
        }
    }

    /// The content of the disk as a verifier reads it.
    fn content(&self) -> Vec<StreamContent> {
        let mut content = Vec::new();
        for (index, stream) in self.run.streams.iter().enumerate() {
            content.push(if stream.kind == StreamKind::Entries {
                StreamContent::Names(self.disk.places(index).collect())
            } else {
                StreamContent::Slots(
                    (0..stream.slots)
                        .map(|slot| self.slot_state(index, slot))
                        .collect(),
                )
            });
        }
        content
    }

    fn slot_state(&self, index: usize, slot: u32) -> SlotState {
        match self.disk.content((index, u64::from(slot))) {
            Some(content) => inspect(content, self.run.label(index, slot, 0)),
            None => SlotState::Foreign,
        }
    }

    /// Compares the judgement with the disk's own account.
    fn compare(
        &self,
        behaviour: DiskBehaviour,
        reported: &[RunProgress],
        report: CutReport,
    ) -> RehearsedCut {
        let (counts, end_ns) = match reported.last() {
            Some(last) => (&last.counts, last.elapsed_ns),
            None => (&self.counts, 0),
        };
        let mut damaged = 0;
        let mut first_damage_ns: Option<u64> = None;
        let mut streams_agree = true;
        let mut outcomes = report.streams.iter();
        for (index, stream) in self.run.streams.iter().enumerate() {
            if stream.kind == StreamKind::Control {
                continue;
            }
            let damaged_writes: Vec<u64> = (1..=counts[index])
                .filter(|n| self.is_damaged(index, *n, counts[index]))
                .collect();
            if let Some(number) = damaged_writes.first()
                && let Some(heard) = reported
                    .iter()
                    .find(|progress| progress.counts[index] >= *number)
            {
                first_damage_ns = Some(match first_damage_ns {
                    Some(first_ns) => heard.elapsed_ns.min(first_ns),
                    None => heard.elapsed_ns,
                });
            }
            damaged += damaged_writes.len() as u64;
            let judged = outcomes.next().map(|outcome| outcome.damaged());
            streams_agree &= judged == Some(damaged_writes.len() as u64);
        }
        let lost_seconds = match first_damage_ns {
            Some(first_ns) => ((end_ns - first_ns) / 1_000_000) as f64 / 1e3,
            None => 0.0,
        };
        let expected = match behaviour {
            DiskBehaviour::Honest => CutVerdict::Honest,
            DiskBehaviour::WriteThrough => CutVerdict::NotProven,
            _ => CutVerdict::Lying,
        };
        let reason = match expected {
            CutVerdict::NotProven => Some(NotProvenReason::NothingVanished),
            CutVerdict::Honest | CutVerdict::Lying => None,
        };
        let is_right = report.verdict == expected
            && report.reason == reason
            && streams_agree
            && report.lost_seconds == lost_seconds
            && (damaged > 0) == (expected == CutVerdict::Lying);
        RehearsedCut {
            disk: behaviour.title(),
            expected,
            report,
            damaged,
            is_right,
        }
    }

    /// True of an acknowledged write that is neither there nor replaced by a later one. A page with
    /// sectors of two writes counts as damage of the last acknowledged write of its slot.
    fn is_damaged(&self, index: usize, number: u64, count: u64) -> bool {
        let stream = self.run.streams[index];
        if stream.kind == StreamKind::Entries {
            return self.is_entry_damaged(index, number, count);
        }
        let Some(stored) = self.disk.stored((index, u64::from(stream.slot_of(number)))) else {
            return true;
        };
        let is_last = number + u64::from(stream.slots) > count;
        if stored.is_torn {
            // A write in flight may be torn; what it tears has to be the acknowledged one.
            return is_last && stored.oldest < number;
        }
        stored.number < number
    }

    /// True of an acknowledged write of an entry that the disk lost: its name is missing, or the
    /// name that it removed is back.
    fn is_entry_damaged(&self, index: usize, number: u64, count: u64) -> bool {
        let slots = u64::from(self.run.streams[index].slots);
        if number > slots && self.disk.content((index, number - slots)).is_some() {
            return true;
        }
        // Writes in flight may have removed the oldest names.
        let must_exist = number + slots > count + self.run.streams[index].ahead_max();
        must_exist && self.disk.content((index, number)).is_none()
    }
}

#[cfg(test)]
mod tests;
