//! Plan files: several workloads in one TOML file, whose keys are the flags of `run`. Reads the
//! text, and resolves the workloads on real targets, with errors that name file, line and workload.

use crate::failure::Failure;
use crate::workload::{
    Bytes, Content, MemberError, ResolveContext, ResolvedGroup, WORKLOADS_MAX, WorkloadFlags,
    WorkloadName, parse_key, resolve_group,
};
use diskproof_analysis::expect::Expected;
use diskproof_model::plan::{Skipped, Workload};
use diskproof_model::target::TargetIdentity;
use serde::Deserialize;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// Thousands of workloads with every key fit into this. A larger file is not a plan, and would take
/// memory and time to read.
pub const PLAN_FILE_BYTES_MAX: u64 = 1 << 20;
/// An error quotes no more of a long line, so that the message after it stays visible. Chosen, not
/// measured.
const QUOTED_CHARS_MAX: usize = 60;

/// The content of a plan file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlanFile {
    /// The author's note, which the record gets.
    pub note: Option<String>,
    /// Seed of every random choice.
    pub seed: Option<u64>,
    /// Size of the scratch file.
    pub size: Option<Bytes>,
    /// The targets, unless the command line names some.
    pub targets: Vec<PathBuf>,
    /// The scratch file of each target, where they differ.
    pub scratch_files: Vec<ScratchFile>,
    /// The workloads, with the defaults filled in.
    pub workloads: Vec<PlannedWorkload>,
    /// The limits that the workloads have to meet, in a profile of `--for`.
    pub limits: Vec<FitnessLimit>,
}

/// A scratch file of a target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScratchFile {
    /// The size of the file; 0 where the target is no directory.
    pub bytes: u64,
    /// The file under which it stays in its directory; `None` where it has no name and vanishes.
    pub kept: Option<KeptFile>,
}

impl ScratchFile {
    /// The name of the file that stays, or of the first of several.
    pub(crate) fn name(&self) -> Option<&str> {
        self.kept.as_ref()?.first_name()
    }
}

/// A scratch file that stays in its directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptFile {
    /// The name of the file, or those of several files that hold an equal part each.
    pub names: Vec<String>,
    /// The bytes of each file at the end: of several, which may have a rest behind their parts, and
    /// of a single one, which has whole pages until then. 0 where the target says it.
    pub file_bytes: u64,
    /// Where the part begins in each of several files.
    pub part_start: u64,
    /// True if several files are there already, as long as they must be.
    pub is_complete: bool,
}

impl KeptFile {
    /// A single file of this name.
    pub(crate) fn named(name: String) -> Self {
        Self {
            names: vec![name],
            ..Self::default()
        }
    }

    /// The name of the file, or of the first of several.
    pub(crate) fn first_name(&self) -> Option<&str> {
        self.names.first().map(String::as_str)
    }

    /// The path of one of the files, whose target is their directory or the file itself.
    pub(crate) fn path_of(name: &str, target: &Path) -> PathBuf {
        if target.is_dir() {
            target.join(name)
        } else {
            target.with_file_name(name)
        }
    }

    /// The file that holds this byte of a target of so many bytes, and the place of the byte in it.
    pub(crate) fn place(&self, offset: u64, target_bytes: u64) -> KeptPlace<'_> {
        let last = self.names.len().saturating_sub(1);
        let part_bytes = (target_bytes / self.names.len().max(1) as u64).max(1);
        let index = usize::try_from(offset / part_bytes).map_or(last, |index| index.min(last));
        KeptPlace {
            name: &self.names[index],
            offset: offset - index as u64 * part_bytes + self.part_start,
        }
    }
}

/// A byte in one of the files of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeptPlace<'a> {
    /// The name of the file.
    pub name: &'a str,
    /// The place of the byte in it.
    pub offset: u64,
}

/// A limit of a profile.
#[derive(Debug, Clone, PartialEq)]
pub struct FitnessLimit {
    /// A few words on what is limited, such as `sync of the log`.
    pub name: String,
    /// The condition, as in `--expect`.
    pub expected: Expected,
    /// The page or person that states the limit.
    pub source: String,
}

/// A workload and its position in the file.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedWorkload {
    /// The line of its `[[workload]]`, from 1; 0 for a job of the command line.
    pub line: usize,
    /// The name of the workload, which no other of the file has.
    pub name: String,
    /// The keys of the workload, with the defaults of the file filled in.
    pub flags: WorkloadFlags,
}

