//! The program `diskproof`: its allocator, and the thread that it runs on. Everything else is in
//! the library.
#![forbid(unsafe_code)]

use diskproof_engine::allocator::EndingAllocator;
use std::process::ExitCode;
use std::thread;

#[global_allocator]
static ALLOCATOR: EndingAllocator = EndingAllocator;

/// Stack of the thread that runs the program, whatever `ulimit -s` leaves to the main thread: the
/// command line alone takes more than 64 KiB.
const STACK_BYTES: usize = 8 << 20;

fn main() -> ExitCode {
    diskproof::explain_panics();
    let program = thread::Builder::new()
        .name("diskproof".to_owned())
        .stack_size(STACK_BYTES);
    match program.spawn(diskproof::run).map(thread::JoinHandle::join) {
        Ok(Ok(exit)) => exit,
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(error) => diskproof::report_no_thread(error),
    }
}
