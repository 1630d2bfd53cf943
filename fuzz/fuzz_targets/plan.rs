//! A plan file.
#![no_main]

use diskproof::plan_file::PlanFile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(error) = PlanFile::parse(text) {
        // An error quotes at most part of a line.
        assert!(error.to_string().len() < 4000, "{error}");
    }
});
