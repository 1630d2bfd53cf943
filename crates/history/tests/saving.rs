//! What is saved comes back as it was; lists, filters, labels and removal do what they say.
#![allow(clippy::unwrap_used)] // a failed step fails the test

mod runs;

use diskproof_history::{
    Filter, Folders, History, HistoryError, HistoryPlace, NewRun, SCHEMA_VERSION, SaveOutcome, save,
};
use diskproof_simdisk::testbed::can_run;
use diskproof_simdisk::{DirectAccess, SimDirectory};
use runs::{ids, integrity, open, place, record, save_run};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

const PAGE: &str = "\u{1b}[1mdiskproof\u{1b}[0m · 3 µs\n";

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn a_run_comes_back_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(folder.path());
    assert!(
        History::open(&place).unwrap().is_none(),
        "looking makes no file"
    );
    let record = record("abcd", "2026-11-20T10:00:00Z");
    let saved = save(
        &place,
        &NewRun {
            record: &record,
            page: Some(PAGE),
            label: Some("first"),
        },
    )
    .unwrap();
    assert_eq!((saved.outcome, saved.moved), (SaveOutcome::Added, None));
    let stored = open(&place).get("abcd").unwrap().unwrap();
    assert_eq!(
        (
            stored.record,
            stored.page.as_deref(),
            stored.label.as_deref()
        ),
        (record, Some(PAGE), Some("first"))
    );
    assert_eq!(open(&place).get("abc").unwrap(), None);
    assert_eq!(mode(&place.path), 0o600);
    // Again: no error, and nothing changes.
    assert_eq!(
        save_run(&place, "abcd").unwrap().outcome,
        SaveOutcome::Known
    );
    assert_eq!(
        open(&place).get("abcd").unwrap().unwrap().page.as_deref(),
        Some(PAGE)
    );
    assert_eq!(integrity(&place), "ok");
}

#[test]
fn missing_folders_are_made_for_the_owner_only_where_that_is_wanted() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(".local/state/diskproof/history.db");
    let expected = HistoryPlace {
        path: path.clone(),
        folders: Folders::Expected,
    };
    assert!(matches!(
        save_run(&expected, "a"),
        Err(HistoryError::Unreachable { .. })
    ));
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
    let made = HistoryPlace {
        path: path.clone(),
        folders: Folders::Made,
    };
    save_run(&made, "a").unwrap();
    assert_eq!((mode(path.parent().unwrap()), mode(&path)), (0o700, 0o600));
}

/// Saves four runs: on two machines, with two targets and two disks.
fn save_four(place: &HistoryPlace) {
    let add = |run_id: &str,
               started: &str,
               label: Option<&str>,
               change: &dyn Fn(&mut diskproof_model::record::Record)| {
        let mut record = record(run_id, started);
        change(&mut record);
        save(
            place,
            &NewRun {
                record: &record,
                page: None,
                label,
            },
        )
        .unwrap();
    };
    add("aa11", "2026-11-20T10:00:00Z", None, &|_| {});
    add(
        "aa22",
        "2026-11-20T12:00:00+01:00",
        Some("odd"),
        &|record| record.targets[0].path = "/srv/[1]".to_owned(),
    );
    add("bb33", "2026-11-20T11:00:00Z", Some("odd"), &|record| {
        record.host.name = "db2".to_owned()
    });
    add("cc44", "2026-11-19T23:00:00Z", None, &|record| {
        record.host.name = "db2".to_owned();
        record.targets[0].path = "/mnt/old".to_owned();
        record.targets[0]
            .layers
            .iter_mut()
            .for_each(|layer| layer.serial = Some("OTHER".to_owned()));
    });
}

