//! A job file of fio, with two files that it may include. Their lines must not be quoted.
#![no_main]

use diskproof::job_file::{CliOverrides, Environment, JobFile, Keywords, PathKind};
use libfuzzer_sys::fuzz_target;
use std::path::{Path, PathBuf};

const SECRET: &str = "tOpSeCrEt";

struct Fake<'a> {
    included: &'a str,
}

impl Environment for Fake<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        (name.len() < 4).then(|| "4k".repeat(name.len()))
    }

    fn keywords(&self) -> Keywords {
        [("$pagesize", 4096), ("$mb_memory", 64), ("$ncpus", 8)]
    }

    fn text(&self, path: &Path) -> Result<String, String> {
        match path.to_str() {
            Some("a") => Ok(self.included.to_owned()),
            Some("s") => Ok(format!("iodepth=1\n{SECRET}{}\n", self.included)),
            _ => Err("it does not exist".to_owned()),
        }
    }

    fn path_kind(&self, path: &Path) -> PathKind {
        match path.as_os_str().len() % 5 {
            0 => PathKind::Nothing,
            1 => PathKind::Directory,
            2 => PathKind::File(1 << 30),
            3 => PathKind::Device(1 << 40),
            _ => PathKind::Other("it is not a disk".to_owned()),
        }
    }

    fn is_own(&self, path: &Path) -> bool {
        path.as_os_str().len() % 2 == 0
    }

    fn scheduler(&self, path: &Path) -> Option<String> {
        (path.as_os_str().len() % 3 == 0).then(|| "none".to_owned())
    }

    fn absolute(&self, path: &Path) -> PathBuf {
        path.to_path_buf()
    }
}

fuzz_target!(|text: &str| {
    let (text, included) = text.split_once('\0').unwrap_or((text, "bs=8k\n"));
    let fake = Fake { included };
    let read = JobFile::translate(text, Path::new("x.fio"), CliOverrides::default(), &fake);
    if let Err(error) = read {
        // The fuzzer learns the word, and its own text may be quoted.
        let is_leak = error.to_string().contains(SECRET) && !text.contains(SECRET);
        assert!(!is_leak, "{error}");
    }
});
