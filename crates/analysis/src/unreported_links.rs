//! Names the links whose full rate a plateau in bytes may be, where the system does not report the
//! link: a RAID controller, a USB bridge, a network and a hypervisor hide it.
//!
//! A full link and a limiter of bytes look the same: reads and writes of large blocks at one even
//! rate, and small blocks far below it. Nothing but the rate tells them apart. Links carry known
//! rates, which nobody chooses; limits of volumes are chosen, so most of them are rounder.

/// A kind of link, and the rates that it carries when it is full.
struct UnreportedLink {
    /// Its name in a finding.
    name: &'static str,
    /// The least rate, in bytes per second.
    from: f64,
    /// The highest rate, in bytes per second.
    to: f64,
}

/// The links behind which a system sees a plain disk. SATA and SAS carry 85 to 97 % of their coded
/// rates (0.3, 0.6 and 1.2 GB/s), PCIe 80 to 94 % (of 3.94 and 7.88 GB/s), USB 2 and USB 3 of 60
/// and 500 MB/s 45 to 75 % and 76 to 92 %, Ethernet of 125 MB/s and 1.25 GB/s 84 to 99 %.
const LINKS: [UnreportedLink; 8] = [
    UnreportedLink {
        name: "USB at 480 Mbit/s",
        from: 28e6,
        to: 44e6,
    },
    UnreportedLink {
        name: "Ethernet at 1 Gbit/s",
        from: 105e6,
        to: 119e6,
    },
    UnreportedLink {
        name: "SATA at 3 Gbit/s",
        from: 255e6,
        to: 291e6,
    },
    UnreportedLink {
        name: "USB at 5 Gbit/s",
        from: 380e6,
        to: 460e6,
    },
    UnreportedLink {
        name: "SATA at 6 Gbit/s",
        from: 510e6,
        to: 582e6,
    },
    UnreportedLink {
        name: "SAS at 12 Gbit/s or Ethernet at 10 Gbit/s",
        from: 1020e6,
        to: 1240e6,
    },
    UnreportedLink {
        name: "PCIe 3.0 with four lanes",
        from: 3150e6,
        to: 3700e6,
    },
    UnreportedLink {
        name: "PCIe 4.0 with four lanes",
        from: 6300e6,
        to: 7400e6,
    },
];

/// The link that carries this rate, in bytes per second, when it is full; `None` where none does.
/// Somebody may rather have chosen the rate: `is_chosen` says so.
pub(crate) fn unreported_link(rate: f64) -> Option<&'static str> {
    for link in &LINKS {
        if (link.from..=link.to).contains(&rate) {
            return Some(link.name);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume_types::is_chosen;

    const MIB: f64 = (1u64 << 20) as f64;

    #[test]
    fn links_are_told_from_the_limits_that_somebody_chose() {
        // As measured: USB 2, NFS over 1 Gbit/s, SATA 2, USB 3 with UAS, SATA 3 twice, 10 Gbit/s,
        // PCIe.
        for rate in [
            33.7e6, 41.3e6, 112.6e6, 117.4e6, 267e6, 283e6, 417e6, 433e6, 532e6, 545e6, 561e6,
            1173e6, 1097e6, 3417e6, 3278e6, 6917e6,
        ] {
            assert!(
                unreported_link(rate).is_some() && !is_chosen(rate),
                "{rate}"
            );
        }
        for rate in [
            30e6,
            60e6,
            90e6,
            110e6,
            125e6,
            250e6,
            400e6,
            450e6,
            500e6,
            550e6,
            1000e6,
            1100e6,
            1200e6,
            3500e6,
            32.0 * MIB,
            40.0 * MIB,
            125.0 * MIB,
            128.0 * MIB,
            250.0 * MIB,
            256.0 * MIB,
            500.0 * MIB,
            512.0 * MIB,
            1000.0 * MIB,
            1024.0 * MIB,
        ] {
            assert!(unreported_link(rate).is_none() || is_chosen(rate), "{rate}");
        }
    }
}
