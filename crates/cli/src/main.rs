//! The program `diskproof`. Everything is in the library.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    diskproof::main()
}
