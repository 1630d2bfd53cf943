//! The options of pgiosim 0.5.

use crate::drop_in::DropInOption;
use crate::drop_in::Treatment::{Carried, Ignored};

pub(super) const NAME: &str = "pgiosim";
pub(super) const EMULATES: &str = "pgiosim 0.5";

pub(super) const OPTIONS: &[DropInOption] = &[
    DropInOption {
        short: "-b",
        long: "",
        value: "blocks",
        help: "blocks of 8 KiB to read, or bytes with k, m or g",
        treatment: Carried,
    },
    DropInOption {
        short: "-c",
        long: "",
        value: "",
        help: "drop the files from the page cache first",
        treatment: Carried,
    },
    DropInOption {
        short: "-s",
        long: "",
        value: "",
        help: "read block after block",
        treatment: Carried,
    },
    DropInOption {
        short: "-y",
        long: "",
        value: "",
        help: "fsync after each write",
        treatment: Carried,
    },
    DropInOption {
        short: "-t",
        long: "",
        value: "threads",
        help: "threads that read (1)",
        treatment: Carried,
    },
    DropInOption {
        short: "-w",
        long: "",
        value: "percentage",
        help: "rewritten blocks in percent of those that are read",
        treatment: Carried,
    },
    DropInOption {
        short: "-a",
        long: "",
        value: "seconds",
        help: "report writes that take longer",
        treatment: Carried,
    },
    DropInOption {
        short: "-o",
        long: "",
        value: "startblock",
        help: "first block to read, or bytes with k, m or g (0)",
        treatment: Carried,
    },
    DropInOption {
        short: "-v",
        long: "",
        value: "",
        help: "",
        treatment: Ignored("the figures are the same without it, in pgiosim, too"),
    },
    DropInOption {
        short: "-h",
        long: "",
        value: "",
        help: "print the usage",
        treatment: Carried,
    },
];

pub(super) const DIFFERENCES: &[&str] = &[
    "-w overwrites other blocks with random data; pgiosim writes back the blocks that it has read. \
     This destroys the files, so -w needs 'diskproof as --overwrite pgiosim …'.",
    "Each of several files gets at least one thread and an equal part of -b. pgiosim chooses a \
     file at random for each block.",
    "-b and the percentage count the blocks of all threads together. In pgiosim the percentage \
     exceeds 100 with several threads.",
    "-o also works without -s. In pgiosim 0.5 it has no effect.",
    "-c drops the named files from the page cache; pgiosim drops the whole page cache.",
    "The last line covers the rest of the last 10 s. Slow writes (-a) are listed at the end.",
    "-a reports the slowest write of each 10 ms.",
    "An error returns exit code 1; pgiosim returns 0.",
];
