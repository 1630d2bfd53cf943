//! Jobs as their output shows them: names, groups, options and the workloads that carry them out.

use super::jobs::FioJob;
use super::sections::{Scope, Section, Setting};
use diskproof_compat::{DescribedJob, DescribedJobs, JobWorkload};
use std::rc::Rc;

/// Describes the jobs; `workloads` has those of each, and `files` how many files it visits in turn.
pub(crate) fn describe(
    jobs: &[FioJob],
    files: &[usize],
    sections: &[Section],
    global: &[Rc<Setting>],
    workloads: Vec<Vec<JobWorkload>>,
) -> DescribedJobs {
    let mut described = DescribedJobs {
        global: global.iter().map(|one| one.option.clone()).collect(),
        jobs: Vec::new(),
    };
    let mut group = 0;
    for (index, ((job, section), workloads)) in jobs.iter().zip(sections).zip(workloads).enumerate()
    {
        group += usize::from(index > 0 && (job.waits || job.begins_group));
        let own = section
            .settings
            .iter()
            .filter(|setting| setting.scope == Scope::Own && setting.option.key != "name");
        described.jobs.push(DescribedJob {
            name: job.name.clone(),
            group,
            options: own.map(|one| one.option.clone()).collect(),
            workloads,
            copies: job.numjobs,
            files: files[index],
        });
    }
    described
}
