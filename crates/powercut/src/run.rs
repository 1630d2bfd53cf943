//! Describes a run, as the writer announces it to the log: its streams, their slots, and the
//! target. Pure. Everything here may come from the network, so all of it is checked. It is the body
//! of a frame and the log on disk: a change of these types is one of `protocol::VERSION`.

use crate::page::{PAGE_BYTES, PageLabel};
use diskproof_model::target::{LayerKind, TargetIdentity, TargetKind};
use serde::{Deserialize, Serialize};

/// Streams of a run at most: more than workers, control, files and entries together have. Bounds
/// what a description from the network makes its reader hold.
pub(crate) const STREAMS_MAX: usize = 32;
/// Slots of a stream at least: with fewer, the window of one write would be more than the part that
/// [`WINDOW_DIVISOR`] allows.
const SLOTS_MIN: u32 = WINDOW_DIVISOR;
/// Slots of a stream at most: 8 GiB of pages.
const SLOTS_MAX: u32 = 1 << 20;
/// Longest text of a description, in bytes: Linux's PATH_MAX.
const TEXT_BYTES_MAX: usize = 4096;
/// Numbers that JSON readers of every language keep exact (RFC 8259, 6).
pub(crate) const EXACT_MAX: u64 = 1 << 53;

// The numbers of slots are chosen, not measured. The region of a run stays a few ten MiB, which is
// read back within a second or two, and the window of a stream, a quarter of its slots, spans the
// round trips of the reports to the log.
/// Pages of one worker: 8 MiB.
pub(crate) const PAGE_SLOTS: u32 = 1024;
/// Control pages of a run: 4 MiB.
pub(crate) const CONTROL_SLOTS: u32 = 512;
/// Small files of a run. Each write of one takes several syncs, so that a few are enough.
const FILE_SLOTS: u32 = 64;
/// Places of entries in the directory of a run: as many as files, for the same reason.
const ENTRY_SLOTS: u32 = 64;
/// A stream may be ahead of the log by the number of its slots divided by this. A smaller divisor
/// lets a stream write on while the log is slow. But a slot that a write in flight may have
/// replaced is judged less strictly, and there are more of those. Chosen, not measured.
const WINDOW_DIVISOR: u32 = 4;
/// The most workers of a run. Chosen: more writers keep no disk busier, and each needs a region.
pub const WORKERS_MAX: u16 = 16;

/// The kind of content that a stream writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StreamKind {
    /// Pages, each synced before it is reported.
    Pages,
    /// Small files: written, synced, renamed, and the directory synced.
    Files,
    /// Names: each step makes one and removes an old one, then syncs the directory.
    Entries,
    /// Pages that the disk accepted and that no sync of their own followed. Their loss shows that
    /// the disk lost its power; no promise covers them.
    Control,
}

impl StreamKind {
    /// Returns the kind's name in a report.
    pub fn title(self) -> &'static str {
        match self {
            Self::Pages => "8 kB pages",
            Self::Files => "renamed files",
            Self::Entries => "directory entries",
            Self::Control => "control pages",
        }
    }
}

/// One stream: write `n` of it goes to slot `(n - 1) % slots`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteStream {
    /// The stream writes this kind of content.
    pub kind: StreamKind,
    /// The stream writes this many slots in turn.
    pub slots: u32,
}

impl WriteStream {
    fn new(kind: StreamKind, slots: u32) -> Self {
        Self { kind, slots }
    }

    /// Returns the slot that a write goes to. Writes count from 1.
    pub(crate) fn slot_of(self, number: u64) -> u32 {
        (number.saturating_sub(1) % u64::from(self.slots)) as u32
    }

    /// Returns the last of the stream's first `count` writes that went to this slot; 0 if none did.
    pub(crate) fn last_write_to(self, slot: u32, count: u64) -> u64 {
        let (slot, slots) = (u64::from(slot), u64::from(self.slots));
        if count <= slot {
            return 0;
        }
        (count - 1 - slot) / slots * slots + slot + 1
    }

    /// Returns the write that this one replaces in its slot; `None` for the first write there.
    pub(crate) fn replaced_write(self, number: u64) -> Option<u64> {
        match number.checked_sub(u64::from(self.slots)) {
            Some(0) | None => None,
            replaced => replaced,
        }
    }

    /// Returns the number of writes by which the stream may be ahead of the log.
    pub(crate) fn ahead_max(self) -> u64 {
        u64::from((self.slots / WINDOW_DIVISOR).max(1))
    }

    /// True if its slots are pages of the region.
    pub(crate) fn is_paged(self) -> bool {
        matches!(self.kind, StreamKind::Pages | StreamKind::Control)
    }
}

