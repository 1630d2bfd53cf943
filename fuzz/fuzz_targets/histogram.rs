//! An encoded latency distribution; the part behind its checksum, too.
#![no_main]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use diskproof_model::histogram::LatencyHistogram;
use flate2::{Compression, write::ZlibEncoder};
use libfuzzer_sys::fuzz_target;
use std::io::Write as _;

fuzz_target!(|data: &[u8]| {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder
        .write_all(data)
        .expect("writing to memory cannot fail");
    let deflated = encoder.finish().expect("writing to memory cannot fail");
    let head = [0x1c84_9314u32, deflated.len() as u32].map(u32::to_be_bytes).concat();
    for bytes in [data, &[head, deflated].concat()] {
        if let Ok(histogram) = LatencyHistogram::from_hdr_base64(&BASE64.encode(bytes)) {
            let counted: u64 = histogram.buckets().map(|(_, _, n)| n).sum();
            assert_eq!(counted, histogram.count());
            let _ = (histogram.mean_ns(), histogram.percentile(0.999));
        }
    }
});