/// The error of a plan file at a line, which counts from 1. `text` says what to do.
fn at_line(line: usize, text: impl Display) -> String {
    format!("line {line}: {text}")
}

/// The file as written. Its keys are those of users' files: none may be renamed or removed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    note: Option<String>,
    seed: Option<u64>,
    #[serde(default, deserialize_with = "parse_key")]
    size: Option<Bytes>,
    #[serde(default)]
    targets: Vec<PathBuf>,
    #[serde(default)]
    defaults: Option<Spanned<WorkloadFlags>>,
    #[serde(default)]
    workload: Vec<Spanned<WorkloadFlags>>,
    #[serde(default)]
    limit: Vec<Spanned<LimitKeys>>,
}

/// A limit as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitKeys {
    name: String,
    expect: Spanned<String>,
    source: String,
}

impl PlanFile {
    /// Reads the text of a plan file. The error names the line and says what to do.
    pub fn parse(text: &str) -> Result<Self, String> {
        let document: Document =
            toml::from_str(text).map_err(|error| syntax_error(text, &error))?;
        if let Some(first_too_many) = document.workload.get(WORKLOADS_MAX) {
            let count = document.workload.len();
            return Err(at_line(
                line_of(text, first_too_many),
                format!("the file has {count} workloads; a plan has at most {WORKLOADS_MAX}"),
            ));
        }
        let defaults = match document.defaults {
            Some(defaults) => read_defaults(text, defaults)?,
            None => WorkloadFlags::default(),
        };
        let mut workloads: Vec<PlannedWorkload> = Vec::new();
        for workload in document.workload {
            let line = line_of(text, &workload);
            let flags = workload.into_inner();
            let name = workload_name(&flags, &workloads).map_err(|why| at_line(line, why))?;
            workloads.push(PlannedWorkload {
                line,
                name,
                flags: flags.or(&defaults),
            });
        }
        if workloads.is_empty() {
            return Err(at_line(
                1,
                "the file has no workload; add a [[workload]] with a name, and keys such as rw = \
                 \"randread\"",
            ));
        }
        Ok(Self {
            scratch_files: Vec::new(),
            note: document.note,
            seed: document.seed,
            size: document.size,
            targets: document.targets,
            limits: read_limits(text, document.limit, &workloads)?,
            workloads,
        })
    }
}

/// The name of a workload that can follow these.
fn workload_name(flags: &WorkloadFlags, earlier: &[PlannedWorkload]) -> Result<String, String> {
    let Some(WorkloadName(name)) = &flags.name else {
        let why = "this [[workload]] has no name; add one such as name = \"random-reads\"";
        return Err(why.to_owned());
    };
    if earlier.iter().any(|other| other.name == *name) {
        return Err(format!(
            "two workloads have the name '{name}'; give each its own name"
        ));
    }
    if earlier.is_empty() && flags.together == Some(true) {
        return Err(format!(
            "'{name}' has together, but no workload comes before it; remove together, or put \
             another workload first"
        ));
    }
    Ok(name.clone())
}

/// The limits, each on a workload of the file.
fn read_limits(
    text: &str,
    limits: Vec<Spanned<LimitKeys>>,
    workloads: &[PlannedWorkload],
) -> Result<Vec<FitnessLimit>, String> {
    let mut read_limits = Vec::new();
    for limit in limits {
        let keys = limit.into_inner();
        let line = line_of(text, &keys.expect);
        let expected: Expected = keys
            .expect
            .into_inner()
            .parse()
            .map_err(|error| at_line(line, format!("expect: {error}")))?;
        let name = &expected.workload;
        if !workloads.iter().any(|workload| workload.name == *name) {
            return Err(at_line(
                line,
                format!("expect: the file has no workload '{name}'"),
            ));
        }
        read_limits.push(FitnessLimit {
            name: keys.name,
            expected,
            source: keys.source,
        });
    }
    Ok(read_limits)
}

/// The section [defaults], without the keys that belong to one workload.
fn read_defaults(text: &str, defaults: Spanned<WorkloadFlags>) -> Result<WorkloadFlags, String> {
    let line = line_of(text, &defaults);
    let flags = defaults.into_inner();
    let misplaced = if flags.name.is_some() {
        "name under [defaults] would name every workload; give each [[workload]] its own name"
    } else if flags.together.is_some() {
        "together under [defaults] would also apply to the first workload; write it in each \
         [[workload]] that runs together with the previous one"
    } else {
        return Ok(flags);
    };
    Err(at_line(line, misplaced))
}