/// The ids of the runs that the history lists, in order.
fn list(history: &History, filter: &Filter) -> String {
    history
        .list(filter)
        .unwrap()
        .runs
        .into_iter()
        .map(|run| run.run_id)
        .collect::<Vec<_>>()
        .join(" ")
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn list_is_newest_first_and_filters_combine() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(folder.path());
    save_four(&place);
    let history = open(&place);
    assert_eq!(list(&history, &Filter::default()), "bb33 aa22 aa11 cc44");
    assert_eq!(
        list(
            &history,
            &Filter {
                limit: Some(2),
                ..Filter::default()
            }
        ),
        "bb33 aa22"
    );
    // The same disk, whatever the machine.
    assert_eq!(
        list(
            &history,
            &Filter {
                serial: some("S64FNE0R"),
                ..Filter::default()
            }
        ),
        "bb33 aa22 aa11"
    );
    assert_eq!(
        list(
            &history,
            &Filter {
                serial: some("S64FNE0R"),
                host: some("db1"),
                ..Filter::default()
            }
        ),
        "aa22 aa11"
    );
    assert_eq!(
        list(
            &history,
            &Filter {
                target: some("/srv/*"),
                ..Filter::default()
            }
        ),
        "bb33 aa22 aa11"
    );
    assert_eq!(
        list(
            &history,
            &Filter {
                target: some("/srv/[1]"),
                ..Filter::default()
            }
        ),
        "aa22"
    );
}

#[test]
fn list_filters_by_label_verb_and_time() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(folder.path());
    save_four(&place);
    let history = open(&place);
    assert_eq!(
        list(
            &history,
            &Filter {
                label: some("odd"),
                verb: some("run"),
                ..Filter::default()
            }
        ),
        "bb33 aa22"
    );
    assert_eq!(
        list(
            &history,
            &Filter {
                verb: some("check"),
                ..Filter::default()
            }
        ),
        ""
    );
    assert_eq!(
        list(
            &history,
            &Filter {
                since: Some(1_795_132_800),
                ..Filter::default()
            }
        ),
        "bb33 aa22 aa11"
    );
    assert_eq!(
        list(
            &history,
            &Filter {
                host: some("' OR 1=1 --"),
                ..Filter::default()
            }
        ),
        ""
    );
}

#[test]
fn runs_are_found_by_id_label_and_age() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(folder.path());
    save_four(&place);
    let history = open(&place);
    assert_eq!(history.ids("aa").unwrap(), ["aa22", "aa11"]);
    assert_eq!(history.ids("a%").unwrap(), [""; 0]);
    assert_eq!(history.labelled("odd").unwrap(), ["bb33", "aa22"]);
    assert_eq!(history.nth_newest(1).unwrap().as_deref(), Some("aa22"));
    assert_eq!(history.nth_newest(4).unwrap(), None);
    let run = &history
        .list(&Filter {
            limit: Some(1),
            ..Filter::default()
        })
        .unwrap()
        .runs[0];
    assert_eq!(
        (
            run.verb.as_str(),
            run.host.as_str(),
            run.disks[0].best_name()
        ),
        ("run", "db2", "S64FNE0R")
    );
    assert_eq!(
        (run.figures[0].unit.as_str(), run.figures.len()),
        ("1/s", 1)
    );
}

#[test]
fn labels_change_and_keep_runs_from_being_pruned() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(folder.path());
    for (run_id, started) in [
        ("a", "2026-01-01T00:00:00Z"),
        ("b", "2026-02-01T00:00:00Z"),
        ("c", "2026-03-01T00:00:00Z"),
        ("d", "2026-04-01T00:00:00Z"),
    ] {
        save(
            &place,
            &NewRun {
                record: &record(run_id, started),
                page: Some(PAGE),
                label: None,
            },
        )
        .unwrap();
    }
    let mut history = open(&place);
    history.label("a", Some("baseline")).unwrap();
    let prunable = |history: &History, before, keep| {
        history
            .prunable(before, keep)
            .unwrap()
            .into_iter()
            .map(|run| run.run_id)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(prunable(&history, None, Some(1)), "c b");
    assert_eq!(prunable(&history, Some(1_772_323_200), None), "b"); // 2026-03-01
    history.label("a", None).unwrap();
    assert_eq!(prunable(&history, Some(1_772_323_200), None), "b a");
    let large = place.path.metadata().unwrap().len();
    assert_eq!(
        history
            .delete(&[
                "a".to_owned(),
                "b".to_owned(),
                "c".to_owned(),
                "nosuch".to_owned()
            ])
            .unwrap(),
        3
    );
    drop(history);
    assert_eq!(ids(&place), ["d"]);
    assert!(
        place.path.metadata().unwrap().len() < large,
        "the room is given back"
    );
    let connection = rusqlite::Connection::open(&place.path).unwrap();
    let rest: i64 = connection
        .query_row(
            "SELECT (SELECT count(*) FROM run_targets) + (SELECT count(*) FROM run_disks)",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(rest, 2, "nothing of a removed run stays");
}

#[test]
fn a_record_without_a_time_is_refused_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(folder.path());
    let error = save(
        &place,
        &NewRun {
            record: &record("a", "yesterday"),
            page: None,
            label: None,
        },
    )
    .unwrap_err();
    assert!(matches!(error, HistoryError::Record { .. }), "{error}");
    save_run(&place, "b").unwrap();
}

