//! The text of the kernel's event block_rq_issue:
//! `fio-1234 [001] d..1. 12.345678: block_rq_issue: 7,0 R 4096 () 88 + 8 none,0,0 [fio]`.

use diskproof_model::watch::{IssuedRequest, RequestDirection};

const MARK: &str = ": block_rq_issue: ";
/// The kernel writes this where a buffer was full.
const LOST: &str = " EVENTS]";

/// What a line is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TraceLine {
    /// A request.
    Request(IssuedRequest),
    /// Requests are missing here.
    Lost,
    /// Anything else: flushes, discards, comments.
    Other,
}

pub(super) fn parse(line: &str) -> TraceLine {
    match request(line) {
        Some(request) => TraceLine::Request(request),
        None if line.ends_with(LOST) && line.contains("[LOST ") => TraceLine::Lost,
        None => TraceLine::Other,
    }
}

fn request(line: &str) -> Option<IssuedRequest> {
    // Names of threads may hold anything, so the last mark counts.
    let (thread, event) = line.rsplit_once(MARK)?;
    let (thread, _) = thread.rsplit_once(" [")?;
    let (_, pid) = thread.trim_end().rsplit_once('-')?;
    let (device, rest) = event.split_once(' ')?;
    let (major, minor) = device.split_once(',')?;
    let (flags, rest) = rest.split_once(' ')?;
    // The command of a passthrough request stands in parentheses.
    let (_, place) = rest.rsplit_once(") ")?;
    let mut words = place.split_ascii_whitespace();
    let sector = words.next()?.parse().ok()?;
    let sectors: u32 = words.nth(1)?.parse().ok()?;
    let name = place.split_once('[')?.1.trim_end().strip_suffix(']')?;
    Some(IssuedRequest {
        device: (major.parse().ok()?, minor.parse().ok()?),
        direction: direction(flags).filter(|_| sectors > 0)?,
        sector,
        sectors,
        pid: pid.parse().ok()?,
        name: name.to_owned(),
    })
}

/// blk_fill_rwbs of the kernel: `R`, `RA`, `W`, `WS`, `FWFS`; discards (`D`) and secure erases
/// (`DE`) move no data.
fn direction(flags: &str) -> Option<RequestDirection> {
    match () {
        () if flags.contains('D') => None,
        () if flags.contains('R') => Some(RequestDirection::Read),
        () if flags.contains('W') => Some(RequestDirection::Write),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_with_odd_names() {
        let line = "   a b-[x] c-77    [001] d..1.  12.3: block_rq_issue: 7,3 RA 4096 () 88 + 8 \
                    none,0,0 [a b-[x] c]";
        let expected = IssuedRequest {
            device: (7, 3),
            direction: RequestDirection::Read,
            sector: 88,
            sectors: 8,
            pid: 77,
            name: "a b-[x] c".to_owned(),
        };
        assert_eq!(parse(line), TraceLine::Request(expected));
        // Before Linux 6.0 without the priority.
        let old = "fio-9 [000] .... 1.0: block_rq_issue: 8,0 WS 512 () 1 + 1 [fio]";
        assert!(matches!(parse(old), TraceLine::Request(request)
            if request.direction == RequestDirection::Write && request.pid == 9));
    }

    #[test]
    fn flushes_discards_and_losses_are_no_requests() {
        let issue = |flags: &str, sectors: u32| {
            parse(&format!(
                "x-1 [0] . 1.0: block_rq_issue: 8,0 {flags} 0 () 0 + {sectors} none,0,0 [x]"
            ))
        };
        assert_eq!(issue("FF", 0), TraceLine::Other);
        assert_eq!(issue("D", 8), TraceLine::Other);
        assert!(matches!(issue("FWFS", 8), TraceLine::Request(_)));
        assert_eq!(parse("CPU:1 [LOST 12 EVENTS]"), TraceLine::Lost);
    }
}
