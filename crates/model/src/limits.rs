//! The allowed range of every number in a record and in a comparison, one table for all readers.
//! A number outside its range is either a mistake or an attack: no measurement can produce it.
//! Knows the keys of the two published schemas, not how a document is read.

use std::fmt;

/// Largest text of a record, comparison or report page, in bytes. A check has 70 KB; the record of
/// a day with hundreds of workloads stays below 20 MB.
pub const DOCUMENT_BYTES_MAX: usize = 64 << 20;
/// Longest single string, in bytes: an encoded histogram with every bucket filled has 400 kB.
pub(crate) const STRING_BYTES_MAX: usize = 1 << 20;
/// Most values (numbers, strings, lists, objects …) in one document. A series cell has five in 65
/// bytes, so 64 MiB of ordinary record stay below this.
pub(crate) const VALUES_MAX: usize = 8_000_000;
/// Most elements of a list or members of an object whose key has no entry in [`LENGTHS`].
const LENGTH_MAX: usize = 10_000;

/// Longest lists, by key. The engine keeps at most 8192 cells of a series and 1000 blocks of a
/// scan.
const LENGTHS: [(&str, usize); 8] = [
    ("access", 1_000_000),
    ("cells", 20_000),
    ("curve", 1_000_000),
    ("map", 20_000),
    ("measurements", 4096),
    ("metrics", 100_000),
    ("readings", 1000),
    ("workloads", 4096),
];

/// Most elements of the list or members of the object under `key`.
pub(crate) fn length_max(key: &str) -> usize {
    LENGTHS
        .iter()
        .find(|(known, _)| *known == key)
        .map_or(LENGTH_MAX, |(_, most)| *most)
}

/// Operations, blocks, errors: a billion a second for twelve days.
const COUNT: NumberRange = NumberRange::whole(1 << 50);
/// Positions and lengths on a target: files and devices end at 2⁶³ bytes (loff_t).
const POSITION: NumberRange = NumberRange::whole(1 << 63);
/// Bytes moved by one run, or written in a disk's life: 64 PiB.
const MOVED: NumberRange = NumberRange::whole(1 << 56);
/// Nanoseconds: 36 years.
const NS: NumberRange = NumberRange::whole(1 << 60);
/// The same with a fraction.
const NS_MEAN: NumberRange = NumberRange::real(0.0, (1u64 << 60) as f64);
/// Rates and other amounts that are never negative.
const AMOUNT: NumberRange = NumberRange::real(0.0, 1e18);
/// Ratios and shares that may exceed one, such as bytes moved over bytes requested.
const RATIO: NumberRange = NumberRange::real(0.0, 1e12);
/// Probabilities and shares of a whole.
const SHARE: NumberRange = NumberRange::real(0.0, 1.0);
/// Shares of a whole in percent.
const PERCENT: NumberRange = NumberRange::real(0.0, 100.0);
/// Counts that the record keeps in 32 bits.
const WHOLE_32: NumberRange = NumberRange::whole(u32::MAX as u64);
/// Numbers without a meaning as an amount: seeds and inode numbers.
const ANY_WHOLE: NumberRange = NumberRange::whole(u64::MAX);
/// Positions in a list of the same document; the reader compares them with its length, too.
const INDEX: NumberRange = NumberRange::whole(1 << 32);
/// Degrees Celsius.
const TEMPERATURE: NumberRange = NumberRange::real(-273.0, 10_000.0);
/// Numbers under keys that this version does not know.
const UNKNOWN: NumberRange = NumberRange::real(-1e24, 1e24);

/// From where to where a number may go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NumberRange {
    /// Smallest allowed value.
    pub low: f64,
    /// Largest allowed value.
    pub high: f64,
    /// Whether fractions are refused.
    pub is_whole: bool,
}

impl NumberRange {
    const fn whole(high: u64) -> Self {
        Self {
            low: 0.0,
            high: high as f64,
            is_whole: true,
        }
    }

    const fn real(low: f64, high: f64) -> Self {
        Self {
            low,
            high,
            is_whole: false,
        }
    }

    /// The range of a number under `key`; the range of its parent's key where the key is a name,
    /// such as that of an errno.
    pub(crate) fn of(key: &str, parent: Self) -> Self {
        RANGES
            .binary_search_by_key(&key, |(known, _)| known)
            .map_or(parent, |at| RANGES[at].1)
    }

    /// The range of the document itself, for unknown keys.
    pub(crate) fn unknown() -> Self {
        UNKNOWN
    }

    /// The same without zero.
    pub(crate) fn without_zero(self) -> Self {
        Self { low: 1.0, ..self }
    }

    /// Whether the number may stand here.
    pub(crate) fn holds(&self, value: f64) -> bool {
        value >= self.low && value <= self.high && (!self.is_whole || value.fract() == 0.0)
    }
}

