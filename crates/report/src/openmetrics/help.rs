//! The families of metrics in the order of writing: name without `diskproof_`, kind, help. A `*`
//! stands for the unit of the samples.

/// A line for each family.
pub(super) const FAMILIES: &str = "\
run_timestamp_seconds gauge Start of the run, in seconds since the epoch.
run_info gauge Identity of the run; always 1.
run_partial gauge 1 if the run ended early.
findings gauge Number of findings by severity.
finding gauge 1 for each finding, by its code.
grade gauge Grade of the verdict: 2 good, 1 limited, 0 poor; no series if not graded.
verdict_info gauge The verdict in words and the most severe finding; always 1.
reliable gauge 1 if no finding concerns the figures, 0.5 if a warning does, 0 if a failure does.
grade_threshold* gauge The smallest figure with this grade; source gives the reason.
expectation_observed* gauge The measured value; no series if it was not measured.
promised* gauge The figure from the data sheet.
expectation gauge Result of each threshold and promise: 1 met, 0.5 undecided, 0 missed.
expectations_missed gauge Missed thresholds.
expectations_undecided gauge Thresholds that the measurement cannot decide.
limited_by gauge 1 for what limited the rate of a workload.
iops gauge Operations per second.
iops_half_width gauge Half of the 95 % interval of diskproof_iops.
throughput_bytes_per_second gauge Bytes moved per second.
latency_seconds summary Latency from before the submission to the completion.
latency_max_seconds gauge Longest latency.
latency_intended_seconds summary Latency from the intended start, under an offered load.
phase_iops gauge Operations per second in a phase; the other figures are those of the last phase.
errors gauge Failed operations.
cpu_ratio gauge CPU time of the program over the time of the figures; 1 is one processor.
accounted_ratio gauge Bytes moved by the disks over bytes requested.
curve_bytes_per_second gauge Transfer rate by position: min, average and max.
burst_bytes_per_second gauge Rate of repeated reads of the same bytes.
access_time_seconds gauge Mean access time by seek pattern.
access_time_max_seconds gauge Longest access time by seek pattern.
short_stroke_iops gauge Random reads per second within the first part of the disk.
scan_slow_blocks gauge Slow blocks.
scan_unreadable_bytes gauge Unreadable bytes.
health_known gauge 1 if the disk reported its health, 0 if it did not.
health_passed gauge The disk's own verdict: 1 healthy, 0 failing.
health_alarms gauge Alarms raised by the disk.
health_temperature_celsius gauge Temperature of the disk.
health_temperature_limit_celsius gauge Temperature at which the disk raises an alarm or slows down.
health_endurance_used_ratio gauge Share of the rated endurance used.
health_spare_ratio gauge Share of spare blocks left.
health_spare_threshold_ratio gauge Share of spare blocks at which the disk raises an alarm.
health_power_on_seconds gauge Power-on time over the disk's life.
health_written_bytes gauge Bytes written over the disk's life.
health_reallocated_sectors gauge Reallocated sectors.
health_pending_sectors gauge Sectors pending reallocation.
health_uncorrectable_sectors gauge Uncorrectable sectors.
health_media_errors gauge Uncorrected errors of the medium.
health_link_errors gauge Errors of the link.
health_unsafe_shutdowns gauge Unsafe shutdowns.
";

/// The unit of a family and the end of its name, in the order of writing.
pub(super) const UNITS: [(&str, &str); 5] = [
    ("B/s", "_bytes_per_second"),
    ("1/s", "_iops"),
    ("ns", "_seconds"),
    ("rpm", "_rpm"),
    ("1", ""),
];
