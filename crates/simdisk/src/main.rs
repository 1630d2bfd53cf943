//! The program `simdisk`: serves one simulated disk until SIGTERM, SIGINT, SIGHUP or SIGQUIT. `kill
//! -9` is the power cut; at any other end the disk empties an honest write cache.

mod arguments;
mod signals;

use arguments::{Arguments, USAGE};
use diskproof_simdisk::SimDisk;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|a| a == "--help" || a == "-h") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    match Arguments::parse(&arguments) {
        Ok(arguments) => match run(arguments) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&error.to_string(), 4),
        },
        Err(error) => fail(&error, 2),
    }
}

/// A closed stderr (`| head`) loses the message.
fn fail(error: &str, code: u8) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "simdisk: {error}");
    ExitCode::from(code)
}

/// Serves until a signal ends it. Prints `ready PATH` on stdout when the disk is mounted, and its
/// statistics on stderr at the end.
fn run(arguments: Arguments) -> Result<(), Box<dyn std::error::Error>> {
    // Before any thread starts: threads inherit the mask.
    let ends = signals::EndSignals::block()?;
    let disk = SimDisk::serve_on(
        arguments.model,
        arguments.size_bytes,
        &arguments.mount_point,
        &arguments.medium,
    )?;
    let mut stdout = std::io::stdout();
    writeln!(stdout, "ready {}", disk.path().display())?;
    stdout.flush()?;
    ends.wait()?;
    let stats = disk.stats();
    drop(disk);
    let _ = writeln!(std::io::stderr(), "{stats:?}");
    Ok(())
}
