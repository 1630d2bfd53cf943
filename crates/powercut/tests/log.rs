//! The log server against clients that mean harm, and across its own restart.
#![allow(clippy::unwrap_used)] // a failed step fails the test

use diskproof_model::target::TargetKind;
use diskproof_powercut::{
    CutMethod, CutTarget, LogClient, LogEnd, LogError, LogServer, LogStore, RunDescription,
    RunProgress, Token,
};
use proptest::prelude::*;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

fn serve(token: &Token, store: LogStore) -> String {
    let any = "127.0.0.1:0".parse().unwrap();
    let server = LogServer::bind(any, token.clone(), store).unwrap();
    let address = server.address().unwrap().to_string();
    std::thread::spawn(move || server.serve(|_| ()));
    address
}

fn run(number: u8) -> RunDescription {
    RunDescription {
        run: format!("{number:032x}"),
        started_ms: u64::from(number),
        host: "db1".to_owned(),
        boot_id: "boot".to_owned(),
        target: CutTarget {
            path: "/dev/sdx".to_owned(),
            kind: TargetKind::BlockDevice,
            size_bytes: 1 << 30,
            serial: None,
            model: None,
            inode: 1,
            filesystem: None,
        },
        method: CutMethod::Fdatasync,
        is_control_evidence: true,
        streams: RunDescription::streams(1, false),
        before: None,
    }
}

fn progress(at: u64) -> RunProgress {
    RunProgress {
        elapsed_ns: at,
        counts: vec![at, at],
    }
}

fn connect(server: &str) -> LogClient {
    LogClient::connect(server, &Token::default()).unwrap()
}

/// The server still works.
fn assert_serves(server: &str, number: u8) {
    let mut writer = connect(server);
    writer.start(&run(number)).unwrap();
    writer.report(&progress(3)).unwrap();
    let log = connect(server).fetch(&run(number).run).unwrap();
    assert_eq!(log.counts(), [3, 3]);
}

#[test]
fn log_survives_a_restart_of_the_server() {
    let place = tempfile::tempdir().unwrap();
    let store = || LogStore::Folder(place.path().to_owned());
    let first = serve(&Token::default(), store());
    let mut writer = connect(&first);
    writer.start(&run(1)).unwrap();
    for at in 1..=20 {
        writer.report(&progress(at)).unwrap();
    }
    let mut other = connect(&first);
    other.start(&run(2)).unwrap();
    other.stop().unwrap();
    // Another server reads the same folder, as after a restart.
    let second = serve(&Token::default(), store());
    let log = connect(&second).fetch(&run(1).run).unwrap();
    assert_eq!((log.description, log.end), (run(1), LogEnd::Silence));
    assert_eq!(log.progress, (1..=20).map(progress).collect::<Vec<_>>());
    let stopped = connect(&second).fetch(&run(2).run).unwrap();
    assert_eq!(stopped.end, LogEnd::Stopped);
    assert_eq!(connect(&second).list().unwrap(), [run(2), run(1)]);
    // No run is ever written twice.
    let error = connect(&second).start(&run(1)).unwrap_err();
    assert!(matches!(error, LogError::Refused(..)), "{error}");
}

#[test]
fn wrong_token_is_refused_and_loopback_is_the_only_place_without_one() {
    let token = Token::parse("0123456789abcdef").unwrap();
    let server = serve(&token, LogStore::memory());
    for wrong in [Token::default(), Token::parse("0123456789abcdeF").unwrap()] {
        let refused = LogClient::connect(&server, &wrong);
        assert!(matches!(refused, Err(LogError::Refused(..))));
    }
    assert!(LogClient::connect(&server, &token).is_ok());
    for open in ["0.0.0.0:0", "[::]:0"] {
        let error = LogServer::bind(open.parse().unwrap(), Token::default(), LogStore::memory());
        assert!(error.unwrap_err().to_string().contains("--token-file"));
    }
}

