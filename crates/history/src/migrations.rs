//! The format of the file, version by version. A new version is a new file of SQL and a line in
//! [`MIGRATIONS`]; released ones are never changed.

use crate::error::HistoryError;
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;

/// Each leads from the version that is its index to the next one.
const MIGRATIONS: &[&str] = &[include_str!("migrations/v1.sql")];

/// The version of the format that this program writes.
pub const SCHEMA_VERSION: i64 = MIGRATIONS.len() as i64;

/// `DPrf`: marks a database as one of ours (`PRAGMA application_id`), so that no other one is ever
/// changed.
pub(crate) const APPLICATION_ID: i64 = 0x4450_7266;

/// Brings the database to this program's version, in one transaction. One of a later version or of
/// another program is left as it is.
pub(crate) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), HistoryError> {
    migrate_by(MIGRATIONS, connection, path)
}

fn migrate_by(
    migrations: &[&str],
    connection: &mut Connection,
    path: &Path,
) -> Result<(), HistoryError> {
    let known = migrations.len() as i64;
    let failed = |error| HistoryError::sqlite(path, &error);
    // In one look: what another process is just making must not seem to be half of something else.
    let look = connection.transaction().map_err(failed)?;
    if version(&look, path, known)? == known {
        return Ok(());
    }
    drop(look);
    // A rollback journal, so that the mark and the version are in the file itself from the
    // beginning. The lock comes first: another process may be doing the same.
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(failed)?;
    let found = version(&transaction, path, known)?;
    for migration in migrations.iter().skip(usize::try_from(found).unwrap_or(0)) {
        transaction.execute_batch(migration).map_err(failed)?;
    }
    transaction
        .pragma_update(None, "application_id", APPLICATION_ID)
        .map_err(failed)?;
    transaction
        .pragma_update(None, "user_version", known)
        .map_err(failed)?;
    transaction.commit().map_err(failed)
}

/// Version of the database; 0 for a new one.
fn version(connection: &Connection, path: &Path, known: i64) -> Result<i64, HistoryError> {
    let number = |text: &str| {
        connection
            .query_row(text, [], |row| row.get::<_, i64>(0))
            .map_err(|error| HistoryError::sqlite(path, &error))
    };
    let (mark, version) = (
        number("PRAGMA application_id")?,
        number("PRAGMA user_version")?,
    );
    match mark {
        APPLICATION_ID if version > known => Err(HistoryError::Newer {
            path: path.to_owned(),
            found: version,
        }),
        APPLICATION_ID => Ok(version),
        0 if version == 0 && number("SELECT count(*) FROM sqlite_schema")? == 0 => Ok(0),
        _ => Err(HistoryError::Foreign {
            path: path.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEXT: &str = "ALTER TABLE runs ADD COLUMN color TEXT NOT NULL DEFAULT 'blue'; UPDATE \
                        runs SET host = host || '!';";
    const BROKEN: &str = "DELETE FROM runs; ALTER TABLE nosuch ADD COLUMN color TEXT;";

    fn old() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, Path::new("h")).unwrap();
        let row = "INSERT INTO runs (run_id, started, verb, host, partial, method, summary, \
                   record) VALUES ('a', 1, 'check', 'db1', 0, 1, '{}', x'')";
        connection.execute(row, []).unwrap();
        connection
    }

    fn text(connection: &Connection, query: &str) -> String {
        connection.query_row(query, [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_later_version_is_a_line_more_and_keeps_what_was_saved() {
        let mut connection = old();
        migrate_by(
            &[MIGRATIONS, &[NEXT]].concat(),
            &mut connection,
            Path::new("h"),
        )
        .unwrap();
        assert_eq!(
            text(&connection, "SELECT host || color FROM runs"),
            "db1!blue"
        );
        assert_eq!(
            version(&connection, Path::new("h"), SCHEMA_VERSION + 1).unwrap(),
            SCHEMA_VERSION + 1
        );
        // The older program then knows that it is too old.
        assert!(
            matches!(migrate(&mut connection, Path::new("h")), Err(HistoryError::Newer { found, .. }) if found == SCHEMA_VERSION + 1)
        );
    }

    #[test]
    fn a_migration_that_fails_changes_nothing() {
        let mut connection = old();
        let failed = migrate_by(
            &[MIGRATIONS, &[NEXT, BROKEN]].concat(),
            &mut connection,
            Path::new("h"),
        );
        assert!(
            matches!(failed, Err(HistoryError::Other { .. })),
            "{failed:?}"
        );
        assert_eq!(text(&connection, "SELECT host FROM runs"), "db1");
        assert_eq!(
            version(&connection, Path::new("h"), SCHEMA_VERSION).unwrap(),
            SCHEMA_VERSION
        );
    }

    #[test]
    fn another_programs_database_is_left_alone() {
        for made in [
            "CREATE TABLE bookmarks (url TEXT)",
            "PRAGMA application_id = 7",
            "PRAGMA user_version = 1",
        ] {
            let mut connection = Connection::open_in_memory().unwrap();
            connection.execute_batch(made).unwrap();
            assert!(
                matches!(
                    migrate(&mut connection, Path::new("h")),
                    Err(HistoryError::Foreign { .. })
                ),
                "{made}"
            );
        }
    }
}
