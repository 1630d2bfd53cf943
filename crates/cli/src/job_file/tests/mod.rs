//! Exact translations of job files.

mod effects;
mod fio_counts;
mod loads;
mod spread;
mod syntax;
mod table;
mod targets;

use super::*;
use crate::workload::{Position, WorkloadFlags};
use diskproof_model::op::OpKind;
use diskproof_model::plan::{EngineChoice, EngineKind};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A machine whose files are given.
#[derive(Default)]
struct Fake {
    variables: BTreeMap<&'static str, String>,
    files: BTreeMap<&'static str, String>,
    found: BTreeMap<&'static str, PathKind>,
    /// Files that diskproof made, besides /data/own.
    own: Vec<&'static str>,
}

impl Environment for Fake {
    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    fn keywords(&self) -> Keywords {
        [("$pagesize", 4096), ("$mb_memory", 64), ("$ncpus", 8)]
    }

    fn text(&self, path: &Path) -> Result<String, String> {
        self.files
            .get(path.to_str().unwrap())
            .cloned()
            .ok_or_else(|| "it is not there".to_owned())
    }

    fn path_kind(&self, path: &Path) -> PathKind {
        match path.to_str().unwrap() {
            "." | "/data" | "/other" | "/tmp" => PathKind::Directory,
            "/dev/sda" | "/dev/sdb" => PathKind::Device(8 * GIB),
            "/dev/big" => PathKind::Device(16 * GIB),
            "/data/table" | "/data/own" => PathKind::File(GIB),
            "/dev/null" => PathKind::Other("/dev/null: it is no disk".to_owned()),
            path => match (self.found.get(path), self.files.get(path)) {
                (Some(kind), _) => kind.clone(),
                (None, Some(text)) => PathKind::File(text.len() as u64),
                (None, None) => PathKind::Nothing,
            },
        }
    }

    fn files_below(&self, directory: &Path) -> Result<Vec<PathBuf>, String> {
        match directory.to_str().unwrap() {
            "/data" => Ok(paths(&["/data/table", "/data/own"])),
            "/tmp" => Ok(Vec::new()),
            _ => Err("it is not there".to_owned()),
        }
    }

    fn is_made_by_us(&self, path: &Path) -> bool {
        path == Path::new("/data/own") || self.own.iter().any(|own| path == Path::new(own))
    }

    fn scheduler(&self, path: &Path) -> Option<String> {
        (path != Path::new("/tmp")).then(|| "mq-deadline".to_owned())
    }

    fn node_cpus(&self, node: u16) -> Option<String> {
        let lists = ["0-1,4", "2-3", "5"];
        lists.get(usize::from(node)).map(|list| (*list).to_owned())
    }

    fn absolute(&self, path: &Path) -> PathBuf {
        Path::new("/work").join(path)
    }
}

/// The translation of jobs/x.fio on this machine.
fn on(machine: &Fake, text: &str, overrides: CliOverrides<'_>) -> Result<JobFile, String> {
    JobFile::translate(text, Path::new("jobs/x.fio"), overrides, machine)
        .map_err(|error| error.to_string())
}

fn translated(text: &str, overrides: CliOverrides<'_>) -> Result<JobFile, String> {
    on(&Fake::default(), text, overrides)
}

fn read(text: &str) -> JobFile {
    let file = translated(text, CliOverrides::default());
    file.unwrap_or_else(|error| panic!("{text}\n{error}"))
}

fn plan(text: &str) -> PlanFile {
    read(text).plan
}

fn notes(text: &str) -> String {
    read(text).notes.join("\n")
}

fn refused(text: &str) -> String {
    translated(text, CliOverrides::default())
        .map(|file| format!("{file:?}"))
        .expect_err(text)
}

/// What makes `as fio` behave as fio does.
const AS_FIO: CliOverrides<'_> = CliOverrides {
    sections: &[],
    targets: &[],
    size: None,
    action: JobAction::Run,
    closeness: Closeness::Fio,
    is_read_only: false,
    seed: 0,
    output: None,
};

/// Block bytes, depth and copies.
fn sizes(flags: &WorkloadFlags) -> (u32, u64, u64) {
    let (bs, depth, jobs) = (flags.bs.unwrap(), flags.depth.unwrap(), flags.jobs.unwrap());
    (bs.0, depth.0, jobs.0)
}

fn names(plan: &PlanFile) -> Vec<&str> {
    plan.workloads.iter().map(|one| one.name.as_str()).collect()
}

fn paths(paths: &[&str]) -> Vec<PathBuf> {
    paths.iter().map(PathBuf::from).collect()
}

/// The only workload of a job on /dev/sda with these options.
fn only(options: &str) -> WorkloadFlags {
    let plan = plan(&format!("[job]\nfilename=/dev/sda\n{options}\n"));
    let [workload] = &plan.workloads[..] else {
        panic!("{plan:?}")
    };
    workload.flags.clone()
}

fn span(flags: &WorkloadFlags) -> Option<(u64, u64)> {
    flags.span.map(|span| match (span.start, span.end) {
        (Position::Bytes(start), Position::Bytes(end)) => (start, end),
        other => panic!("{other:?}"),
    })
}

/// Sections, includes, options and other lines.
const LINES: &str = concat!(
    "(\\[[a-z ]{0,6}\\]|include [a-z./]{0,4}|",
    "(rw|bs|bssplit|size|offset|io_size|numjobs|rate|rate_iops|loops|filename|random_distribution|",
    "runtime|zonesize|nrfiles|number_ios|offset_increment|filesize|rwmixread|bsrange|verify|",
    "kb_base|iodepth)=[-a-z0-9%,:/.()*+^$ {}]{0,24}|[ -~]{0,30})",
);

proptest! {
    #[test]
    fn any_text_gives_a_plan_or_an_error_with_its_line(
        text in "\\PC*",
        lines in prop::collection::vec(LINES, 0..20),
    ) {
        let lines = lines.join("\n");
        let texts = [
            text.clone(),
            format!("[a]\n{text}"),
            lines.clone(),
            format!("[a]\nfilename=/dev/sda\n{lines}"),
        ];
        for text in texts {
            match translated(&text, CliOverrides::default()) {
                Ok(file) => prop_assert!(!file.plan.workloads.is_empty()),
                Err(error) => prop_assert!(error.contains(": line "), "{error}"),
            }
        }
    }
}
