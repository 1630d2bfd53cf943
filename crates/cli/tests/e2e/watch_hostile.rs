//! `diskproof watch --postgres` at what only looks like a server: it ends with an error, in time
//! and with little memory.

use crate::program::{Ran, within_memory};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// Answers are limited to 1 MiB; as rows of one value they take most of this.
const MEMORY_BYTES: u64 = 64 << 20;

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[kind][..], &length, body].concat()
}

/// A login that needs nothing, and the server is ready.
fn welcome() -> Vec<u8> {
    [message(b'R', &[0; 4]), message(b'Z', b"I")].concat()
}

/// Watches a server that answers the startup with `first` and any statement with `then` without
/// end, `pause` apart.
fn watch(first: Vec<u8>, then: Vec<u8>, pause: Duration, more: &str) -> Ran {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (first, then) = (first.clone(), then.clone());
            std::thread::spawn(move || serve(stream, &first, &then, pause));
        }
    });
    let conninfo =
        format!("host=127.0.0.1 port={port} user=monitor dbname=x password=secret {more}");
    let arguments = ["watch", "-i", "1s", "-c", "2", "--postgres", &conninfo];
    within_memory(MEMORY_BYTES, arguments)
        .output()
        .unwrap()
        .into()
}

fn serve(mut stream: TcpStream, first: &[u8], then: &[u8], pause: Duration) {
    let mut request = [0; 1024];
    // The client may end at any time.
    let Ok(1..) = stream.read(&mut request) else {
        return;
    };
    if stream.write_all(first).is_err() || then.is_empty() {
        return;
    }
    if first.len() > 1 && !matches!(stream.read(&mut request), Ok(1..)) {
        return;
    }
    while stream.write_all(then).is_ok() {
        std::thread::sleep(pause);
    }
}

#[test]
fn hostile_server_ends_in_an_error_within_64_mib() {
    let row = message(b'D', &[0, 1, 255, 255, 255, 255]);
    let columns = [&b"\0\x01x\0"[..], &[0; 18]].concat();
    let rows = [message(b'T', &columns), row.repeat(1000)].concat();
    let wide = [&u16::MAX.to_be_bytes()[..], &[255; 4 * 65535]].concat();
    let notice = message(b'N', b"SNOTICE\0C00000\0Mx\0\0");
    let claim = [b"D".as_slice(), &0x7fff_ffff_u32.to_be_bytes(), &[0; 4096]].concat();
    for (name, first, then) in [
        ("rows", welcome(), rows),
        ("wide rows", welcome(), message(b'D', &wide)),
        ("notices", welcome(), notice.repeat(1000)),
        ("notices before the login", Vec::new(), notice.repeat(1000)),
        ("a row of 2 GiB", welcome(), claim),
        ("nothing but zeros", welcome(), vec![0; 4096]),
        (
            "parameters",
            welcome(),
            message(b'S', b"a\0b\0").repeat(1000),
        ),
        (
            "a login with a nonce of its own",
            message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0"),
            message(b'R', b"\0\0\0\x0br=x,s=eA==,i=4294967295"),
        ),
        (
            "a mechanism of nobody",
            message(b'R', b"\0\0\0\x0aX\0\0"),
            Vec::new(),
        ),
        ("a broken handshake", b"S".to_vec(), vec![22; 4096]),
        ("the end", Vec::new(), Vec::new()),
    ] {
        let mode = if name.contains("handshake") {
            "require"
        } else {
            "disable"
        };
        let ran = watch(first, then, Duration::ZERO, &format!("sslmode={mode}"));
        ran.exits(4);
        // Its own error, and not that of a program without memory.
        ran.tells("--postgres (127").tells_not("secret");
    }
}

#[test]
fn server_that_sends_a_byte_now_and_then_is_late() {
    for first in [Vec::new(), welcome()] {
        // The start of a message that does not end.
        let ran = watch(
            first,
            vec![b'x'],
            Duration::from_millis(50),
            "sslmode=disable",
        );
        ran.exits(4).tells("in time");
    }
}