fn journal(place: &HistoryPlace) -> String {
    rusqlite::Connection::open(&place.path)
        .unwrap()
        .query_row("PRAGMA journal_mode", [], |row| row.get(0))
        .unwrap()
}

#[test]
fn the_journal_suits_the_filesystem() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let local = place(folder.path());
    save_run(&local, "a").unwrap();
    assert_eq!(journal(&local), "wal");
    if !can_run("the_journal_suits_the_filesystem", &["fusermount3"]) {
        return;
    }
    let point = folder.path().join("fuse");
    let far = SimDirectory::serve(DirectAccess::Accepted, &point).unwrap();
    let remote = place(far.path());
    // One with a log was copied there: it is read without shared memory, and goes on with a
    // rollback journal.
    std::fs::write(&remote.path, std::fs::read(&local.path).unwrap()).unwrap();
    assert_eq!(ids(&remote), ["a"]);
    assert_eq!(journal(&remote), "delete");
    std::thread::scope(|scope| {
        for name in ["b", "c", "d", "e"] {
            let remote = &remote;
            scope.spawn(move || {
                (0..5).for_each(|n| {
                    assert_eq!(
                        save_run(remote, &format!("{name}{n}")).unwrap().outcome,
                        SaveOutcome::Added
                    )
                })
            });
        }
    });
    assert_eq!(
        (ids(&remote).len(), integrity(&remote).as_str()),
        (21, "ok")
    );
    assert_eq!(journal(&remote), "delete");
}

/// Made by `UPDATE_FIXTURES=1 cargo test -p diskproof-history --test saving`, once for each version
/// of the format: `fixtures/vN.db`.
#[test]
fn histories_of_all_versions_can_be_read_and_added_to() {
    let fixture = |version: i64| {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/v{version}.db"))
    };
    let folder = tempfile::tempdir().unwrap();
    if std::env::var_os("UPDATE_FIXTURES").is_some() {
        let place = place(folder.path());
        save(
            &place,
            &NewRun {
                record: &record("f00d", "2026-11-20T10:00:00Z"),
                page: Some(PAGE),
                label: Some("old"),
            },
        )
        .unwrap();
        assert!(
            !fixture(SCHEMA_VERSION).exists(),
            "the fixture of a version is made once; a change of the format is a new version"
        );
        std::fs::copy(&place.path, fixture(SCHEMA_VERSION)).unwrap();
    }
    for version in 1..=SCHEMA_VERSION {
        let place = HistoryPlace {
            path: folder.path().join(format!("v{version}.db")),
            folders: Folders::Expected,
        };
        std::fs::copy(fixture(version), &place.path).unwrap();
        let stored = open(&place).get("f00d").unwrap().unwrap();
        assert_eq!(
            stored.record,
            record("f00d", "2026-11-20T10:00:00Z"),
            "version {version}"
        );
        assert_eq!(
            (stored.page.as_deref(), stored.label.as_deref()),
            (Some(PAGE), Some("old")),
            "version {version}"
        );
        assert_eq!(
            open(&place).list(&Filter::default()).unwrap().runs[0].targets,
            ["/srv/data"],
            "version {version}"
        );
        save_run(&place, "new").unwrap();
        assert_eq!(
            (ids(&place), integrity(&place)),
            (vec!["f00d".to_owned(), "new".to_owned()], "ok".to_owned()),
            "version {version}"
        );
    }
}
