//! The options of fio that change a job, each with the function that sets them in the job. The text
//! table of all options in `diskproof-compat` says what becomes of the others.

use super::blocks;
use super::content;
use super::copies;
use super::durability;
use super::engine;
use super::files;
use super::limits;
use super::operations;
use super::pacing;
use super::reader::JobReader;
use super::verify;
use crate::job_file::jobs::FioJob;
use crate::job_file::translation::Translated;

/// Options that have a meaning together, and the function that sets them.
pub(super) struct OptionSetter {
    /// The first name of each option, with blanks between them.
    names: &'static str,
    /// Sets the fields of the job that follow from them.
    set: fn(&JobReader<'_>, &mut FioJob) -> Translated<()>,
}

impl OptionSetter {
    /// Changes the job of this reader, if it has one of the options. Without any of them fio's
    /// defaults stay, with which a job begins.
    pub(super) fn apply(&self, reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
        if self.names.split(' ').any(|name| reader.is_set(name)) {
            (self.set)(reader, job)
        } else {
            Ok(())
        }
    }
}

const fn setter(
    names: &'static str,
    set: fn(&JobReader<'_>, &mut FioJob) -> Translated<()>,
) -> OptionSetter {
    OptionSetter { names, set }
}

/// All setters, in the order in which they run: a setter may read from the job what earlier ones
/// wrote. `rw` has a part in several of them.
pub(super) const SETTERS: [OptionSetter; 51] = [
    setter("rw percentage_random", operations::set_rw),
    setter("ioengine", engine::set_engine),
    setter("kb_base", copies::set_base),
    setter(
        "verify verify_only do_verify verify_backlog verify_pattern",
        verify::set_verify,
    ),
    setter("percentage_random", operations::set_kinds_in_order),
    setter("iodepth io_submit_mode", engine::set_depth),
    setter("bs bssplit bsrange", blocks::set_sizes),
    setter("rw rw_sequencer", operations::set_walk),
    setter("random_distribution", operations::set_distribution),
    setter("rw rwmixread rwmixwrite", operations::set_read_share),
    setter("rate rate_iops", pacing::set_rate),
    setter("runtime", limits::set_time),
    setter("ramp_time", limits::set_warmup),
    setter(
        "sync fsync fdatasync end_fsync fsync_on_close",
        durability::set_syncs,
    ),
    setter(
        "latency_target latency_percentile latency_window",
        limits::set_latency_target,
    ),
    setter("ba", blocks::set_alignment),
    setter("rw norandommap", operations::set_map),
    setter("rate_process", pacing::set_arrivals),
    setter(
        "thinktime thinktime_blocks thinktime_blocks_type thinktime_iotime",
        pacing::set_think_time,
    ),
    setter("startdelay", pacing::set_start_delay),
    setter("max_latency", limits::set_latency_limit),
    setter("rate_min rate_iops_min rate_cycle", limits::set_rate_floors),
    setter(
        "steadystate steadystate_duration steadystate_ramp_time steadystate_check_interval",
        limits::set_steady_end,
    ),
    setter("flow flow_id flow_sleep", pacing::set_flow),
    setter(
        "cpus_allowed cpumask cpus_allowed_policy numa_cpu_nodes prio prioclass nice",
        copies::set_scheduling,
    ),
    setter(
        "zonemode zonesize zonerange zoneskip",
        operations::set_zones,
    ),
    setter("mem", engine::set_pages),
    setter(
        "zero_buffers buffer_pattern buffer_compress_percentage buffer_compress_chunk \
         dedupe_percentage dedupe_mode dedupe_working_set_percentage dedupe_global refill_buffers \
         scramble_buffers",
        content::set_content,
    ),
    setter("exitall exit_what", copies::set_exit),
    setter("filename", files::set_filename),
    setter("nrfiles file_service_type", files::set_files),
    setter("wait_for", copies::set_awaited_job),
    setter("filename_format", files::set_filename_format),
    setter("name", copies::set_name),
    setter("description", copies::set_description),
    setter("numjobs", copies::set_copies),
    setter("direct buffered invalidate", engine::set_cache),
    setter("filesize", limits::set_file_size),
    setter("size filesize fill_device", limits::set_size),
    setter("offset offset_increment", limits::set_offset),
    setter("io_size", limits::set_io_size),
    setter("loops time_based", limits::set_laps),
    setter("number_ios", limits::set_ops),
    setter("overwrite", files::set_overwrite),
    setter("stonewall", copies::set_stonewall),
    setter("group_reporting new_group", copies::set_reporting),
    setter("directory", files::set_directories),
    setter("unlink", files::set_unlink),
    setter("create_only", files::set_create_only),
    setter("allow_file_create", files::set_creation),
    setter("ioscheduler", engine::set_scheduler),
];

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_compat::{FIO_OPTIONS, FioHandling, FioOption, fio_option};

    /// Whoever adds an option that changes the load names it in the table of all options and in a
    /// setter.
    #[test]
    fn each_translated_option_has_a_setter() {
        let set: Vec<&str> = SETTERS
            .iter()
            .flat_map(|setter| setter.names.split(' '))
            .collect();
        for name in &set {
            let known = fio_option(name).map(FioOption::name);
            assert_eq!(known, Some(*name), "{name}");
        }
        for option in FIO_OPTIONS.iter() {
            if option.handling == FioHandling::Translated {
                assert!(set.contains(&option.name()), "{}", option.name());
            }
        }
    }
}
