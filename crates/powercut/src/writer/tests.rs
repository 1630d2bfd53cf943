use super::*;
use crate::protocol::WireMessage;
use crate::run::{WriteStream, example};
use crate::run_files::PAGES_FILE;
use crate::token::{PROOF_BYTES, Token};
use diskproof_device::{Intent, admit, probe};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

/// The message of a writer that a log does not answer, and closes the connection instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LostAt {
    /// The report after a few confirmed ones.
    Report,
    Stop,
    /// The log confirms everything.
    Nothing,
}

/// Confirms what a writer reports, up to the message at which the connection is lost.
fn confirm(mut stream: TcpStream, lost_at: LostAt) {
    WireMessage::Challenge([1; PROOF_BYTES])
        .send(&mut stream)
        .unwrap();
    WireMessage::receive(&mut stream).unwrap();
    WireMessage::Welcome.send(&mut stream).unwrap();
    let mut reports = 0;
    while let Ok(message) = WireMessage::receive(&mut stream) {
        let is_lost = match message {
            WireMessage::Progress(_) => {
                reports += 1;
                lost_at == LostAt::Report && reports > 3
            }
            WireMessage::Stop => lost_at == LostAt::Stop,
            _ => false,
        };
        if is_lost {
            return;
        }
        WireMessage::Logged.send(&mut stream).unwrap();
    }
}

/// Writes a small run to a directory until it has reported a few times.
fn write_run(place: &Path, lost_at: LostAt) -> Result<Written, CutError> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || confirm(listener.accept().unwrap().0, lost_at));
    let mut log = LogClient::connect(&server, &Token::default()).unwrap();
    let mut description = example();
    description.streams = [
        StreamKind::Pages,
        StreamKind::Control,
        StreamKind::Files,
        StreamKind::Entries,
    ]
    .map(|kind| WriteStream { kind, slots: 8 })
    .to_vec();
    let size_bytes = 2 << 20;
    let admission = admit(probe(place).unwrap(), Intent::Scratch { size_bytes }).unwrap();
    let directory = KeptDirectory::create(admission, "run").unwrap();
    let pages = directory.create_target(PAGES_FILE).unwrap();
    let run = WriteRun::lay_out(description, pages, Some(directory)).unwrap();
    let mut reports = 0;
    run.write(&mut log, |_| {
        reports += 1;
        if reports > 10 && lost_at != LostAt::Report {
            NextStep::Stop
        } else {
            NextStep::Continue
        }
    })
}

/// To a log without a stop, files that the run removed would be acknowledged writes that are lost.
#[test]
fn files_stay_unless_the_log_knows_of_the_stop() {
    for lost_at in [LostAt::Report, LostAt::Stop, LostAt::Nothing] {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let own = place.path().join("run");
        match (write_run(place.path(), lost_at), lost_at) {
            (Ok(_), LostAt::Nothing) => assert!(!own.exists()),
            (Err(CutError::FilesStay { error, directory }), LostAt::Report | LostAt::Stop) => {
                assert!(matches!(*error, CutError::Log(_)), "{error}");
                assert_eq!(Path::new(&directory), own);
                assert!(own.join(PAGES_FILE).exists());
            }
            (ended, _) => panic!("{lost_at:?}: {ended:?}"),
        }
    }
}