/// The way in which a run makes its pages durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CutMethod {
    /// fdatasync(2) after each write.
    Fdatasync,
    /// fsync(2) after each write.
    Fsync,
    /// Writes through a descriptor with O_DSYNC.
    OpenDatasync,
    /// Writes through a descriptor with O_SYNC.
    OpenSync,
}

impl CutMethod {
    /// Returns the method's name in PostgreSQL's wal_sync_method.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fdatasync => "fdatasync",
            Self::Fsync => "fsync",
            Self::OpenDatasync => "open_datasync",
            Self::OpenSync => "open_sync",
        }
    }
}

/// The target of a run, as far as it helps to recognise it after the cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutTarget {
    /// Absolute path, symlinks resolved.
    pub path: String,
    /// The kind of the target.
    pub kind: TargetKind,
    /// Bytes: of the file, the device, or the directory's filesystem.
    pub size_bytes: u64,
    /// Serial number of the device, where it has one.
    pub serial: Option<String>,
    /// Model of the device.
    pub model: Option<String>,
    /// Inode of a file or directory.
    pub inode: u64,
    /// Type and mount point of the filesystem.
    pub filesystem: Option<(String, String)>,
}

impl CutTarget {
    /// Takes from an identity what helps to recognise the target.
    pub fn from_identity(identity: &TargetIdentity) -> Self {
        // A partition has the serial number of its disk.
        let own_layers = match &identity.layers[..] {
            [part, disk, ..] if part.kind == LayerKind::Partition => vec![part, disk],
            [first, ..] => vec![first],
            [] => Vec::new(),
        };
        let model = match own_layers.first() {
            Some(first) => non_blank(first.model.as_deref()),
            None => None,
        };
        Self {
            path: identity.path.clone(),
            kind: identity.kind,
            size_bytes: identity.size_bytes,
            serial: own_layers
                .iter()
                .find_map(|layer| non_blank(layer.serial.as_deref())),
            model,
            inode: identity.inode,
            filesystem: identity
                .filesystem
                .as_ref()
                .map(|found| (found.kind.clone(), found.mount_point.clone())),
        }
    }

    /// Returns the reason, as a clause for the user, why `found` cannot be this target of the run;
    /// `None` where it can be.
    pub fn difference(&self, found: &Self) -> Option<String> {
        if self.kind != found.kind {
            return Some("it is of another kind".to_owned());
        }
        if self.size_bytes != found.size_bytes && self.kind != TargetKind::Directory {
            return Some(format!(
                "its size was {} and is now {}",
                self.size_bytes, found.size_bytes
            ));
        }
        if let (TargetKind::BlockDevice, Some(before), Some(now)) =
            (self.kind, &self.serial, &found.serial)
            && before != now
        {
            return Some(format!("its serial number was {before} and is now {now}"));
        }
        if let (Some((before, point)), Some((now, now_point))) =
            (&self.filesystem, &found.filesystem)
        {
            if before != now {
                return Some(format!(
                    "its filesystem was {before} and is now {now}. {MOUNT_REMEDY}"
                ));
            }
            if point != now_point {
                return Some(format!(
                    "its filesystem was mounted at {point} and is now mounted at {now_point}. \
                     {MOUNT_REMEDY}"
                ));
            }
        }
        if self.kind != TargetKind::BlockDevice && self.inode != found.inode {
            return Some("another file or directory has its name".to_owned());
        }
        None
    }
}

/// The text, unless it is blank.
fn non_blank(text: Option<&str>) -> Option<String> {
    let text = text?;
    if text.trim().is_empty() {
        return None;
    }
    Some(text.to_owned())
}

/// The remedy where another filesystem is found than that of the run.
const MOUNT_REMEDY: &str = "Mount it as before, then verify. If it cannot be mounted even after \
                            its journal was replayed, the disk lost writes that the filesystem \
                            had synced, as a lying disk does; a run on the device itself \
                            (--destroy) counts them";

/// Begins the fingerprint of a region where all bytes are the same. The byte follows it.
pub(crate) const BLANK: &str = "blank";

/// A run, as the writer announces it before its first write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunDescription {
    /// The run, in 32 hexadecimal digits.
    pub run: String,
    /// The time of the start by the writer's clock, in milliseconds since 1970.
    pub started_ms: u64,
    /// Name of the host that writes.
    pub host: String,
    /// The kernel's id of this boot.
    pub boot_id: String,
    /// The run writes to this target.
    pub target: CutTarget,
    /// Pages become durable in this way.
    pub method: CutMethod,
    /// True if a control page that vanished shows a loss of power: only where an accepted write is
    /// in the disk and depends on nothing that a filesystem keeps in memory.
    pub is_control_evidence: bool,
    /// The run writes these streams.
    pub streams: Vec<WriteStream>,
    /// The fingerprint of the target before the run ([`crate::region_fingerprint`]); `None` where
    /// it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

