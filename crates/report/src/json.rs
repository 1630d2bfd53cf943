//! JSON documents: pretty-printed, with one trailing newline. The shapes are the model's.

use crate::Examined;
use crate::text::is_hidden;
use diskproof_model::comparison::Comparison;
use diskproof_model::fleet::FleetRecord;
use diskproof_model::plan::Plan;
use diskproof_model::record::Record;
use diskproof_model::saved::SavedRun;
use diskproof_model::target::TargetIdentity;
use diskproof_model::timetable::Slot;
use diskproof_model::trend::Trend;
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};
use std::io::{self, Write};

/// Writes the whole record in its published schema.
pub fn write_record(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    write_document(&laid_out(record, JsonLayout::Record)?, out)
}

/// Writes an object with `host`, `target`, `health` and `findings`, each as in a record.
pub fn write_identity(examined: &Examined<'_>, out: &mut dyn Write) -> io::Result<()> {
    let document = serde_json::json!({
        "host": examined.host,
        "target": examined.identity,
        "health": examined.health,
        "findings": examined.findings,
    });
    write_document(&serde_json::to_string_pretty(&document)?, out)
}

/// Writes a plan before it runs: an object with `plan` and `targets`, each as in a record, and the
/// `timetable` of a plan that is measured together with other hosts.
pub fn write_plan(plan: &Plan, targets: &[TargetIdentity], out: &mut dyn Write) -> io::Result<()> {
    let mut document = serde_json::json!({ "plan": plan, "targets": targets });
    if let Some(slots) = plan.timetable() {
        document["timetable"] = timetable(plan, &slots);
    }
    write_document(&serde_json::to_string_pretty(&document)?, out)
}

/// When each slot is measured, in nanoseconds after the start of the first one, and when all are.
fn timetable(plan: &Plan, slots: &[Slot]) -> serde_json::Value {
    let mut rows = Vec::new();
    for slot in slots {
        rows.push(serde_json::json!({
            "slot": slot.number,
            "workloads": plan.workloads_in(slot),
            "start_ns": slot.start_ns,
            "warmup_ns": slot.warmup_ns,
            "time_ns": slot.time_ns,
            "end_ns": slot.end_ns(),
        }));
    }
    serde_json::json!({
        "slots": rows,
        "end_ns": slots.last().map_or(0, Slot::end_ns),
    })
}

/// Writes a comparison in its published schema.
pub fn write_comparison(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    write_document(&serde_json::to_string_pretty(comparison)?, out)
}

/// Writes a fleet in its published schema.
pub fn write_fleet(fleet: &FleetRecord, out: &mut dyn Write) -> io::Result<()> {
    write_document(&serde_json::to_string_pretty(fleet)?, out)
}

/// Writes an array of saved runs in short, in the order given.
pub fn write_runs(runs: &[SavedRun], out: &mut dyn Write) -> io::Result<()> {
    write_document(&serde_json::to_string_pretty(runs)?, out)
}

/// Writes an array of trends.
pub fn write_trends(trends: &[Trend], out: &mut dyn Write) -> io::Result<()> {
    write_document(&serde_json::to_string_pretty(trends)?, out)
}

/// JSON requires escapes only below U+0020. A device's name may also hold U+009B, which some
/// terminals interpret as an escape sequence, or marks that reorder text. JSON has none of these
/// outside of strings, so all are escaped.
pub(crate) fn write_document(document: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut safe = String::with_capacity(document.len() + 1);
    for letter in document.chars() {
        if letter != '\n' && is_hidden(letter) {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                safe += &format!("\\u{unit:04x}");
            }
        } else {
            safe.push(letter);
        }
    }
    safe.push('\n');
    out.write_all(safe.as_bytes())
}

/// Depth of the values that are indented; deeper ones stand on one line: each field of a row.
const INDENTED_MAX: usize = 3;

/// How a document is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonLayout {
    /// Only the outer values are indented: a record stays readable, and no number has a line of
    /// its own.
    Record,
    /// All values are indented as fio does it, and floats have six digits.
    Fio,
}

/// The document as text.
pub(crate) fn laid_out(document: &impl Serialize, layout: JsonLayout) -> io::Result<String> {
    let mut text = Vec::new();
    let formatter = LayoutFormatter {
        layout,
        pretty: PrettyFormatter::new(),
        depth: 0,
    };
    document.serialize(&mut Serializer::with_formatter(&mut text, formatter))?;
    String::from_utf8(text).map_err(io::Error::other)
}

