//! A record as metrics for Prometheus, valid in its own format (0.0.4, which node_exporter's
//! textfile collector reads) and in OpenMetrics 1.0. Names and labels are stable. Collectors reject
//! a whole file for one duplicate series, so every series is written once.

mod family;
mod health;
mod run;
mod surface;
mod workloads;

use crate::format::{Format, OutputFile, Requires};
use diskproof_model::record::Record;
use family::write_family;
use health::of_health;
use run::of_run;
use std::io::{self, Write};
use surface::of_surface;
use workloads::of_workloads;

/// The format.
pub const FORMAT: Format = Format {
    extension: ".prom",
    description: "metrics for node_exporter's textfile collector",
    requires: Requires::Nothing,
    record: |record, path| vec![OutputFile::new(path, move |out| write_record(record, out))],
    comparison: None,
    identity: None,
};

/// Writes all metrics.
pub fn write_record(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    let mut families = of_run(record);
    families.extend(of_workloads(record));
    families.extend(of_surface(record));
    families.extend(of_health(record));
    families
        .iter()
        .filter(|family| !family.samples.is_empty())
        .try_for_each(|family| write_family(family, out))?;
    writeln!(out, "# EOF")
}
