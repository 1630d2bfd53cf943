//! A report page, with its data plain or packed.
#![no_main]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::{Compression, write::ZlibEncoder};
use libfuzzer_sys::fuzz_target;
use std::io::Write as _;

fuzz_target!(|text: &str| {
    for page in [text.to_owned(), packed(text)] {
        if let Ok(json) = diskproof_report::html::page_json(&page) {
            diskproof_fuzz::use_text(&json);
        }
    }
});

fn packed(json: &str) -> String {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder
        .write_all(json.as_bytes())
        .expect("writing to memory cannot fail");
    let data = BASE64.encode(encoder.finish().expect("writing to memory cannot fail"));
    format!("<script type=\"application/zlib;base64\" id=\"record\">{data}</script>")
}
