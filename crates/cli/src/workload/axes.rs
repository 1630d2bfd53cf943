//! Options of `run` that take several values: each combination becomes a workload. Pure.

use super::flags::WorkloadFlags;
use super::parsers::{BlockSize, Count, WorkloadName};
use diskproof_model::rw::Rw;

/// The limit of a plan: more workloads take more than a day at a minute each.
pub(crate) const WORKLOADS_MAX: usize = 1440;

/// Block sizes, depths and numbers of workers. Empty where the user set nothing.
#[derive(Debug, Clone, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "Workload")]
pub struct WorkloadAxes {
    /// Block size; with several, such as 4k,64k, each makes a workload [default: 8k]
    #[arg(long, visible_alias = "blocksize", value_name = "BYTES")]
    #[arg(value_delimiter = ',')]
    pub bs: Vec<BlockSize>,
    /// Requests in flight per job; with several, such as 1,4,16, each makes a workload [default:
    /// 1]
    #[arg(long, visible_alias = "iodepth", value_name = "N")]
    #[arg(value_delimiter = ',')]
    pub depth: Vec<Count>,
    /// Number of workers, each with a thread and a queue; with several, each makes a workload
    /// [default: 1]
    #[arg(long, visible_alias = "numjobs", value_name = "N")]
    #[arg(value_delimiter = ',')]
    pub jobs: Vec<Count>,
}

impl WorkloadAxes {
    /// Whether no option is set.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// One workload for each combination, in the order of the values. An axis with several values
    /// appears in the names: `randread-bs4k-d16-j2`.
    pub(crate) fn expand(&self, flags: &WorkloadFlags) -> Result<Vec<WorkloadFlags>, String> {
        let bs = axis("bs", "-bs", &self.bs, |BlockSize(bytes)| size_word(*bytes))?;
        let depth = axis("depth", "-d", &self.depth, |Count(count)| count.to_string())?;
        let jobs = axis("jobs", "-j", &self.jobs, |Count(count)| count.to_string())?;
        let count = bs.len() * depth.len() * jobs.len();
        if count > WORKLOADS_MAX {
            return Err(format!(
                "--bs, --depth and --jobs make {count} workloads; a run has at most \
                 {WORKLOADS_MAX}"
            ));
        }
        let base = match &flags.name {
            Some(name) => name.0.clone(),
            None => flags.rw.unwrap_or(Rw::RANDREAD).as_str().to_owned(),
        };
        let mut workloads = Vec::new();
        for (bs, bs_suffix) in &bs {
            for (depth, depth_suffix) in &depth {
                for (jobs, jobs_suffix) in &jobs {
                    let suffix = format!("{bs_suffix}{depth_suffix}{jobs_suffix}");
                    workloads.push(WorkloadFlags {
                        name: match suffix.as_str() {
                            "" => flags.name.clone(),
                            suffix => Some(WorkloadName(format!("{base}{suffix}"))),
                        },
                        bs: *bs,
                        depth: *depth,
                        jobs: *jobs,
                        ..flags.clone()
                    });
                }
            }
        }
        Ok(workloads)
    }
}

/// The values of an axis, at least one, each with how names show it: the only one not at all.
fn axis<T: Copy + PartialEq>(
    key: &str,
    prefix: &str,
    given: &[T],
    word: impl Fn(&T) -> String,
) -> Result<Vec<(Option<T>, String)>, String> {
    refuse_repeated(key, given, &word)?;
    let suffix = |value| format!("{prefix}{}", word(value));
    Ok(match given {
        [] => vec![(None, String::new())],
        [only] => vec![(Some(*only), String::new())],
        several => several
            .iter()
            .map(|one| (Some(*one), suffix(one)))
            .collect(),
    })
}

/// Refuses a value that a flag has twice.
pub(crate) fn refuse_repeated<T: PartialEq>(
    key: &str,
    values: &[T],
    word: impl Fn(&T) -> String,
) -> Result<(), String> {
    let mut all = values.iter().enumerate();
    match all.find(|(index, value)| values[..*index].contains(value)) {
        None => Ok(()),
        Some((_, value)) => Err(format!(
            "--{key} has the value {} twice; name each value once",
            word(value)
        )),
    }
}

/// `512`, `8k`, `1m`.
fn size_word(bytes: u32) -> String {
    match bytes {
        bytes if bytes.is_multiple_of(1 << 20) => format!("{}m", bytes >> 20),
        bytes if bytes.is_multiple_of(1 << 10) => format!("{}k", bytes >> 10),
        bytes => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(bytes: &[u32]) -> Vec<BlockSize> {
        bytes.iter().map(|bytes| BlockSize(*bytes)).collect()
    }

    fn counts(counts: &[u64]) -> Vec<Count> {
        counts.iter().map(|count| Count(*count)).collect()
    }

    fn names(axes: &WorkloadAxes, flags: &WorkloadFlags) -> Vec<Option<String>> {
        let workloads = axes.expand(flags).unwrap();
        let name = |flags: WorkloadFlags| flags.name.map(|name| name.0);
        workloads.into_iter().map(name).collect()
    }

    #[test]
    fn each_combination_is_a_workload_named_by_what_varies() {
        let axes = WorkloadAxes {
            bs: sizes(&[512, 4096, 1 << 20]),
            depth: counts(&[1, 16]),
            jobs: counts(&[2]),
        };
        let workloads = axes.expand(&WorkloadFlags::default()).unwrap();
        let expected = [
            "randread-bs512-d1",
            "randread-bs512-d16",
            "randread-bs4k-d1",
            "randread-bs4k-d16",
            "randread-bs1m-d1",
            "randread-bs1m-d16",
        ];
        let shown = names(&axes, &WorkloadFlags::default());
        assert_eq!(shown, expected.map(|name| Some(name.to_owned())));
        assert!(workloads.iter().all(|flags| flags.jobs == Some(Count(2))));
        assert_eq!(
            (workloads[3].bs, workloads[3].depth),
            (Some(BlockSize(4096)), Some(Count(16)))
        );
    }

    #[test]
    fn single_values_leave_the_name_alone() {
        let axes = WorkloadAxes {
            depth: counts(&[32]),
            ..WorkloadAxes::default()
        };
        assert_eq!(names(&axes, &WorkloadFlags::default()), [None]);
        let named = WorkloadFlags {
            name: Some(WorkloadName("look".to_owned())),
            ..WorkloadFlags::default()
        };
        assert_eq!(names(&axes, &named), [Some("look".to_owned())]);
        let two = WorkloadAxes {
            jobs: counts(&[1, 2]),
            ..WorkloadAxes::default()
        };
        let expected = ["look-j1", "look-j2"].map(|name| Some(name.to_owned()));
        assert_eq!(names(&two, &named), expected);
    }

    #[test]
    fn repeated_and_too_many_values_are_errors() {
        let twice = WorkloadAxes {
            depth: counts(&[1, 4, 1]),
            ..WorkloadAxes::default()
        };
        let error = twice.expand(&WorkloadFlags::default()).unwrap_err();
        assert!(error.contains("--depth has the value 1 twice"), "{error}");
        let many: Vec<u64> = (1..=40).collect();
        let many = WorkloadAxes {
            depth: counts(&many),
            jobs: counts(&many),
            bs: Vec::new(),
        };
        let error = many.expand(&WorkloadFlags::default()).unwrap_err();
        assert!(error.contains("1600 workloads"), "{error}");
    }
}