struct LayoutFormatter {
    layout: JsonLayout,
    pretty: PrettyFormatter<'static>,
    depth: usize,
}

impl LayoutFormatter {
    fn is_indented(&self) -> bool {
        match self.layout {
            JsonLayout::Record => self.depth <= INDENTED_MAX,
            JsonLayout::Fio => true,
        }
    }
}

impl Formatter for LayoutFormatter {
    /// Of fio `%f` of printf(3): readers distinguish floats and integers by the fraction.
    fn write_f64<W: ?Sized + Write>(&mut self, to: &mut W, value: f64) -> io::Result<()> {
        match self.layout {
            JsonLayout::Record => self.pretty.write_f64(to, value),
            JsonLayout::Fio => write!(to, "{value:.6}"),
        }
    }

    fn begin_array<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.depth += 1;
        if self.is_indented() {
            self.pretty.begin_array(to)
        } else {
            to.write_all(b"[")
        }
    }

    fn end_array<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        let was_indented = self.is_indented();
        self.depth -= 1;
        if was_indented {
            self.pretty.end_array(to)
        } else {
            to.write_all(b"]")
        }
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        if self.is_indented() {
            self.pretty.begin_array_value(to, first)
        } else {
            write_comma(to, first)
        }
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        if self.is_indented() {
            self.pretty.end_array_value(to)
        } else {
            Ok(())
        }
    }

    fn begin_object<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.depth += 1;
        if self.is_indented() {
            self.pretty.begin_object(to)
        } else {
            to.write_all(b"{")
        }
    }

    fn end_object<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        let was_indented = self.is_indented();
        self.depth -= 1;
        if was_indented {
            self.pretty.end_object(to)
        } else {
            to.write_all(b"}")
        }
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        if self.is_indented() {
            self.pretty.begin_object_key(to, first)
        } else {
            write_comma(to, first)
        }
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        if self.layout == JsonLayout::Fio {
            to.write_all(b" : ")
        } else if self.is_indented() {
            self.pretty.begin_object_value(to)
        } else {
            to.write_all(b":")
        }
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        if self.is_indented() {
            self.pretty.end_object_value(to)
        } else {
            Ok(())
        }
    }
}

/// Writes the comma before all but the first value of a list or an object on one line.
fn write_comma<W: ?Sized + Write>(to: &mut W, first: bool) -> io::Result<()> {
    if first { Ok(()) } else { to.write_all(b",") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::plan::Order;
    use diskproof_model::target::HostFacts;
    use diskproof_model::timetable::SlotPlan;

    #[test]
    fn plan_in_slots_has_its_timetable_and_another_one_has_none() {
        let record = crate::fixture::record();
        let mut plan = record.plan;
        let shown = |plan: &Plan| -> serde_json::Value {
            let text = crate::fixture::written(|out| write_plan(plan, &record.targets, out));
            serde_json::from_str(&text).unwrap()
        };
        assert!(shown(&plan).get("timetable").is_none());
        plan.workload_task_mut().unwrap().order = Order::InSlots(SlotPlan {
            lead_ns: 0,
            gap_ns: 300_000_000,
        });
        let document = shown(&plan);
        let slots = document["timetable"]["slots"].as_array().unwrap();
        let planned = plan.timetable().unwrap();
        assert_eq!(slots.len(), planned.len());
        for (shown, slot) in slots.iter().zip(&planned) {
            assert_eq!(shown["start_ns"], slot.start_ns);
            assert_eq!(shown["time_ns"], slot.time_ns);
            assert_eq!(shown["workloads"][0], plan.workloads_in(slot)[0]);
        }
        let end_ns = planned.last().unwrap().end_ns();
        assert_eq!(document["timetable"]["end_ns"], end_ns);
    }

    #[test]
    fn control_characters_are_escaped_and_kept() {
        let host = HostFacts {
            name: "a\u{1b}[31m\u{9b}2J\u{202e}\u{e0041}\n\"é".to_owned(),
            ..HostFacts::default()
        };
        let text = serde_json::to_string_pretty(&host).unwrap();
        let mut out = Vec::new();
        write_document(&text, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.chars().all(|c| c == '\n' || !is_hidden(c)), "{text:?}");
        assert!(text.contains('é'));
        assert_eq!(serde_json::from_str::<HostFacts>(&text).unwrap(), host);
    }
}