impl RunDescription {
    /// True if `found` is certainly the target of the run, and lost all writes of the run: its
    /// fingerprint is `now` the same as before. A blank region proves that only on a device with
    /// the serial number of the run, since another blank device would look the same.
    pub fn is_undone(&self, found: &CutTarget, now: Option<&str>) -> bool {
        let Some(fingerprint) = now else {
            return false;
        };
        if self.before.as_deref() != Some(fingerprint) {
            return false;
        }
        if !fingerprint.starts_with(BLANK) {
            return true;
        }
        found.kind == TargetKind::BlockDevice
            && self.target.serial.is_some()
            && self.target.serial == found.serial
            && self.target.difference(found).is_none()
    }

    /// True if this host wrote the run, or another host wrote it to the device with the serial
    /// number of `found`. Any other run belongs to a target of its host that only has the same
    /// path.
    pub fn is_of_host(&self, host: &str, found: &CutTarget) -> bool {
        let is_same_device = found.kind == TargetKind::BlockDevice
            && found.serial.is_some()
            && self.target.serial == found.serial;
        self.host == host || is_same_device
    }

    /// Returns the streams of a run: one of pages for each worker, then the control pages, then in
    /// a directory its files and its entries.
    pub fn streams(workers: u16, is_directory: bool) -> Vec<WriteStream> {
        let mut streams = Vec::new();
        for _ in 0..workers.min(WORKERS_MAX) {
            streams.push(WriteStream::new(StreamKind::Pages, PAGE_SLOTS));
        }
        streams.push(WriteStream::new(StreamKind::Control, CONTROL_SLOTS));
        if is_directory {
            streams.push(WriteStream::new(StreamKind::Files, FILE_SLOTS));
            streams.push(WriteStream::new(StreamKind::Entries, ENTRY_SLOTS));
        }
        streams
    }

    /// The number of the run; `None` in a description that is not valid.
    pub(crate) fn run_number(&self) -> Option<u128> {
        parse_run(&self.run)
    }

    /// Checks a description that came from elsewhere. The error says what is wrong with it.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let target = &self.target;
        let optional = [&target.serial, &target.model, &self.before];
        let filesystem = target
            .filesystem
            .iter()
            .flat_map(|(kind, mount_point)| [kind, mount_point]);
        let mut texts = [&self.host, &self.boot_id, &target.path]
            .into_iter()
            .chain(optional.into_iter().flatten())
            .chain(filesystem);
        if self.run_number().is_none() {
            return Err("the run's name is not 32 hexadecimal digits");
        }
        if texts.any(|text| text.len() > TEXT_BYTES_MAX || text.contains(char::is_control)) {
            return Err("a text is too long or holds control characters");
        }
        if self.started_ms > EXACT_MAX {
            return Err("the start is no date");
        }
        if self.streams.is_empty() || self.streams.len() > STREAMS_MAX {
            return Err("the number of streams is out of range");
        }
        if (self.streams.iter()).any(|stream| !(SLOTS_MIN..=SLOTS_MAX).contains(&stream.slots)) {
            return Err("a number of slots is out of range");
        }
        Ok(())
    }

    /// Bytes that pages and control pages cover, from the start of the target.
    pub fn region_bytes(&self) -> u64 {
        self.page_offset(self.streams.len(), 0)
    }

    /// Returns the offset of a page in the target, in bytes. `stream` is at most the number of
    /// streams.
    pub(crate) fn page_offset(&self, stream: usize, slot: u32) -> u64 {
        let mut page = u64::from(slot);
        for before in &self.streams[..stream] {
            if before.is_paged() {
                page += u64::from(before.slots);
            }
        }
        page * PAGE_BYTES as u64
    }

    /// Returns the label of write `number` of a stream in this slot. The caller must have checked
    /// the description: with a name that is not valid, its pages would pass for those of run 0.
    pub(crate) fn label(&self, stream: usize, slot: u32, number: u64) -> PageLabel {
        let run = self.run_number();
        debug_assert!(run.is_some(), "unchecked description");
        PageLabel {
            run: run.unwrap_or_default(),
            started_s: u32::try_from(self.started_ms / 1000).unwrap_or(u32::MAX),
            stream: stream as u16,
            slot,
            number,
        }
    }

    /// The name of the run's own directory inside the target.
    pub fn directory_name(&self) -> String {
        format!(".diskproof-powercut-{}", short_id(&self.run))
    }
}

