//! What is saved comes back as it was; lists, filters, labels and removal do what they say.
#![allow(clippy::unwrap_used)] // a failed step fails the test

mod runs;

use diskproof_history::{
    Filter, Folders, History, HistoryError, HistoryPlace, NewRun, RunSource, SCHEMA_VERSION,
    SaveOutcome, TargetFilter, save,
};
use diskproof_model::record::Record;
use diskproof_model::saved::SavedRun;
use diskproof_simdisk::testbed::can_run;
use diskproof_simdisk::{DirectAccess, SimDirectory};
use runs::{
    PAGE, ids, integrity, open, place, place_of_file, pragma, record, save_at_once, save_record,
    save_run,
};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

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
    let saved = save_record(&place, &record, Some("first")).unwrap();
    assert_eq!((saved.outcome, saved.moved), (SaveOutcome::Added, None));
    let stored = open(&place).get("abcd").unwrap().unwrap();
    assert_eq!(stored.record, record);
    assert_eq!(
        (stored.page.as_deref(), stored.label.as_deref()),
        (Some(PAGE), Some("first"))
    );
    assert_eq!(open(&place).get("abc").unwrap(), None);
    assert_eq!(mode(&place.path), 0o600);
    // Again: no error, and nothing changes.
    assert_eq!(
        save_run(&place, "abcd").unwrap().outcome,
        SaveOutcome::Known
    );
    let stored = open(&place).get("abcd").unwrap().unwrap();
    assert_eq!(
        (stored.page.as_deref(), stored.label.as_deref()),
        (Some(PAGE), Some("first"))
    );
    assert_eq!(integrity(&place), "ok");
}

/// A reader may save the journal of a run that goes on, or whose record is in a file.
#[test]
fn whole_run_replaces_its_own_earlier_state() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(folder.path());
    let whole = record("abcd", "2026-11-20T10:00:00Z");
    let mut begun = whole.clone();
    begun.partial = true;
    let add = |record: &Record, label, source| {
        let new = NewRun {
            record,
            page: None,
            label,
            source,
        };
        save(&place, &new).unwrap().outcome
    };
    assert_eq!(
        add(&begun, Some("mine"), RunSource::Left),
        SaveOutcome::Added
    );
    // Neither shows more.
    assert_eq!(add(&begun, None, RunSource::Left), SaveOutcome::Known);
    assert_eq!(add(&begun, None, RunSource::Imported), SaveOutcome::Known);
    assert_eq!(
        add(&whole, Some("other"), RunSource::Imported),
        SaveOutcome::Replaced
    );
    let listed = open(&place).list(&Filter::default()).unwrap().runs;
    let [run] = &listed[..] else {
        panic!("{listed:?}");
    };
    // It was measured here, and has kept its name.
    assert_eq!((run.partial, run.imported), (false, false));
    assert_eq!(run.label.as_deref(), Some("mine"));
    for source in [RunSource::Left, RunSource::Measured { command: None }] {
        assert_eq!(add(&begun, None, source), SaveOutcome::Known);
    }
    assert_eq!(open(&place).get("abcd").unwrap().unwrap().record, whole);
    assert_eq!(integrity(&place), "ok");
}

#[test]
fn missing_folders_are_made_for_the_owner_only_where_that_is_wanted() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(".local/state/diskproof/history.db");
    let refused = save_run(&place_of_file(&path), "a");
    assert!(matches!(refused, Err(HistoryError::Unreachable { .. })));
    let before = diskproof_history::refuse_foreign(&place_of_file(&path));
    assert!(before.is_err_and(|error| error.lacks_folder()));
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
    let made = HistoryPlace {
        path: path.clone(),
        folders: Folders::Made,
    };
    save_run(&made, "a").unwrap();
    assert_eq!((mode(path.parent().unwrap()), mode(&path)), (0o700, 0o600));
}

fn save_four(place: &HistoryPlace) {
    let add = |(run_id, started): (&str, &str), label, change: fn(&mut Record)| {
        let mut record = record(run_id, started);
        change(&mut record);
        save_record(place, &record, label).unwrap();
    };
    add(("aa11", "2026-11-20T10:00:00Z"), None, |_| {});
    add(
        ("aa22", "2026-11-20T12:00:00+01:00"),
        Some("odd"),
        |record| {
            record.targets[0].path = "/srv/[1]".to_owned();
        },
    );
    add(("bb33", "2026-11-20T11:00:00Z"), Some("odd"), |record| {
        record.host.name = "db2".to_owned();
    });
    add(("cc44", "2026-11-19T23:00:00Z"), None, |record| {
        record.host.name = "db2".to_owned();
        record.targets[0].path = "/mnt/old".to_owned();
        for layer in &mut record.targets[0].layers {
            layer.serial = Some("OTHER".to_owned());
        }
    });
}

fn list(history: &History, change: impl FnOnce(&mut Filter)) -> String {
    let mut filter = Filter::default();
    change(&mut filter);
    joined(history.list(&filter).unwrap().runs)
}

