//! The program `diskproof`. Everything is in the library.
#![forbid(unsafe_code)]

use diskproof_engine::allocator::EndingAllocator;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: EndingAllocator = EndingAllocator;

fn main() -> ExitCode {
    diskproof::main()
}
