//! A run that switches the write cache of the disk between its workloads, and restores it.

use super::measure::{ReadyRun, measure_as};
use super::prepare::MeasuringJob;
use super::run::{Steps, TargetRun};
use super::watchdog::run;
use crate::failure::{Exit, Failure};
use diskproof_device::{GuardedWriteCache, WriteCacheSwitch};
use std::sync::mpsc::channel;

/// Measures with a switched write cache, or only shows the plan. A cache that is not restored is an
/// error, however else the run ended.
pub(crate) fn measure_with_write_cache(
    job: MeasuringJob<'_>,
    switch: WriteCacheSwitch,
) -> anyhow::Result<Exit> {
    let (sender, errors) = channel();
    let exit = measure_as(job, |ready| {
        let ReadyRun {
            mut work,
            live,
            identities,
            deadline,
            ..
        } = ready;
        work.write_cache = Some(GuardedWriteCache::start(switch).map_err(Failure::WriteCache)?);
        let steps: Steps = Box::new(move |work, live| {
            let ended = TargetRun::run(work, live);
            match work.write_cache.take().map(GuardedWriteCache::restore) {
                Some(Err(error)) => {
                    let text = error.to_string();
                    // The caller waits for the end of this run.
                    let _ = sender.send(error);
                    Ok(Some(text))
                }
                _ => ended,
            }
        });
        run((work, steps), live, identities, deadline)
    })?;
    match errors.try_recv() {
        Ok(error) => Err(Failure::WriteCache(error).into()),
        Err(_) => Ok(exit),
    }
}
