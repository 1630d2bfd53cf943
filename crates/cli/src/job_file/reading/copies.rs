//! Reads the name of a job, its copies and their processors, and the jobs that it waits for or
//! ends.

use super::reader::{BASES, JobReader};
use crate::job_file::jobs::FioJob;
use crate::job_file::sections::Scope;
use crate::job_file::translation::Translated;
use diskproof_model::shape::{IoPriority, ThreadScheduling};

/// The most copies of a job, more than any machine gains from. Chosen, not measured.
const NUMJOBS_MAX: u64 = 1024;
/// The last processor that the kernel's set of them holds in this program.
const CPU_MAX: u16 = 1023;
/// The last class of I/O priorities, idle (ioprio_set(2)).
const PRIORITY_CLASS_MAX: u64 = 3;
/// The lowest level within a class (ioprio_set(2)).
const PRIORITY_LEVEL_MAX: u64 = 7;
/// The class of a priority without one (IOPRIO_CLASS_BE).
const BEST_EFFORT: u8 = 2;
/// The values of `exit_what`; true where the later jobs end, too.
const EXITS: [(&str, bool); 3] = [("group", false), ("stonewall", false), ("all", true)];

/// `name`. In [global] it does not apply to jobs, as in fio.
pub(super) fn set_name(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    if let Some(setting) = reader.setting("name")
        && setting.scope == Scope::Own
        && let Some(name) = &setting.option.value
    {
        job.name.clone_from(name);
    }
    Ok(())
}

pub(super) fn set_description(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    job.shown.description = reader.text("description").map(str::to_owned);
    Ok(())
}

/// `exec_prerun` and `exec_postrun`, which are no part of the job: the printer of fio has them.
pub(super) fn check_commands(reader: &JobReader<'_>, _job: &mut FioJob) -> Translated<()> {
    for name in ["exec_prerun", "exec_postrun"] {
        if reader.value(name)?.is_none() {
            continue;
        }
        if !reader.translation.is_as_fio() {
            let why = "only 'diskproof as fio' runs commands of jobs; use the shell";
            return Err(reader.error(name, why));
        }
        if reader.searches_depth()? {
            let why = "no command runs beside latency_target; use the shell";
            return Err(reader.error(name, why));
        }
    }
    Ok(())
}

/// `numjobs`.
pub(super) fn set_copies(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    job.copies.count = reader.number("numjobs", NUMJOBS_MAX)?.unwrap_or(1);
    if job.copies.count == 0 {
        return Err(reader.error("numjobs", "a job has at least one copy, in fio too"));
    }
    Ok(())
}

/// `kb_base` in the output; the values of the other options are read with it, too.
pub(super) fn set_base(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    job.shown.base = reader.choice("kb_base", &BASES)?.unwrap_or_default();
    Ok(())
}

pub(super) fn set_stonewall(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    job.turn.waits = reader.flag("stonewall")?;
    Ok(())
}

/// `wait_for`.
pub(super) fn set_awaited_job(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    job.turn.waits_for = match reader.given_name("wait_for")? {
        Some(given) if given.name != "none" => Some(given),
        _ => None,
    };
    Ok(())
}

/// `exitall`, `exitall_on_error` and `exit_what`. Jobs that run together are those between two
/// stonewalls.
pub(super) fn set_exit(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    let ends_later_jobs = reader.choice("exit_what", &EXITS)?.unwrap_or(false);
    job.turn.exits_all = reader.flag("exitall")?;
    job.flags.shape.ends.failure_ends_group = reader.flag("exitall_on_error")?;
    job.turn.ends_everything = ends_later_jobs;
    Ok(())
}

pub(super) fn set_reporting(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    job.shown.reports_together = reader.flag("group_reporting")?;
    job.shown.begins_group = reader.flag("new_group")?;
    Ok(())
}

