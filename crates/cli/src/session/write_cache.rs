//! A run that switches the write cache of the disk between its workloads, and restores it.

use super::measure::{ReadyRun, measure_as};
use super::prepare::MeasuringJob;
use super::run::{Steps, TargetRun};
use super::watchdog::run;
use crate::failure::{Exit, Failure};
use diskproof_device::{GuardedWriteCache, WriteCacheSwitch};

/// Measures with a switched write cache, or only shows the plan.
pub(crate) fn measure_with_write_cache(
    job: MeasuringJob<'_>,
    switch: WriteCacheSwitch,
) -> anyhow::Result<Exit> {
    measure_as(job, |ready| {
        let ReadyRun {
            mut work,
            live,
            identities,
            deadline,
            ..
        } = ready;
        work.write_cache = Some(GuardedWriteCache::start(switch).map_err(Failure::WriteCache)?);
        let steps: Steps = Box::new(|work, live| {
            let ended = TargetRun::run(work, live);
            // A cache in the wrong state is worse than what ended the run: the user has to know.
            match work.write_cache.take().map(GuardedWriteCache::restore) {
                Some(Err(error)) => Ok(Some(error.to_string())),
                _ => ended,
            }
        });
        run((work, steps), live, identities, deadline)
    })
}
