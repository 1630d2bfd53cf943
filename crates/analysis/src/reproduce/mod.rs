//! Writes the command line of another tool that shows a figure again: of fio 3.33 or later for
//! workloads, of ioping 1.2 or later for single requests, of zcav for a curve. A load that the tool
//! cannot make has no line. Nothing here runs the lines. Option names and meanings are those of
//! fio's HOWTO and of ioping(1).

mod fio;
mod fio_job;
mod fio_offsets;
mod fio_shape;
mod ioping;
mod words;

pub use fio::{RanWorkload, fio_command};
pub use ioping::ioping_command;

use diskproof_model::measurement::OpKind;
use diskproof_model::plan::Span;
use diskproof_model::shell::quoted;
use diskproof_model::surface::SurfaceMeasurement;
use diskproof_model::target::{TargetIdentity, TargetKind};

/// A mebibyte in bytes.
const MIB: u64 = 1 << 20;

/// The line that shows the same curve: of zcav (bonnie++ 2.00), which reads a device or file in
/// cells of so many MiB that there are as many as points, or for a directory of fio with a log of
/// its rate by offset. Both read everything. Empty without a curve, and for a curve of writes,
/// which would destroy data.
pub fn curve_command(surface: &SurfaceMeasurement, target: &TargetIdentity) -> String {
    if surface.survey.operation == OpKind::Write || surface.curve.is_empty() {
        return String::new();
    }
    if target.kind == TargetKind::Directory {
        let directory = quoted(&format!("--directory={}", target.path));
        let size = surface.span_start_bytes.saturating_add(surface.span_bytes) / MIB;
        return format!(
            "fio --name=curve {directory} --unlink=1 --rw=read --size={size}M --bs=1M \
             --ioengine=libaio --iodepth=8 --direct=1 --write_bw_log=curve --log_avg_msec=200 \
             --log_offset=1"
        );
    }
    let cell = (surface.span_bytes / surface.curve.len() as u64 / MIB).max(1);
    let is_part = surface.survey.span != Span::default();
    let start = surface.span_start_bytes;
    let end = start.saturating_add(surface.span_bytes);
    let part = if is_part {
        format!("-r {}:{} ", start / MIB, end / MIB)
    } else {
        String::new()
    };
    format!("zcav -b {cell} {part}-u root -f {}", quoted(&target.path))
}

#[cfg(test)]
mod tests;