impl fmt::Display for NumberRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_whole {
            "a whole number"
        } else {
            "a number"
        };
        let end = |value: f64| {
            if value.abs() < 1e15 {
                value.to_string()
            } else {
                format!("{value:e}")
            }
        };
        write!(f, "{kind} from {} to {}", end(self.low), end(self.high))
    }
}

/// By key, in the order of bytes. A test compares the keys with those of the published schemas.
const RANGES: &[(&str, NumberRange)] = &[
    ("abort_above_ns", NS),
    ("access_errors", COUNT),
    ("access_percent", PERCENT),
    ("accounted", RATIO),
    ("achieved_depth", AMOUNT),
    ("align_bytes", WHOLE_32),
    ("at_ns", NS),
    ("bad_blocks", COUNT),
    ("base_ns", NS_MEAN),
    ("below", INDEX),
    ("better", WHOLE_32),
    ("block_bytes", WHOLE_32),
    ("block_bytes_high", WHOLE_32),
    ("block_bytes_low", WHOLE_32),
    ("block_mean_bytes", AMOUNT),
    ("blocks", COUNT),
    ("blocks_written", COUNT),
    ("busy_ms", COUNT),
    ("busy_ns", NS),
    ("bytes", MOVED),
    ("bytes_per_second", AMOUNT),
    ("bytes_per_second_max", POSITION),
    ("candidate_rate", AMOUNT),
    ("ceiling_iops", AMOUNT),
    ("cells_fitted", COUNT),
    ("change", NumberRange::real(-1e12, 1e12)),
    ("chunk_bytes", WHOLE_32),
    ("class", WHOLE_32),
    ("clients", WHOLE_32),
    ("commits", COUNT),
    ("commits_per_sync", AMOUNT),
    ("compared", WHOLE_32),
    ("component", RATIO),
    ("cost_ns", NS_MEAN),
    ("count", COUNT),
    ("cpus", WHOLE_32),
    ("curve_bytes", MOVED),
    ("curve_cpu_share", RATIO),
    ("curve_ns", NS),
    ("curve_share", SHARE),
    ("dead_time_ns", NS_MEAN),
    ("decided_by_ns", NS),
    ("default_rate", AMOUNT),
    ("depth", WHOLE_32),
    ("depth_high", WHOLE_32),
    ("depth_low", WHOLE_32),
    ("depth_max", WHOLE_32),
    ("depths", WHOLE_32),
    ("deviation", RATIO),
    ("deviation_ns", NS_MEAN),
    ("device_bytes_per_second_max", POSITION),
    ("device_read_bytes", MOVED),
    ("device_write_bytes", MOVED),
    ("difference", NumberRange::real(-1e18, 1e18)),
    ("directories", WHOLE_32),
    ("directory_sync_ns", NS),
    ("discard_granularity_bytes", POSITION),
    ("disk_ns", NS_MEAN),
    ("distance_bytes", POSITION),
    ("distance_mean_bytes", AMOUNT),
    ("done_before_wait", SHARE),
    ("earlier_runs", COUNT),
    ("elapsed_ms", COUNT),
    ("elsewhere_bytes", MOVED),
    ("end_ns", NS),
    ("errnos", COUNT),
    ("errors", COUNT),
    ("every_ns", NS),
    ("evictions", COUNT),
    ("explained", RATIO),
    ("extend_bytes", MOVED),
    ("extend_ops", COUNT),
    ("faster_once", WHOLE_32),
    ("file_bytes_max", POSITION),
    ("file_bytes_min", POSITION),
    ("file_sync_ns", NS),
    ("filler", WHOLE_32),
    ("filler_percent", PERCENT),
    ("first_bytes_per_second", AMOUNT),
    ("first_write_ns", NS),
    ("floor", AMOUNT),
    ("flush_ops", COUNT),
    ("free_bytes", ANY_WHOLE),
    ("freedom", AMOUNT),
    ("from_bytes", POSITION),
    ("fsyncs", COUNT),
    ("gain", RATIO),
    ("generated_bytes", MOVED),
    ("good_from", AMOUNT),
    ("half_width_95", AMOUNT),
    ("high_95", RATIO),
    ("highest_iops", AMOUNT),
    ("hits", COUNT),
    ("hours", WHOLE_32),
    ("idle_ns", NS),
    ("inode", ANY_WHOLE),
    ("insert_ns", NS_MEAN),
    ("interval", UNKNOWN),
    ("interval_ns", NS),
    ("iops", AMOUNT),
    ("lasted_ns", NS),
    ("late", COUNT),
    ("late_ns", NS),
    ("latency_limit_ns", NS),
    ("latency_max_ns", NS),
    ("latency_mean_ns", NS_MEAN),
    ("latency_ns", NS),
    ("latency_p50_ns", NS),
    ("latency_p99_ns", NS),
    ("later_bytes_per_second", AMOUNT),
    ("lba", POSITION),
    ("leftover_files", COUNT),
    ("length_bytes", POSITION),
    ("length_ns", NS),
    ("level", WHOLE_32),
    ("limit", AMOUNT),
    ("limited_from", AMOUNT),
    ("link_errors", COUNT),
    ("load_share", RATIO),
    ("logical_block_bytes", WHOLE_32),
    ("low_95", NumberRange::real(-1e12, 1e12)),
    ("lowest_iops", AMOUNT),
    ("margin", SHARE),
    ("max", AMOUNT),
    ("max_ns", NS),
    ("mean", AMOUNT),
    ("mean_ns", NS_MEAN),
    ("mean_wait_ns", NS_MEAN),
    ("measure_ns", NS),
    ("measurement", INDEX),
    ("media_errors", COUNT),
    ("memory_bytes", POSITION),
    ("merges", COUNT),
    ("method", WHOLE_32),
    ("min", AMOUNT),
    ("min_ns", NS),
    ("missed_starts", COUNT),
    ("model_error", RATIO),
    ("n", COUNT),
    ("next_high_iops", AMOUNT),
    ("next_low_iops", AMOUNT),
    ("nice", NumberRange::real(-20.0, 19.0)),
    ("not_comparable", WHOLE_32),
    ("number", COUNT),
    ("observed", UNKNOWN),
    ("observed_at_least", UNKNOWN),
    ("observed_loads", WHOLE_32),
    ("offset_bytes", POSITION),
    ("one_of", WHOLE_32),
    ("ops", COUNT),
    ("other_size_blocks", COUNT),
    ("other_size_bytes", WHOLE_32),
    ("others_hidden", WHOLE_32),
    ("over_ns", NS),
    ("p50", NS),
    ("p50_ns", NS),
    ("p90", NS),
    ("p99", NS),
    ("p99.9", NS),
    ("p99.99", NS),
    ("p99_9_ns", NS),
    ("p99_ns", NS),
    ("p_adjusted", SHARE),
    ("p_value", SHARE),
    ("pairs_max", WHOLE_32),
    ("passes", AMOUNT),
    ("pattern_reads", WHOLE_32),
    ("pause_ns", NS),
    ("pause_ops", COUNT),
    ("pending_sectors", COUNT),
    ("percent", PERCENT),
    ("physical_block_bytes", WHOLE_32),
    ("pid", WHOLE_32),
    ("points", WHOLE_32),
    ("postgres_version", WHOLE_32),
    ("power_on_hours", WHOLE_32),
    ("precision", RATIO),
    ("promised", AMOUNT),
    ("queue_depth", AMOUNT),
    ("queue_depth_max", AMOUNT),
    ("queue_requests", WHOLE_32),
    ("queued_ms", COUNT),
    ("random", COUNT),
    ("random_reads", WHOLE_32),
    ("range", UNKNOWN),
    ("rate", AMOUNT),
    ("read_ahead_bytes", POSITION),
    ("read_bytes", MOVED),
    ("read_bytes_per_second", AMOUNT),
    ("read_iops", AMOUNT),
    ("read_merges", COUNT),
    ("read_ms", COUNT),
    ("read_ns", NS),
    ("read_ops", COUNT),
    ("read_permille", NumberRange::whole(1000)),
    ("read_share", AMOUNT),
    ("readings", AMOUNT),
    ("reallocated_sectors", COUNT),
    ("remaining_percent", WHOLE_32),
    ("repeat_percent", PERCENT),
    ("repeated_blocks", COUNT),
    ("request_bytes_max", POSITION),
    ("request_ns", NS_MEAN),
    ("requests", COUNT),
    ("resolution_ns", NS),
    ("resume_bytes", POSITION),
    ("rotation_rpm", WHOLE_32),
    ("rounds", COUNT),
    ("rpm", WHOLE_32),
    ("run_ops", WHOLE_32),
    ("runs", WHOLE_32),
    ("same", WHOLE_32),
    ("sample_bytes", POSITION),
    ("sampled", COUNT),
    ("scratch_bytes", POSITION),
    ("seed", ANY_WHOLE),
    ("seek_ns", NS),
    ("seek_share", SHARE),
    ("sequential", COUNT),
    ("server_ns", NS_MEAN),
    ("settle_ns", NS),
    ("settling_ns", NS),
    ("share", RATIO),
    ("short", COUNT),
    ("shortened_from_ns", NS),
    ("since_ns", NS),
    ("size_bytes", ANY_WHOLE),
    ("size_percent", PERCENT),
    ("skip_bytes", POSITION),
    ("slice_ns", NS),
    ("slow", COUNT),
    ("slow_blocks", COUNT),
    ("slow_from_ns", NS),
    ("slower_once", WHOLE_32),
    ("span_bytes", POSITION),
    ("span_start_bytes", POSITION),
    ("spare_percent", WHOLE_32),
    ("spare_threshold_percent", WHOLE_32),
    ("spread_percent", PERCENT),
    ("standard_error", RATIO),
    ("start_bytes", POSITION),
    ("start_delay_ns", NS),
    ("start_ns", NS),
    ("starved_share", SHARE),
    ("stolen_share", SHARE),
    ("stride_bytes", POSITION),
    ("sync_ns", NS),
    ("syncs", COUNT),
    ("system_ns", NS),
    ("table_bytes", POSITION),
    ("target", INDEX),
    ("temp_bytes", MOVED),
    ("temperature_celsius", TEMPERATURE),
    ("temperature_limit_celsius", TEMPERATURE),
    ("theta", RATIO),
    ("threads", WHOLE_32),
    ("threshold", UNKNOWN),
    ("throughput", AMOUNT),
    ("time_limit_ns", NS),
    ("time_ns", NS),
    ("times", NumberRange::real(0.0, f64::MAX)),
    ("to_bytes", POSITION),
    ("trim_bytes", MOVED),
    ("uid", WHOLE_32),
    ("uncorrectable_sectors", COUNT),
    ("undecided", WHOLE_32),
    ("unreadable_bytes", POSITION),
    ("unsafe_shutdowns", COUNT),
    ("unsigned_blocks", COUNT),
    ("unwritten_bytes", POSITION),
    ("user_ns", NS),
    ("value", AMOUNT),
    ("wal_bytes", MOVED),
    ("wal_bytes_per_commit", AMOUNT),
    ("wal_syncs", COUNT),
    ("wall_ns", NS),
    ("warmup_ns", NS),
    ("warmup_requests", COUNT),
    ("wear_percent", WHOLE_32),
    ("weight", WHOLE_32),
    ("window_ns", NS),
    ("workers", WHOLE_32),
    ("worse", WHOLE_32),
    ("write_bytes", MOVED),
    ("write_bytes_per_second", AMOUNT),
    ("write_iops", AMOUNT),
    ("write_merges", COUNT),
    ("write_ms", COUNT),
    ("write_ns", NS),
    ("write_ops", COUNT),
    ("writes", WHOLE_32),
    ("written_bytes", MOVED),
    ("zero", COUNT),
    ("zone_bytes", POSITION),
];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::collections::BTreeSet;

    /// Keys under which a schema allows a number, also in lists and as values of maps.
    fn number_keys(schema: &Value, key: &str, keys: &mut BTreeSet<String>) {
        let Some(members) = schema.as_object() else {
            return;
        };
        let types = &schema["type"];
        let is = |wanted: &str| {
            types == wanted
                || types
                    .as_array()
                    .is_some_and(|all| all.contains(&wanted.into()))
        };
        if is("integer") || is("number") {
            keys.insert(key.to_owned());
        }
        for (word, part) in members {
            match (word.as_str(), part) {
                ("properties" | "$defs", Value::Object(parts)) => {
                    for (name, part) in parts {
                        number_keys(part, name, keys);
                    }
                }
                ("items" | "additionalProperties", part) => number_keys(part, key, keys),
                ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(parts)) => {
                    for part in parts {
                        number_keys(part, key, keys);
                    }
                }
                _ => {}
            }
        }
    }

    #[test]
    fn every_number_of_the_published_schemas_has_a_range() {
        let mut keys = BTreeSet::new();
        for schema in [
            include_str!("../../../schema/record.v1.schema.json"),
            include_str!("../../../schema/comparison.v1.schema.json"),
        ] {
            number_keys(&serde_json::from_str(schema).unwrap(), "", &mut keys);
        }
        let known: Vec<&str> = RANGES.iter().map(|(key, _)| *key).collect();
        assert!(known.is_sorted(), "binary search needs an ordered table");
        let without: Vec<&String> = keys
            .iter()
            .filter(|key| !known.contains(&key.as_str()))
            .collect();
        assert!(keys.len() > 140 && without.is_empty(), "{without:?}");
        let unused: Vec<&&str> = known.iter().filter(|key| !keys.contains(**key)).collect();
        assert!(unused.is_empty(), "no schema has these keys: {unused:?}");
    }

    #[test]
    fn ranges_refuse_fractions_and_say_their_ends() {
        assert!(COUNT.holds(0.0) && !COUNT.holds(0.5) && !COUNT.holds(-1.0));
        assert_eq!(
            COUNT.to_string(),
            "a whole number from 0 to 1.125899906842624e15"
        );
        assert_eq!(PERCENT.to_string(), "a number from 0 to 100");
    }
}
