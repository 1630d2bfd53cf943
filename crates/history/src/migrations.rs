//! The format of the file, version by version. A new version is a new file of SQL and a line in
//! [`MIGRATIONS`]; released ones are never changed.

use crate::error::{HistoryError, WithPath as _};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::path::Path;

/// Each migrates from the version that is its index to the next one.
const MIGRATIONS: &[&str] = &[include_str!("migrations/v1.sql")];

/// The version of the format that this program writes.
pub const SCHEMA_VERSION: i64 = MIGRATIONS.len() as i64;

/// `DPrf` (`PRAGMA application_id`): marks a database as a diskproof history. No other database is
/// ever changed.
pub(crate) const APPLICATION_ID: i64 = 0x4450_7266;

/// Migrates the database to this program's version, in one transaction. Refuses a database of a
/// later version or of another program.
pub(crate) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), HistoryError> {
    migrate_by(MIGRATIONS, connection, path)
}

fn migrate_by(
    migrations: &[&str],
    connection: &mut Connection,
    path: &Path,
) -> Result<(), HistoryError> {
    let known = migrations.len() as i64;
    // One transaction: a database that another process is just making must not look half made.
    let reading = connection.transaction().with_path(path)?;
    if version(&reading, path, known)? == known {
        return Ok(());
    }
    drop(reading);
    // A rollback journal, so that the mark and the version are in the file itself from the
    // beginning. The lock comes first: another process may be doing the same.
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .with_path(path)?;
    let current = version(&transaction, path, known)?;
    let applied = usize::try_from(current).unwrap_or(0);
    let missing = migrations.get(applied..).unwrap_or_default();
    apply(missing, transaction, known).with_path(path)
}

/// Runs the migrations, and sets the mark and the version `known`.
fn apply(migrations: &[&str], transaction: Transaction<'_>, known: i64) -> rusqlite::Result<()> {
    for migration in migrations {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", known)?;
    transaction.commit()
}

/// Version of the database; 0 for a new one.
fn version(connection: &Connection, path: &Path, known: i64) -> Result<i64, HistoryError> {
    let mark = number(connection, path, "PRAGMA application_id")?;
    let version = number(connection, path, "PRAGMA user_version")?;
    match mark {
        APPLICATION_ID if version > known => Err(HistoryError::Newer {
            path: path.to_owned(),
            found: version,
            known,
        }),
        APPLICATION_ID if version > 0 => Ok(version),
        0 | APPLICATION_ID if version == 0 && count_tables(connection, path)? == 0 => Ok(0),
        APPLICATION_ID => Err(HistoryError::NoVersion {
            path: path.to_owned(),
            found: version,
        }),
        _ => Err(HistoryError::Foreign(path.to_owned())),
    }
}

fn count_tables(connection: &Connection, path: &Path) -> Result<i64, HistoryError> {
    number(connection, path, "SELECT count(*) FROM sqlite_schema")
}

/// The number that a query returns.
fn number(connection: &Connection, path: &Path, query: &str) -> Result<i64, HistoryError> {
    connection
        .query_row(query, [], |row| row.get(0))
        .with_path(path)
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
    fn later_migration_keeps_saved_runs() {
        let mut connection = old();
        let path = Path::new("h");
        migrate_by(&[MIGRATIONS, &[NEXT]].concat(), &mut connection, path).unwrap();
        assert_eq!(
            text(&connection, "SELECT host || color FROM runs"),
            "db1!blue"
        );
        let next = SCHEMA_VERSION + 1;
        assert_eq!(version(&connection, path, next).unwrap(), next);
        let refused = migrate(&mut connection, path).unwrap_err();
        let HistoryError::Newer { found, known, .. } = refused else {
            panic!("{refused}");
        };
        assert_eq!((found, known), (next, SCHEMA_VERSION));
    }

    #[test]
    fn failed_migration_changes_nothing() {
        let mut connection = old();
        let path = Path::new("h");
        let failed = migrate_by(
            &[MIGRATIONS, &[NEXT, BROKEN]].concat(),
            &mut connection,
            path,
        );
        assert!(
            matches!(failed, Err(HistoryError::Other { .. })),
            "{failed:?}"
        );
        assert_eq!(text(&connection, "SELECT host FROM runs"), "db1");
        assert_eq!(
            version(&connection, path, SCHEMA_VERSION).unwrap(),
            SCHEMA_VERSION
        );
    }

    #[test]
    fn history_with_tables_and_no_version_is_refused_without_sql() {
        for version in [0, -1] {
            let mut connection = old();
            connection
                .pragma_update(None, "user_version", version)
                .unwrap();
            let error = migrate(&mut connection, Path::new("h")).unwrap_err();
            assert!(matches!(error, HistoryError::NoVersion { found, .. } if found == version));
            assert!(!error.to_string().contains("TABLE"), "{error}");
            assert_eq!(text(&connection, "SELECT host FROM runs"), "db1");
        }
    }

    #[test]
    fn other_programs_database_is_refused() {
        for made in [
            "CREATE TABLE bookmarks (url TEXT)",
            "PRAGMA application_id = 7",
            "PRAGMA user_version = 1",
        ] {
            let mut connection = Connection::open_in_memory().unwrap();
            connection.execute_batch(made).unwrap();
            let refused = migrate(&mut connection, Path::new("h"));
            assert!(
                matches!(refused, Err(HistoryError::Foreign { .. })),
                "{made}"
            );
        }
    }
}
