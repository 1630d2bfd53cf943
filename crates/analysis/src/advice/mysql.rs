//! Advises on `innodb_io_capacity` by the page writes of a profile for MySQL or MariaDB.

use super::reasons_against::{leave_alone, reason_against_row};
use diskproof_model::advice::Advice;
use diskproof_model::digits::rounded;
use diskproof_model::measurement::OpKind;
use diskproof_model::record::Record;

/// The workload of the profiles that writes pages as the server's background flushing does.
const PAGES: &str = "mysql-pages";
const SETTING: &str = "innodb_io_capacity";
/// The smallest value that the server takes.
const CAPACITY_MIN: f64 = 100.0;
/// The largest value that the server's manual recommends to try.
const CAPACITY_MAX: f64 = 20_000.0;

/// A server version whose default is known.
struct ServerVersion {
    /// The profile of `--fit-for` that is meant for it.
    profile: &'static str,
    name: &'static str,
    default_capacity: f64,
}

/// The manuals of MySQL 8.0 (15.8.7), 8.4 and 9.x (17.8.7), and of MariaDB.
const VERSIONS: [ServerVersion; 2] = [
    ServerVersion {
        profile: "mysql",
        name: "MySQL 8.4 and 9.x",
        default_capacity: 10_000.0,
    },
    ServerVersion {
        profile: "mysql-8.0",
        name: "MySQL 8.0 and MariaDB",
        default_capacity: 200.0,
    },
];

/// The advice for the server of a profile; `None` where the run used another profile.
pub(super) fn advise_io_capacity(record: &Record) -> Option<Advice> {
    let profile = record.plan.questions.fit_for.as_deref()?;
    let version = VERSIONS.iter().find(|version| version.profile == profile)?;
    let index = record
        .measurements
        .iter()
        .position(|row| row.data.workload.name == PAGES)?;
    if let Some(reason) = reason_against_row(record, index) {
        return Some(leave_alone(SETTING, reason, &[PAGES]));
    }
    let writes = record.measurements[index].op(OpKind::Write)?;
    let rate = &writes.figures.iops;
    let capacity = two_digits_at_most(rate.value).clamp(CAPACITY_MIN, CAPACITY_MAX);
    let default = rounded(version.default_capacity, None);
    let default_clause = if version.default_capacity > rate.value {
        format!(
            "The default of {}, {default}, is higher than that",
            version.name
        )
    } else {
        format!("The default of {} is {default}", version.name)
    };
    let why = format!(
        "The disk wrote {} pages of 16 kB a second, with an fsync after every 64. \
         {default_clause}. The setting is the rate of background writes that the server expects of \
         the disk.",
        rate.value_text()
    );
    Some(Advice {
        value: Some(format!("{capacity:.0}")),
        default: Some(format!("{:.0}", version.default_capacity)),
        ..leave_alone(SETTING, why, &[PAGES])
    })
}

/// The largest number of two digits followed by zeros that is at most the rate: 7700 for 7770.
fn two_digits_at_most(rate: f64) -> f64 {
    let step = 10_f64.powf(rate.max(10.0).log10().floor() - 1.0);
    (rate / step).floor() * step
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn advised(profile: &str, rate: f64) -> Advice {
        let mut record = fixture::record();
        record.plan.questions.fit_for = Some(profile.to_owned());
        let pages = fixture::measured(&mut record, "random-write-d32");
        pages.data.workload.name = PAGES.to_owned();
        if let Some(writes) = pages.figures.ops.get_mut(&OpKind::Write) {
            let scale = rate / writes.iops.value;
            writes.iops.value = rate;
            writes.iops.half_width_95 = writes.iops.half_width_95.map(|half| half * scale);
        }
        crate::advice::advised_settings(&record).remove(0)
    }

    #[test]
    fn innodb_io_capacity_follows_the_measured_page_writes() {
        let value = |profile, rate| {
            let advice = advised(profile, rate);
            (advice.value.unwrap(), advice.default.unwrap())
        };
        let pair = |value: &str, default: &str| (value.to_owned(), default.to_owned());
        assert_eq!(value("mysql", 7770.0), pair("7700", "10000"));
        assert_eq!(value("mysql", 61_000.0), pair("20000", "10000"));
        assert_eq!(value("mysql-8.0", 431.0), pair("430", "200"));
        assert_eq!(value("mysql-8.0", 42.0), pair("100", "200"));
    }

    #[test]
    fn default_above_the_disk_is_stated() {
        let why = advised("mysql", 7770.0).why;
        assert!(why.contains("8.4") && why.contains("higher"), "{why}");
        assert!(!advised("mysql", 12_000.0).why.contains("higher"));
    }
}
