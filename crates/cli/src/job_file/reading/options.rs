//! The options of fio that change a job, each with the function that sets them in the job. The text
//! table of all options in `diskproof-compat` says what becomes of the others.
//!
//! A job is read in phases. A setter may read from the job what earlier phases have set, and never
//! what its own phase sets: `order_inside_of_a_phase_does_not_matter` runs each phase in both
//! directions. A new option has its setter in the first phase that comes after everything that it
//! reads; `each_translated_option_has_a_setter` finds one that was forgotten. `rw` has a part in
//! several setters.

use super::blocks;
use super::content;
use super::copies;
use super::durability;
use super::engine;
use super::files;
use super::limits;
use super::operations;
use super::order;
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
        if self
            .names
            .split_whitespace()
            .any(|name| reader.is_set(name))
        {
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

/// The setters in phases, in the order in which these run. The setters of a phase do not depend on
/// each other. The comment before each phase names what those before it have set, and its setters
/// read.
pub(super) const PHASES: [&[OptionSetter]; 9] = [
    // Nothing yet.
    &[
        setter("rw percentage_random", operations::set_rw),
        setter("kb_base", copies::set_base),
        setter("name", copies::set_name),
        setter("description", copies::set_description),
        setter("numjobs", copies::set_copies),
        setter("stonewall", copies::set_stonewall),
        setter("wait_for", copies::set_awaited_job),
        setter("group_reporting new_group", copies::set_reporting),
        setter("exec_prerun exec_postrun", copies::check_commands),
        setter("exitall exit_what exitall_on_error", copies::set_exit),
        setter(
            "cpus_allowed cpumask cpus_allowed_policy numa_cpu_nodes prio prioclass nice",
            copies::set_scheduling,
        ),
        setter("filename opendir", files::set_filename),
        setter("filename_format", files::set_filename_format),
        setter("directory", files::set_directories),
        setter("overwrite fallocate", files::set_overwrite),
        setter("lockfile ioengine", engine::set_lock),
        setter("unlink", files::set_unlink),
        setter("create_only", files::set_create_only),
        setter("allow_file_create create_on_open", files::set_creation),
        setter("block_error_percentiles nrfiles", files::set_block_errors),
        setter(
            "write_bw_log write_iops_log write_lat_log write_hist_log",
            files::set_rate_logs,
        ),
        setter("ioscheduler", engine::set_scheduler),
        setter("mem", engine::set_pages),
        setter("runtime", limits::set_time),
        setter("ramp_time", limits::set_warmup),
        setter("rate_process", pacing::set_arrivals),
        setter("startdelay", pacing::set_start_delay),
        setter("flow flow_id flow_sleep", pacing::set_flow),
        setter(
            "thinktime thinktime_blocks thinktime_blocks_type thinktime_iotime",
            pacing::set_think_time,
        ),
        setter(
            "latency_target latency_percentile latency_window latency_run",
            limits::set_latency_target,
        ),
        setter(
            "steadystate steadystate_duration steadystate_ramp_time \
                 steadystate_check_interval",
            limits::set_steady_end,
        ),
    ],
    // The direction that the job writes down.
    // It may turn writes into reads.
    &[setter(
        "verify verify_only do_verify verify_backlog verify_pattern",
        verify::set_verify,
    )],
    // The direction and the verification.
    &[
        setter("ioengine", engine::set_engine),
        setter("percentage_random", operations::set_kinds_in_order),
        setter(
            "bs bssplit bsrange bs_unaligned bs_is_seq_rand",
            blocks::set_sizes,
        ),
        setter("random_distribution", operations::set_distribution),
        setter("rw rwmixread rwmixwrite", operations::set_read_share),
        setter(
            "sync fsync fdatasync sync_file_range end_fsync fsync_on_close",
            durability::set_syncs,
        ),
        setter("write_hint", durability::set_write_life),
        setter("max_latency", limits::set_latency_limit),
        setter("rate_min rate_iops_min rate_cycle", limits::set_rate_floors),
    ],
    // The engine, the sizes and the distribution.
    &[
        setter("iodepth io_submit_mode", engine::set_depth),
        setter("direct buffered invalidate", engine::set_cache),
        setter("rw rw_sequencer", operations::set_walk),
        setter("ba", blocks::set_alignment),
        // It replaces the share of the reads.
        setter("rate rate_iops", pacing::set_rate),
        setter(
            "zero_buffers buffer_pattern buffer_compress_percentage buffer_compress_chunk \
                 dedupe_percentage dedupe_mode dedupe_working_set_percentage dedupe_global \
                 refill_buffers scramble_buffers",
            content::set_content,
        ),
    ],
    // The walk, the alignment and the page cache.
    &[
        setter("rw norandommap", operations::set_map),
        // They replace the gaps of the walk.
        setter(
            "zonemode zonesize zonerange zoneskip",
            operations::set_zones,
        ),
        setter("pre_read", engine::set_pre_read),
        setter("fadvise_hint", engine::set_advice),
    ],
    // The names of the files, and the order of requests in one.
    &[setter("nrfiles file_service_type", files::set_files)],
    // The number of files.
    &[
        setter("filesize", limits::set_file_size),
        setter("filename_format nrfiles numjobs", files::check_own_names),
    ],
    // The size of the files, and the time.
    &[
        setter("size filesize fill_device", limits::set_size),
        setter("offset offset_increment offset_align", limits::set_offset),
        setter("io_size", limits::set_io_size),
        setter("loops time_based", limits::set_laps),
    ],
    // Everything else: the laps, the verification, the zones.
    &[
        setter("file_append", limits::set_append),
        setter("number_ios", limits::set_ops),
        setter("write_iolog", files::set_request_log),
        setter("latency_target", limits::set_latency_of_one_request),
        setter("rw", order::set_order),
    ],
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job_file::environment::System;
    use crate::job_file::sections::{JobText, read_sections};
    use crate::job_file::translation::{CliOverrides, Closeness, Translation};
    use diskproof_compat::{FIO_OPTIONS, FioHandling, FioOption, fio_option};
    use std::path::Path;

    /// Whoever adds an option that changes the load names it in the table of all options and in a
    /// setter.
    #[test]
    fn each_translated_option_has_a_setter() {
        let set: Vec<&str> = PHASES
            .iter()
            .flat_map(|phase| phase.iter())
            .flat_map(|setter| setter.names.split_whitespace())
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

    /// Jobs whose options have much to do with each other.
    const JOBS: [&str; 6] = [
        "rw=randrw\nbs=4k,8k\nrate_iops=50,100\nrwmixread=70\nverify=crc32c\nnumber_ios=9",
        "rw=read:8k\nbs=4k\nzonesize=64k\nzoneskip=64k\nnrfiles=2\nfilesize=1m\nloops=2",
        "rw=randwrite\nba=8k\nbssplit=4k/50:8k/50\nnorandommap\nbuffer_pattern=0x55\nsize=1m",
        "rw=write\nverify_only\nverify=md5\nioengine=libaio\niodepth=8\nfsync=4\nsize=50%",
        "rw=trimwrite\nioengine=libaio\nsize=1m\nruntime=5\ntime_based\npre_read=1",
        "rw=randread\npercentage_random=50\npre_read=1\nfilename=a:b\nsize=1m\nio_size=2m",
    ];

    #[test]
    fn order_inside_of_a_phase_does_not_matter() {
        for closeness in [Closeness::Disk, Closeness::Fio] {
            for options in JOBS {
                let text = format!("[a]\n{options}\n");
                let file = JobText::File {
                    text: text.into(),
                    path: Path::new("a.fio"),
                };
                let section = read_sections(&[file], &System).unwrap().sections.remove(0);
                let overrides = CliOverrides {
                    closeness,
                    ..CliOverrides::default()
                };
                let translation = Translation::new(overrides, &System);
                let reader = JobReader::new(&section, 0, &translation);
                let mut jobs = [
                    FioJob::from_section(&section),
                    FioJob::from_section(&section),
                ];
                let [forward, backward] = &mut jobs;
                for (number, phase) in PHASES.iter().enumerate() {
                    let one = apply_all(phase.iter(), &reader, forward);
                    let other = apply_all(phase.iter().rev(), &reader, backward);
                    assert_eq!(one.is_err(), other.is_err(), "{options}");
                    let seen = [format!("{forward:?}"), format!("{backward:?}")];
                    if one.is_err() {
                        break;
                    }
                    assert_eq!(seen[0], seen[1], "phase {number}: {options}");
                }
            }
        }
    }

    fn apply_all<'a>(
        setters: impl Iterator<Item = &'a OptionSetter>,
        reader: &JobReader<'_>,
        job: &mut FioJob,
    ) -> Translated<()> {
        for setter in setters {
            setter.apply(reader, job)?;
        }
        Ok(())
    }
}
