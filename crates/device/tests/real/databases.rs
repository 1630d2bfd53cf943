//! Database files as the real programs write them, where those are installed, and by their magic
//! numbers where not. None may be overwritten.

use crate::support::{MIB, checksum, overwriting, run};
use diskproof_simdisk::testbed::{can_run, place};
use std::path::Path;

/// Refused for this reason with nothing written. A file of less than 1 MiB is made longer first,
/// which no format minds.
fn assert_refused(file: &Path, part: &str) {
    let handle = std::fs::File::options().write(true).open(file).unwrap();
    if handle.metadata().unwrap().len() < MIB {
        handle.set_len(2 * MIB).unwrap();
    }
    drop(handle);
    let before = checksum(file);
    let reasons = overwriting(file).err().unwrap_or_default();
    assert!(
        reasons.iter().any(|reason| reason.contains(part)),
        "{part}: {reasons:?}"
    );
    assert_eq!(checksum(file), before);
}

#[test]
fn gate_refuses_databases_by_their_magic_numbers() {
    let place = place();
    let size = 2 * MIB as usize;
    let cases: [(&str, usize, &[u8]); 13] = [
        ("snapshot (RDB)", 0, b"REDIS0011"),
        (
            "append-only file (AOF)",
            0,
            b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\n",
        ),
        (
            "append-only file (AOF)",
            0,
            b"#TS:1700000000\r\n*2\r\n$6\r\nSELECT\r\n",
        ),
        (
            "RocksDB",
            size - 8,
            &[0xf7, 0xcf, 0xf4, 0x85, 0xb7, 0x41, 0xe2, 0x88],
        ),
        (
            "LevelDB",
            size - 8,
            &[0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb],
        ),
        ("DuckDB", 8, b"DUCK"),
        ("LMDB", 16, &[0xde, 0xc0, 0xef, 0xbe]),
        ("bbolt", 16, &[0xed, 0xda, 0x0c, 0xed]),
        ("bbolt", 4096 + 16, &[0xed, 0xda, 0x0c, 0xed]),
        ("TDB", 0, b"TDB file\n\0\0\0"),
        ("GDBM", 0, &[0xcf, 0x9a, 0x57, 0x13]),
        ("Berkeley DB", 12, &[0x61, 0x15, 0x06, 0]),
        ("Access", 4, b"Standard ACE DB\0"),
    ];
    for (part, offset, magic) in cases {
        let file = place.path().join("file");
        let mut content = vec![7; size];
        content[offset..offset + magic.len()].copy_from_slice(magic);
        std::fs::write(&file, content).unwrap();
        assert_refused(&file, part);
    }
}

#[test]
fn gate_refuses_file_of_a_real_tdb() {
    if !can_run("gate_refuses_file_of_a_real_tdb", &["tdbtool"]) {
        return;
    }
    let place = place();
    let file = place.path().join("printers.tdb");
    let commands = format!("create {}\ninsert key value\nquit\n", file.display());
    run("sh", &["-c", &format!("printf '{commands}' | tdbtool >&2")]);
    assert_refused(&file, "TDB");
}

#[test]
fn gate_refuses_files_of_a_real_redis() {
    if !can_run("gate_refuses_files_of_a_real_redis", &["redis-server"]) {
        return;
    }
    let place = place();
    let directory = place.path().to_str().unwrap();
    // `debug populate` fills it; `save` and the end of the server write the files.
    let commands = "DEBUG POPULATE 20000\r\nSET a b\r\nSAVE\r\nSHUTDOWN NOSAVE\r\n";
    let socket = place.path().join("socket");
    let mut server = std::process::Command::new("redis-server")
        .args(["--port", "0", "--dir", directory, "--appendonly", "yes"])
        .args(["--enable-debug-command", "yes", "--save", ""])
        .args(["--unixsocket", socket.to_str().unwrap()])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut stream = loop {
        if let Ok(stream) = std::os::unix::net::UnixStream::connect(&socket) {
            break stream;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    std::io::Write::write_all(&mut stream, commands.as_bytes()).unwrap();
    server.wait().unwrap();
    assert_refused(
        &place.path().join("dump.rdb"),
        "Redis or Valkey snapshot (RDB)",
    );
    let appended = place.path().join("appendonlydir");
    for entry in std::fs::read_dir(&appended).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "manifest") {
            continue;
        }
        // Without the directory, which is refused by its name.
        let copy = place.path().join(path.file_name().unwrap());
        std::fs::copy(&path, &copy).unwrap();
        let part = if path.to_str().unwrap().ends_with(".rdb") {
            "Redis or Valkey snapshot (RDB)"
        } else {
            "Redis or Valkey append-only file (AOF)"
        };
        assert_refused(&copy, part);
        assert_refused(&path, "is a data directory of Redis or Valkey");
    }
}

#[test]
fn gate_refuses_a_file_of_a_real_lmdb() {
    if !can_run("gate_refuses_a_file_of_a_real_lmdb", &["mdb_load"]) {
        return;
    }
    let place = place();
    let file = place.path().join("file");
    let load = format!("printf 'a\\nb\\n' | mdb_load -n -T {}", file.display());
    run("sh", &["-c", &load]);
    assert_refused(&file, "LMDB database");
}
