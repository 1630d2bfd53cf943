//! The program `diskproof`; all of it is in the library beside.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    diskproof::main()
}