#[test]
fn report_out_of_order_ends_the_connection_and_keeps_the_log() {
    let server = serve(&Token::default(), LogStore::memory());
    let other_streams = RunProgress {
        elapsed_ns: 9,
        counts: vec![9; 5],
    };
    for (number, bad) in [(0, progress(4)), (1, other_streams)] {
        let mut writer = connect(&server);
        let run = run(number);
        writer.start(&run).unwrap();
        writer.report(&progress(5)).unwrap();
        assert!(writer.report(&bad).is_err());
        assert_eq!(connect(&server).fetch(&run.run).unwrap().counts(), [5, 5]);
    }
    assert!(connect(&server).fetch(&"0".repeat(31)).is_err());
    let error = connect(&server).fetch(&"f".repeat(32)).unwrap_err();
    assert!(matches!(error, LogError::Refused(..)), "{error}");
}

#[test]
fn idle_connections_keep_no_writer_out() {
    let server = serve(&Token::default(), LogStore::memory());
    let mut writer = connect(&server);
    writer.start(&run(1)).unwrap();
    let open = |_| raw(&server);
    let held: Vec<TcpStream> = (0..200).map(open).collect();
    // The newest connection is served, and a run that is being logged goes on.
    assert_serves(&server, 9);
    writer.report(&progress(7)).unwrap();
    let mut first = held.first().unwrap();
    // Ended by the server to make room.
    let _ = first.read_to_end(&mut Vec::new());
    drop(held);
    assert_serves(&server, 10);
}

fn raw(server: &str) -> TcpStream {
    let stream = TcpStream::connect(server).unwrap();
    let patience = Some(Duration::from_secs(30));
    stream.set_read_timeout(patience).unwrap();
    stream
}

/// Sends bytes after the handshake that a client without a token would make, closes its side, and
/// waits for the end of the connection.
fn send_raw(server: &str, bytes: &[u8]) {
    let mut stream = raw(server);
    // The server may have closed before everything is sent.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(answer.len() < 4096, "a short answer to garbage");
}

#[test]
fn garbage_half_frames_and_oversized_lengths_leave_the_server_serving() {
    let server = serve(&Token::default(), LogStore::memory());
    let mut huge = b"DPPC\x01\x00\x05\x00".to_vec();
    huge.extend(u32::MAX.to_le_bytes());
    huge.extend([0; 64]);
    let cases: [&[u8]; 6] = [
        b"",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"DPPC",
        b"DPPC\x01\x00\x02\x00\x20\x00\x00\x00",
        &huge,
        &[0xff; 100_000],
    ];
    for bytes in cases {
        send_raw(&server, bytes);
    }
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(100));
    let garbage = prop::collection::vec(any::<u8>(), 0..300);
    let send = |bytes: Vec<u8>| {
        send_raw(&server, &bytes);
        Ok(())
    };
    runner.run(&garbage, send).unwrap();
    assert_serves(&server, 1);
}

#[test]
fn client_of_a_hostile_server_gets_an_error() {
    let strange: [&[u8]; 4] = [b"220 mail\r\n", b"", &[0xff; 5000], b"DPPC\x07\x00\x01\x00"];
    for answer in strange {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let served = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.write_all(answer);
        });
        assert!(LogClient::connect(&address, &Token::default()).is_err());
        served.join().unwrap();
    }
}

#[test]
fn slow_sender_loses_its_place() {
    let server = serve(&Token::default(), LogStore::memory());
    let mut stream = raw(&server);
    // The start of a sound frame, one byte now and then.
    let frame = b"DPPC\x01\x00\x02\x00\x20\x00\x00\x00";
    for byte in frame.iter().chain(&[0; 36]) {
        if stream.write_all(&[*byte]).is_err() {
            break;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    let mut rest = Vec::new();
    // Closed, with the reason or by a reset, long before a minute.
    let _ = stream.read_to_end(&mut rest);
    assert!(stream.write_all(&[0; 64]).is_err() || stream.write_all(&[0; 64]).is_err());
    assert_serves(&server, 3);
}