/// The message of the TOML parser with the line that it is about, and a hint for keys of fio.
fn syntax_error(text: &str, error: &toml::de::Error) -> String {
    let line = match error.span() {
        Some(span) => line_of_byte(text, span.start),
        None => 1,
    };
    let source = text.lines().nth(line - 1).unwrap_or_default().trim();
    let mut message = error.message().trim().replace('\n', "; ");
    if let Some(hint) = unknown_field(&message).and_then(fio_key_hint) {
        message = hint;
    }
    if source.is_empty() {
        at_line(line, message)
    } else {
        at_line(line, format!("{}: {message}", quoted(source)))
    }
}

/// The field that this message of the TOML parser calls unknown.
fn unknown_field(message: &str) -> Option<&str> {
    let quoted_field = message.strip_prefix("unknown field `")?;
    quoted_field.split('`').next()
}

fn fio_key_hint(key: &str) -> Option<String> {
    let answer = diskproof_compat::fio_hint(key)?;
    Some(format!("fio's '{key}' {answer}"))
}

/// Text of a file for an error message, shortened where it is long.
pub(crate) fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The line of the text on which a value begins, from 1.
fn line_of<T>(text: &str, value: &Spanned<T>) -> usize {
    line_of_byte(text, value.span().start)
}

fn line_of_byte(text: &str, offset: usize) -> usize {
    let line_ends = text
        .bytes()
        .take(offset)
        .filter(|byte| *byte == b'\n')
        .count();
    line_ends + 1
}

/// No device has smaller sectors.
const SECTOR_BYTES: u32 = 512;

/// The workloads of a plan file on real targets.
pub(crate) struct ResolvedWorkloads {
    pub workloads: Vec<Workload>,
    /// The workloads that the targets' sectors exclude.
    pub skipped: Vec<Skipped>,
}

/// Resolves the workloads; `shown` is the name of the file in errors. `unit_bytes` is the sector of
/// the targets. Fails where none is left.
pub(crate) fn resolve_planned(
    shown: &str,
    planned: &[PlannedWorkload],
    mut context: ResolveContext,
    unit_bytes: u32,
) -> Result<ResolvedWorkloads, Failure> {
    let mut workloads = Vec::new();
    let mut skipped = Vec::new();
    for members in groups(planned) {
        let flags: Vec<&WorkloadFlags> = members.iter().map(|member| &member.flags).collect();
        match resolve_group(&flags, &context, unit_bytes) {
            Ok(ResolvedGroup::Skipped(group)) => skipped.extend(group),
            Ok(ResolvedGroup::Runs(together)) => {
                context.content = Content::Data;
                workloads.extend(together);
            }
            Err(MemberError { index, why }) => {
                return Err(workload_error(shown, &members[index], &why));
            }
        }
    }
    match skipped.first() {
        Some(Skipped { why, .. }) if workloads.is_empty() => Err(Failure::Usage(format!(
            "{shown}: {why}; use a multiple of {unit_bytes} for bs and span, or buffered = true"
        ))),
        _ => Ok(ResolvedWorkloads { workloads, skipped }),
    }
}

/// The error of a workload in a file. A job of fio has no line.
fn workload_error(file: &str, workload: &PlannedWorkload, why: &str) -> Failure {
    let name = &workload.name;
    Failure::Usage(match workload.line {
        0 => format!("{file}: workload '{name}': {why}"),
        line => format!("{file}: line {line}: workload '{name}': {why}"),
    })
}

/// The groups of workloads that run together, in order.
pub(crate) fn groups(planned: &[PlannedWorkload]) -> impl Iterator<Item = &[PlannedWorkload]> {
    planned.chunk_by(|_, next| next.flags.together == Some(true))
}