fn joined(runs: Vec<SavedRun>) -> String {
    let ids: Vec<String> = runs.into_iter().map(|run| run.run_id).collect();
    ids.join(" ")
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn pattern(text: &str) -> Option<TargetFilter> {
    Some(TargetFilter::Pattern(text.to_owned()))
}

fn path(text: &str) -> Option<TargetFilter> {
    Some(TargetFilter::Path(text.to_owned()))
}

/// A filter, and what it lists.
type Case = (fn(&mut Filter), &'static str);

#[test]
fn list_is_newest_first_and_filters_combine() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(folder.path());
    save_four(&place);
    let history = open(&place);
    let cases: [Case; 12] = [
        (|_| (), "bb33 aa22 aa11 cc44"),
        (|filter| filter.limit = Some(2), "bb33 aa22"),
        // The same disk, whatever the machine.
        (|filter| filter.serial = some("S64FNE0R"), "bb33 aa22 aa11"),
        (
            |filter| (filter.serial, filter.host) = (some("S64FNE0R"), some("db1")),
            "aa22 aa11",
        ),
        (|filter| filter.target = pattern("/srv/*"), "bb33 aa22 aa11"),
        (|filter| filter.target = pattern("/srv/[1]"), "aa22"),
        // The name of a directory, not of others that it matches.
        (|filter| filter.target = path("/srv/[1]"), "aa22"),
        (|filter| filter.target = path("/srv/*"), ""),
        (
            |filter| (filter.label, filter.verb) = (some("odd"), some("run")),
            "bb33 aa22",
        ),
        (|filter| filter.verb = some("check"), ""),
        (
            |filter| filter.since = Some(1_795_132_800),
            "bb33 aa22 aa11",
        ),
        (|filter| filter.host = some("' OR 1=1 --"), ""),
    ];
    let all = history.list(&Filter::default()).unwrap().runs;
    for (row, (change, ids)) in cases.into_iter().enumerate() {
        assert_eq!(list(&history, change), ids, "{row}");
        let mut filter = Filter::default();
        change(&mut filter);
        // A run that is not saved is admitted by the same conditions.
        if filter.target.is_none() && filter.limit.is_none() {
            let admitted = all.iter().filter(|run| filter.admits(run)).cloned();
            assert_eq!(joined(admitted.collect()), ids, "{row}");
        }
    }
    let undated = SavedRun {
        started: "yesterday".to_owned(),
        ..all[0].clone()
    };
    let late = Filter {
        since: Some(i64::MAX),
        ..Filter::default()
    };
    assert!(late.admits(&undated) && !late.admits(&all[0]));
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
    let run = &history.list(&Filter::default()).unwrap().runs[0];
    assert_eq!((run.verb.as_str(), run.host.as_str()), ("run", "db2"));
    assert_eq!(run.disks[0].best_name(), "S64FNE0R");
    assert_eq!(
        (run.figures[0].unit.as_str(), run.figures.len()),
        ("1/s", 1)
    );
}

#[test]
fn labels_change_and_keep_runs_from_being_pruned() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(folder.path());
    for (run_id, month) in [("a", 1), ("b", 2), ("c", 3), ("d", 4)] {
        let record = record(run_id, &format!("2026-{month:02}-01T00:00:00Z"));
        save_record(&place, &record, None).unwrap();
    }
    let mut history = open(&place);
    history.label("a", Some("baseline")).unwrap();
    let prunable =
        |history: &History, before, keep| joined(history.prunable(before, keep).unwrap());
    assert_eq!(prunable(&history, None, Some(1)), "c b");
    assert_eq!(prunable(&history, Some(1_772_323_200), None), "b"); // 2026-03-01
    history.label("a", None).unwrap();
    assert_eq!(prunable(&history, Some(1_772_323_200), None), "b a");
    let large = place.path.metadata().unwrap().len();
    let unwanted = ["a", "b", "c", "nosuch"].map(str::to_owned);
    assert_eq!(history.delete(&unwanted).unwrap(), 3);
    drop(history);
    assert_eq!(ids(&place), ["d"]);
    assert!(
        place.path.metadata().unwrap().len() < large,
        "the room is given back"
    );
    let connection = rusqlite::Connection::open(&place.path).unwrap();
    let query = "SELECT (SELECT count(*) FROM run_targets) + (SELECT count(*) FROM run_disks)";
    let rest: i64 = connection.query_row(query, [], |row| row.get(0)).unwrap();
    assert_eq!(rest, 2, "nothing of a removed run stays");
}

#[test]
fn a_record_without_a_time_is_refused_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(folder.path());
    let error = save_record(&place, &record("a", "yesterday"), None).unwrap_err();
    assert!(matches!(error, HistoryError::Record { .. }), "{error}");
    save_run(&place, "b").unwrap();
}

#[test]
fn the_journal_suits_the_filesystem() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let local = place(folder.path());
    save_run(&local, "a").unwrap();
    assert_eq!(pragma(&local, "journal_mode"), "wal");
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
    assert_eq!(pragma(&remote, "journal_mode"), "delete");
    save_at_once(&remote, 4, 5);
    assert_eq!(
        (ids(&remote).len(), integrity(&remote).as_str()),
        (21, "ok")
    );
    assert_eq!(pragma(&remote, "journal_mode"), "delete");
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
        save_record(&place, &record("f00d", "2026-11-20T10:00:00Z"), Some("old")).unwrap();
        assert!(
            !fixture(SCHEMA_VERSION).exists(),
            "the fixture of a version is made once; a change of the format is a new version"
        );
        std::fs::copy(&place.path, fixture(SCHEMA_VERSION)).unwrap();
    }
    for version in 1..=SCHEMA_VERSION {
        let place = place_of_file(folder.path().join(format!("v{version}.db")));
        std::fs::copy(fixture(version), &place.path).unwrap();
        // The record in it has a form that only earlier programs read; its short form is listed.
        let stored = open(&place).get("f00d");
        assert!(
            matches!(stored, Err(HistoryError::Record { .. })),
            "version {version}"
        );
        let listed = open(&place).list(&Filter::default()).unwrap().runs;
        assert_eq!(listed[0].targets, ["/srv/data"], "version {version}");
        save_run(&place, "new").unwrap();
        assert_eq!(ids(&place), ["f00d", "new"], "version {version}");
        assert_eq!(integrity(&place), "ok", "version {version}");
    }
}
