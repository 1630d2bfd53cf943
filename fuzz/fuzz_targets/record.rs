//! JSON text of a record or a comparison, as from a file or a pipe.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| diskproof_fuzz::use_text(text));
