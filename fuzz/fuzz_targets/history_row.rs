//! A row of the history: its summary, and its packed record and page.
#![no_main]

use diskproof_history::StoredRun;
use diskproof_model::saved::SavedRun;
use diskproof_report::style::{Color, Style};
use flate2::{Compression, write::ZlibEncoder};
use libfuzzer_sys::fuzz_target;
use std::io::Write as _;

fuzz_target!(|data: &[u8]| {
    drop(StoredRun::unpack(data, Some(data), None));
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder
        .write_all(data)
        .expect("writing to memory cannot fail");
    let packed = encoder.finish().expect("writing to memory cannot fail");
    if let Ok(run) = StoredRun::unpack(&packed, Some(&packed), None) {
        diskproof_fuzz::use_record(&run.record);
    }
    if let Ok(run) = SavedRun::from_json(&String::from_utf8_lossy(data)) {
        let style = Style {
            width: 80,
            color: Color::Plain,
        };
        diskproof_report::terminal::write_runs(&[run], &style, &mut Vec::new())
            .expect("writing to memory cannot fail");
    }
});
