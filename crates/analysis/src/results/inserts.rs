//! Writes the clause of the headline on the INSERTs of a temporary PostgreSQL server.

use diskproof_model::digits::rounded;
use diskproof_model::postgres::PostgresRecord;
use diskproof_model::record::Record;

/// `4,800 INSERTs/s of PostgreSQL (fdatasync-c1)`, of the first load. The commits of the run itself
/// are the answer where there are any: the server's stand in the table then.
pub(super) fn insert_clause(record: &Record, server: &PostgresRecord) -> Option<String> {
    if !record.measurements.is_empty() {
        return None;
    }
    let load = server.loads.first()?;
    let rate = &load.figures.iops;
    if rate.is_unknown() {
        return None;
    }
    let shown = rounded(rate.value, rate.half_width_95);
    let name = &load.data.load.name;
    Some(format!("{shown} INSERTs/s of PostgreSQL ({name})"))
}