/// Returns the first eight digits of a run's name, by which people name it.
pub fn short_id(run: &str) -> &str {
    run.get(..8).unwrap_or(run)
}

/// Returns the number that a run's name is; `None` unless it is 32 lower-case hexadecimal digits.
pub(crate) fn parse_run(text: &str) -> Option<u128> {
    let is_name = text.len() == 32
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !is_name {
        return None;
    }
    u128::from_str_radix(text, 16).ok()
}

/// The progress of each stream: its first writes up to this number are durable, or for control
/// pages, accepted by the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunProgress {
    /// The time since the first write, in nanoseconds of the writer's clock.
    pub elapsed_ns: u64,
    /// One number for each stream, in the order of the description: the log takes no others
    /// (`log_store::check_follows`).
    pub counts: Vec<u64>,
}

/// The log of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunLog {
    /// The writer announced this.
    pub description: RunDescription,
    /// The writer reported this progress, in order. Some reports of a long run may be missing, but
    /// not the last one.
    pub progress: Vec<RunProgress>,
    /// The end of the run, as far as the log knows.
    pub end: LogEnd,
}

/// The way in which a log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogEnd {
    /// The writer fell silent.
    Silence,
    /// The writer said that it stopped.
    Stopped,
}

impl RunLog {
    /// Returns the number of writes that each stream has reported, in the order of the description.
    pub fn counts(&self) -> Vec<u64> {
        match self.progress.last() {
            Some(last) => last.counts.clone(),
            None => vec![0; self.description.streams.len()],
        }
    }

    /// Returns the time from the first write until the log heard that this write is durable, in
    /// nanoseconds; `None` where it never did. `stream` is one of the description's.
    pub(crate) fn reported_ns(&self, stream: usize, number: u64) -> Option<u64> {
        let report = self
            .progress
            .partition_point(|progress| progress.counts[stream] < number);
        Some(self.progress.get(report)?.elapsed_ns)
    }
}

