//! The program `simdisk`: serves one simulated disk until SIGTERM, SIGINT, SIGHUP or SIGQUIT. An
//! honest write cache is empty then. `kill -9` is the power cut, which leaves no time for that.

mod arguments;
mod signals;

use arguments::{Arguments, USAGE};
use diskproof_simdisk::SimDisk;
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if arguments
        .iter()
        .any(|word| word == "--help" || word == "-h")
    {
        // A reader that has read enough has closed the pipe.
        let _ = writeln!(io::stdout(), "{USAGE}");
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

/// Prints an error and returns its exit code.
fn fail(error: &str, code: u8) -> ExitCode {
    // Nobody reads it where stderr is closed.
    let _ = writeln!(io::stderr(), "simdisk: {error}");
    ExitCode::from(code)
}

/// Serves until a signal ends it. Prints `ready PATH` on stdout when the disk is mounted, and its
/// counts on stderr at the end.
fn run(arguments: Arguments) -> Result<(), Box<dyn std::error::Error>> {
    // Before any thread starts: threads inherit the mask.
    let end_signals = signals::EndSignals::block()?;
    let disk = SimDisk::serve_on(
        arguments.model,
        arguments.size_bytes,
        &arguments.mount_point,
        &arguments.medium,
    )?;
    let mut stdout = io::stdout();
    writeln!(stdout, "ready {}", disk.path().display())?;
    stdout.flush()?;
    end_signals.wait()?;
    let stats = disk.stats();
    drop(disk);
    let _ = writeln!(io::stderr(), "{stats}");
    Ok(())
}