/// `cpus_allowed`, `cpumask`, `prio`, `prioclass` and `nice`.
pub(super) fn set_scheduling(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    let nice = reader.parsed("nice", nice_value)?.unwrap_or(0);
    let scheduling = ThreadScheduling {
        io_priority: reader.io_priority()?,
        cpus: reader.cpus()?,
        nice,
    };
    // As in fio, which binds a job to its NUMA nodes last.
    job.copies.split_cpus =
        reader.text("cpus_allowed_policy") == Some("split") && !reader.is_set("numa_cpu_nodes");
    if scheduling != ThreadScheduling::default() {
        job.flags.shape.threads.scheduling = Some(scheduling);
    }
    Ok(())
}

fn nice_value(text: &str) -> Result<i8, &'static str> {
    match text.parse() {
        Ok(nice @ -20..=19) => Ok(nice),
        _ => Err("write -20 to 19"),
    }
}

impl JobReader<'_> {
    /// The I/O priority of `prio` and `prioclass`; `None` without them.
    fn io_priority(&self) -> Translated<Option<IoPriority>> {
        let class = self.number("prioclass", PRIORITY_CLASS_MAX)?;
        let level = self.number("prio", PRIORITY_LEVEL_MAX)?;
        if class.is_none() && level.is_none() {
            return Ok(None);
        }
        Ok(Some(IoPriority {
            class: match class {
                None | Some(0) => BEST_EFFORT,
                Some(class) => class as u8,
            },
            level: level.unwrap_or(0) as u8,
        }))
    }

    /// The processors that copies may use; none where they may use all.
    fn cpus(&self) -> Translated<Vec<u16>> {
        let of_nodes = self.parsed("numa_cpu_nodes", |text| {
            self.cpus_of_nodes(text)
                .ok_or("write numbers and ranges of NUMA nodes of this machine, such as 0-1")
        })?;
        let list = self.parsed("cpus_allowed", |text| {
            cpu_list(text).ok_or("write numbers and ranges, such as 0-3,6")
        })?;
        let mask = self.number("cpumask", u64::from(u32::MAX))?;
        let cpus = if let Some(of_nodes) = of_nodes {
            of_nodes
        } else if let Some(list) = list {
            list
        } else if let Some(mask) = mask {
            cpus_of_mask(mask)
        } else {
            return Ok(Vec::new());
        };
        match self.value("cpus_allowed_policy")? {
            Some(given) if !matches!(given.text, "shared" | "split") => {
                Err(given.error("write shared or split"))
            }
            _ => Ok(cpus),
        }
    }

    /// The processors of a list of NUMA nodes; `None` where the machine does not have one of them.
    fn cpus_of_nodes(&self, text: &str) -> Option<Vec<u16>> {
        let mut cpus = Vec::new();
        for node in cpu_list(text)? {
            let list = self.translation.environment.node_cpus(node)?;
            cpus.extend(cpu_list(&list)?);
        }
        cpus.sort_unstable();
        Some(cpus)
    }
}

/// The processors whose bits are set, of the 32 that `cpumask` has.
fn cpus_of_mask(mask: u64) -> Vec<u16> {
    (0..32).filter(|cpu| mask >> cpu & 1 == 1).collect()
}

/// The processors of a list such as `0-3,6`.
fn cpu_list(text: &str) -> Option<Vec<u16>> {
    let mut cpus = Vec::new();
    for part in text.split([',', ' ']) {
        if part.is_empty() {
            continue;
        }
        let (first, last) = part.split_once(['-', ':']).unwrap_or((part, part));
        let first: u16 = first.trim().parse().ok()?;
        let last: u16 = last.trim().parse().ok()?;
        if first > last || last > CPU_MAX {
            return None;
        }
        cpus.extend(first..=last);
    }
    if cpus.is_empty() {
        return None;
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_numbers_and_ranges() {
        assert_eq!(cpu_list("0-2,6"), Some(vec![0, 1, 2, 6]));
        assert_eq!(cpu_list("3,1,3"), Some(vec![1, 3]));
        for text in ["", "a", "3-1", "1024", "-1"] {
            assert_eq!(cpu_list(text), None, "{text}");
        }
    }
}