#[cfg(test)]
pub(crate) fn example() -> RunDescription {
    RunDescription {
        run: "0123456789abcdef0123456789abcdef".to_owned(),
        started_ms: 1_700_000_000_000,
        host: "db1".to_owned(),
        boot_id: "one".to_owned(),
        target: CutTarget {
            path: "/dev/sdx".to_owned(),
            kind: TargetKind::BlockDevice,
            size_bytes: 1 << 30,
            serial: Some("S1".to_owned()),
            model: None,
            inode: 7,
            filesystem: None,
        },
        method: CutMethod::Fdatasync,
        is_control_evidence: true,
        streams: RunDescription::streams(2, true),
        before: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A log on disk and a writer of another build hold this text. A name or an order that changes
    /// makes them unreadable, or finds pages in wrong places: it needs another version of the
    /// protocol, and then this test has that number.
    #[test]
    fn json_of_a_description_belongs_to_the_version_of_the_protocol() {
        let mut run = example();
        run.target.model = Some("M".to_owned());
        run.target.filesystem = Some(("ext4".to_owned(), "/data".to_owned()));
        run.before = Some("blank 00".to_owned());
        let stored = concat!(
            r#"{"run":"0123456789abcdef0123456789abcdef","started_ms":1700000000000,"#,
            r#""host":"db1","boot_id":"one","#,
            r#""target":{"path":"/dev/sdx","kind":"block-device","size_bytes":1073741824,"#,
            r#""serial":"S1","model":"M","inode":7,"filesystem":["ext4","/data"]},"#,
            r#""method":"fdatasync","is_control_evidence":true,"#,
            r#""streams":[{"kind":"pages","slots":1024},{"kind":"pages","slots":1024},"#,
            r#"{"kind":"control","slots":512},{"kind":"files","slots":64},"#,
            r#"{"kind":"entries","slots":64}],"before":"blank 00"}"#
        );
        assert_eq!(serde_json::to_string(&run).unwrap(), stored);
        assert_eq!(serde_json::from_str::<RunDescription>(stored).unwrap(), run);
        let methods = [
            CutMethod::Fsync,
            CutMethod::OpenDatasync,
            CutMethod::OpenSync,
        ];
        let names = serde_json::to_string(&methods).unwrap();
        assert_eq!(names, r#"["fsync","open_datasync","open_sync"]"#);
        let ends = serde_json::to_string(&[LogEnd::Silence, LogEnd::Stopped]).unwrap();
        assert_eq!(ends, r#"["silence","stopped"]"#);
        assert_eq!(crate::protocol::VERSION, 1);
    }

    #[test]
    fn regions_of_streams_lie_side_by_side() {
        let run = example();
        assert_eq!(run.page_offset(0, 0), 0);
        assert_eq!(run.page_offset(1, 0), 8 << 20);
        assert_eq!(run.page_offset(2, 1), (16 << 20) + 8192);
        assert_eq!(run.region_bytes(), 20 << 20);
        assert_eq!(run.check(), Ok(()));
    }

    #[test]
    fn description_out_of_range_is_refused() {
        let wrong = |change: fn(&mut RunDescription)| {
            let mut run = example();
            change(&mut run);
            run.check().is_err()
        };
        assert!(wrong(|run| run.run = "../../etc/passwd".to_owned()));
        assert!(wrong(|run| run.run.make_ascii_uppercase()));
        assert!(wrong(|run| run.host = "x".repeat(5000)));
        assert!(wrong(|run| run.target.path = "a\u{1b}[2J".to_owned()));
        assert!(wrong(|run| run.streams.clear()));
        assert!(wrong(|run| run.streams[0].slots = 0));
        assert!(wrong(|run| run.streams[0].slots = u32::MAX));
        assert!(wrong(|run| run.streams = vec![run.streams[0]; 33]));
    }

    #[test]
    fn unmounted_filesystem_is_not_taken_for_the_target() {
        let before = CutTarget {
            kind: TargetKind::Directory,
            filesystem: Some(("ext4".to_owned(), "/data".to_owned())),
            ..example().target
        };
        let now = CutTarget {
            filesystem: Some(("ext4".to_owned(), "/".to_owned())),
            inode: 9,
            ..before.clone()
        };
        let why = before.difference(&now).unwrap_or_default();
        assert!(why.contains(" /data"), "{why}");
        assert_eq!(before.difference(&before), None);
    }

    #[test]
    fn another_disk_of_the_same_size_is_recognised_by_its_serial_number() {
        let before = example().target;
        let with = |serial: Option<&str>| CutTarget {
            serial: serial.map(str::to_owned),
            ..before.clone()
        };
        assert!(before.difference(&with(Some("S2"))).is_some());
        assert_eq!(before.difference(&with(None)), None);
        assert_eq!(with(None).difference(&before), None);
    }

    #[test]
    fn blank_device_is_undone_only_with_its_serial_number() {
        let (blank, hash) = (Some("blank 00"), Some("a1b2"));
        let undone = |before: Option<&str>, serial: Option<&str>, now: Option<&str>| {
            let mut run = example();
            run.before = before.map(str::to_owned);
            let found = CutTarget {
                serial: serial.map(str::to_owned),
                ..run.target.clone()
            };
            run.is_undone(&found, now)
        };
        let (same, other) = (Some("S1"), Some("S2"));
        assert!(undone(blank, same, blank));
        assert!(undone(hash, same, hash) && undone(hash, None, hash));
        assert!(!undone(blank, None, blank) && !undone(blank, other, blank));
        assert!(!undone(blank, same, Some("blank ff")));
        assert!(!undone(hash, same, blank) && !undone(None, same, blank));
        assert!(!undone(None, same, None));
        // A file's serial number is that of its disk, on which many blank files may lie.
        let mut run = example();
        (run.before, run.target.kind) = (blank.map(str::to_owned), TargetKind::File);
        assert!(!run.is_undone(&run.target.clone(), blank));
        run.target = CutTarget {
            serial: None,
            ..example().target
        };
        assert!(!run.is_undone(&run.target.clone(), blank));
    }

    #[test]
    fn run_of_another_host_is_known_by_the_serial_number_of_its_device() {
        let run = example();
        let other_disk = CutTarget {
            serial: Some("S2".to_owned()),
            ..run.target.clone()
        };
        let directory = CutTarget {
            kind: TargetKind::Directory,
            ..run.target.clone()
        };
        assert!(run.is_of_host("db1", &other_disk));
        assert!(run.is_of_host("db2", &run.target));
        for found in [other_disk, directory] {
            assert!(!run.is_of_host("db2", &found), "{found:?}");
        }
    }

    proptest! {
        #[test]
        fn last_write_of_a_slot_agrees_with_counting(slots in 4..40u32, count in 0..200u64) {
            let stream = WriteStream { kind: StreamKind::Pages, slots };
            for slot in 0..slots {
                let counted = (1..=count).filter(|n| stream.slot_of(*n) == slot).max();
                prop_assert_eq!(stream.last_write_to(slot, count), counted.unwrap_or(0));
            }
        }
    }
}