/// The largest sector of the devices directly below the targets.
pub(crate) fn sector_bytes(identities: &[TargetIdentity]) -> u32 {
    let mut largest_bytes = SECTOR_BYTES;
    for identity in identities {
        if let Some(layer) = identity.layers.first()
            && let Some(bytes) = layer.logical_block_bytes
        {
            largest_bytes = largest_bytes.max(bytes);
        }
    }
    largest_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        PlanFile::parse(text).expect_err(text)
    }

    #[test]
    fn plan_file_applies_its_defaults() {
        let plan = PlanFile::parse(
            r#"note = "n"
    seed = 7
    size = "2GiB"
    targets = ["/a", "/b"]
    [defaults]
    bs = "8k"
    iodepth = 32
    zones = "50/50:50/50"
    [[workload]]
    name = "one"
    bssplit = "4k/50:8k/50"
    rwmixread = 33.3

    [[workload]]
    name = "two"
    rw = "read"
    backward = true
    "#,
        )
        .unwrap();
        assert_eq!(
            (plan.note.as_deref(), plan.seed, plan.size.map(|s| s.0)),
            (Some("n"), Some(7), Some(2 << 30))
        );
        assert_eq!(plan.targets, [PathBuf::from("/a"), PathBuf::from("/b")]);
        let [one, two] = &plan.workloads[..] else {
            panic!("{plan:?}")
        };
        assert_eq!(
            (one.line, one.name.as_str(), two.line, two.name.as_str()),
            (9, "one", 14, "two")
        );
        // A key of a workload overrides the defaults that exclude it.
        assert!(one.flags.bs.is_none() && one.flags.bssplit.is_some() && one.flags.zones.is_some());
        assert!(
            two.flags.bs.is_some() && two.flags.zones.is_none() && two.flags.backward == Some(true)
        );
        assert_eq!(
            (
                one.flags.depth.map(|c| c.0),
                one.flags.rwmixread.map(|r| r.0)
            ),
            (Some(32), Some(333))
        );
    }

    #[test]
    fn plan_file_error_names_the_line_and_the_key() {
        // Behind a workload `a`, but for what stands before it.
        for (keys, part) in [
            ("bs = \"8x\"", "line 3: bs = \"8x\": '8x' "),
            ("bs = true", "line 3: bs = true: "),
            (
                "block = \"8k\"",
                "line 3: block = \"8k\": unknown field `block`",
            ),
            ("[[workload]]\nrw = \"read\"", "line 3: this [[workload]]"),
            ("[[workload]]\nname = \"a\"", "line 3: two workloads"),
            ("engine = \"x\"", "line 3: engine = \"x\": 'x' "),
            (
                "[[workload]]\nname = \"b\"\ntogether = \"a\"",
                "line 5: together = \"a\": ",
            ),
            ("depth = 1979-05-27", "line 3: depth = 1979-05-27: "),
            ("direct = 1", "line 3: direct = 1: fio's 'direct' "),
        ] {
            let error = error(&format!("[[workload]]\nname = \"a\"\n{keys}\n"));
            assert!(error.starts_with(part), "{keys}: {error}");
        }
        for (text, part) in [
            ("", "line 1: the file has no workload"),
            ("note = 1\n", "line 1: note = 1: "),
            ("seed = -1\n", "line 1: seed = -1: "),
            (
                "[[workload]]\nname = \"a b\"\n",
                "line 2: name = \"a b\": 'a b' ",
            ),
            (
                "[defaults]\nname = \"a\"\n[[workload]]\nname = \"b\"\n",
                "line 1: name under [defaults]",
            ),
            ("[workload]\nname = \"a\"\n", "line 1: [workload]: "),
            ("workload = [\n", "line 1: "),
            (
                "note = \"n\"\n[[workload]]\nname = \"a\"\ntogether = true\n",
                "line 2: 'a' has together",
            ),
            (
                "[defaults]\ntogether = true\n[[workload]]\nname = \"b\"\n",
                "line 1: together under [defaults]",
            ),
        ] {
            let error = error(text);
            assert!(error.starts_with(part), "{text}: {error}");
        }
    }

    #[test]
    fn limit_error_names_the_line_of_its_condition() {
        let head = "[[workload]]\nname = \"a\"\n[[limit]]\nname = \"l\"\nsource = \"s\"\n";
        for (condition, named) in [("b.iops>=1", "'b'"), ("a.iops", "'a.iops'")] {
            let error = error(&format!("{head}expect = \"{condition}\"\n"));
            assert!(
                error.starts_with("line 6: expect: ") && error.contains(named),
                "{error}"
            );
        }
    }

    #[test]
    fn plan_file_error_shortens_long_lines_and_refuses_too_many_workloads() {
        let long = error(&"x".repeat(10_000));
        let start = format!("line 1: {}…: ", "x".repeat(60));
        assert!(
            long.contains(&start) && long.chars().count() < 400,
            "{long}"
        );
        let many = error(&plan_text(1441));
        assert!(many.starts_with("line 2881: the file has 1441 "), "{many}");
        let most = PlanFile::parse(&plan_text(1440)).unwrap();
        assert_eq!(most.workloads.len(), 1440);
    }

    fn plan_text(workloads: usize) -> String {
        (0..workloads)
            .map(|i| format!("[[workload]]\nname = \"w{i}\"\n"))
            .collect()
    }
}
