//! Named disks: the numbers of real kinds of disk, written as in `spec`.
//!
//! The numbers are those of data sheets and published measurements, rounded; they need not be those
//! of any one drive.

/// A disk that a command line can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedDisk {
    /// The name of the command line.
    pub name: &'static str,
    /// Bytes that it claims, unless the command line gives a size.
    pub size_bytes: u64,
    /// A sentence for people.
    pub about: &'static str,
    /// The figures of the disk, in the form that [`crate::spec`] reads.
    pub spec: &'static str,
}

const GB: u64 = 1_000_000_000;

/// Every named disk, in the order of the help.
pub const GALLERY: [NamedDisk; 9] = [
    NamedDisk {
        name: "unthrottled",
        size_bytes: 4 * GB,
        about: "answers at once: the server's own limit",
        spec: "",
    },
    NamedDisk {
        name: "ssd-sata",
        size_bytes: 480 * GB,
        about: "a SATA SSD: 90 µs reads, 95k IOPS, 550/510 MB/s",
        spec: "read-latency=90us,write-latency=40us,flush=1ms,channels=16,iops=95000,\
               read-bandwidth=550MB,write-bandwidth=510MB",
    },
    NamedDisk {
        name: "nvme-slc-cliff",
        size_bytes: 1000 * GB,
        about: "an NVMe SSD: 70 µs reads, 3.5/3.0 GB/s, after 4 GiB written 500 MB/s",
        spec: "read-latency=70us,write-latency=15us,flush=300us,channels=64,read-bandwidth=3500MB,\
               write-bandwidth=3000MB,cliff=4GiB@500MB",
    },
    NamedDisk {
        name: "momentus-7200.4",
        size_bytes: 320 * GB,
        about: "a 7200 rpm laptop disk: 92 to 49 MB/s across the surface, 14.9 ms access, 67 \
                random IOPS, SATA 3 Gb/s",
        spec: MOMENTUS,
    },
    NamedDisk {
        name: "momentus-7200.4-capped",
        size_bytes: 320 * GB,
        about: "the same behind a bottleneck of 78 MB/s: a curve with a flat top",
        spec: MOMENTUS_CAPPED,
    },
    NamedDisk {
        name: "laptop-5400",
        size_bytes: 500 * GB,
        about: "a 5400 rpm laptop disk: 110 to 52 MB/s, 17.7 ms access",
        spec: "rpm=5400,seek=1500us/12ms/24ms,rate=110MB/52MB,zones=24,queue=32,buffer=8MiB,\
               overhead=144us,link=285MB",
    },
    NamedDisk {
        name: "cloud-credits",
        size_bytes: 100 * GB,
        about: "a cloud volume: bursts at 3000 IOPS for 30,000 credits, then 300 IOPS; 128 MB/s",
        spec: "read-latency=600us,write-latency=900us,flush=1ms,credits=30000@3000/300,\
               bandwidth=128MB",
    },
    NamedDisk {
        name: "cloud-3000-iops",
        size_bytes: 100 * GB,
        about: "a cloud volume: never more than 3000 IOPS or 125 MB/s",
        spec: "read-latency=500us,write-latency=700us,flush=1ms,iops=3000,bandwidth=125MB",
    },
    NamedDisk {
        name: "raid0-old-pair",
        size_bytes: 160 * GB,
        about: "RAID-0 of two old 5400 rpm disks, 64 KiB chunks: together 84 to 44 MB/s, 18.3 ms \
                access",
        spec: "rpm=5400,seek=1500us/12500us/23ms,rate=42MB/22MB,zones=16,queue=1,buffer=2MiB,\
               overhead=244us,stripe=2/64KiB",
    },
];

/// The figures of the Momentus 7200.4; [`MOMENTUS_CAPPED`] differs in the link alone.
const MOMENTUS: &str = "rpm=7200,seek=1ms/10600us/22ms,rate=92MB/49MB,zones=24,queue=32,\
                        buffer=16MiB,overhead=133us,link=285MB";
/// [`MOMENTUS`] on a link that is slower than its outer zones.
const MOMENTUS_CAPPED: &str = "rpm=7200,seek=1ms/10600us/22ms,rate=92MB/49MB,zones=24,queue=32,\
                               buffer=16MiB,overhead=133us,link=78MB";

/// The entry of that name.
pub fn named(name: &str) -> Option<&'static NamedDisk> {
    GALLERY.iter().find(|named| named.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::drive::{TestRequest, closed_loop, random_offsets, read, total_ns, write};
    use crate::models::{DiskMachine, Mechanism, Model};
    use crate::spec;

    const MIB: u64 = 1 << 20;

    fn model(name: &str) -> Model {
        spec::parse(name).unwrap()
    }

    fn machine(name: &str) -> (DiskMachine, u64) {
        let named = named(name).unwrap();
        (
            DiskMachine::start(&model(name), named.size_bytes),
            named.size_bytes,
        )
    }

    /// Bytes/s of 100 sequential reads of 1 MiB at `start`.
    fn rate(name: &str, start: u64) -> f64 {
        let loads: Vec<TestRequest> = (0..100).map(|k| read(start + k * MIB, MIB)).collect();
        let times = closed_loop(&mut machine(name).0, 1, &loads);
        99.0 * MIB as f64 / (times[99].1 - times[0].1) as f64 * 1e9
    }

    fn random_ns(name: &str, block_bytes: u64, depth: usize) -> f64 {
        let (mut machine, size_bytes) = machine(name);
        let loads: Vec<TestRequest> = random_offsets(10_000, block_bytes, size_bytes)
            .iter()
            .map(|o| read(*o, block_bytes))
            .collect();
        total_ns(&mut machine, depth, &loads) as f64 / 10_000.0
    }

    fn near(value: f64, truth: f64, share: f64) {
        assert!(
            (value / truth - 1.0).abs() < share,
            "{value} is not {truth}"
        );
    }

    #[test]
    fn gallery_entries_parse_and_have_unique_names() {
        for entry in &GALLERY {
            assert_eq!(model(entry.name).name, entry.name);
            assert_eq!(GALLERY.iter().filter(|n| n.name == entry.name).count(), 1);
        }
        assert!(named("unheard-of").is_none());
    }

    #[test]
    fn gallery_momentus_matches_data_sheet() {
        let name = "momentus-7200.4";
        near(rate(name, 0), 92e6, 0.001);
        near(rate(name, 319 * GB), 49e6, 0.001);
        near(random_ns(name, 512, 1), 14.9e6, 0.01);
        let iops = 1e9 / random_ns(name, 8192, 1);
        assert!((65.0..70.0).contains(&iops), "{iops}");
    }

    #[test]
    fn gallery_capped_momentus_has_flat_top() {
        let name = "momentus-7200.4-capped";
        near(rate(name, 0), 78e6, 0.001);
        near(rate(name, 40 * GB), 78e6, 0.001);
        near(rate(name, 319 * GB), 49e6, 0.001);
        near(random_ns(name, 512, 1), 14.9e6, 0.01);
    }

    #[test]
    fn gallery_old_disks_match_data_sheets() {
        near(rate("laptop-5400", 0), 110e6, 0.001);
        near(rate("laptop-5400", 499 * GB), 52e6, 0.001);
        near(random_ns("laptop-5400", 512, 1), 17.7e6, 0.01);
        near(rate("raid0-old-pair", 0), 84e6, 0.02);
        near(rate("raid0-old-pair", 159 * GB), 44e6, 0.02);
        near(random_ns("raid0-old-pair", 512, 1), 18.3e6, 0.02);
        let pair = model("raid0-old-pair").mechanism;
        assert!(matches!(&pair, Mechanism::Striped { members, .. } if members.len() == 2));
    }

    #[test]
    fn gallery_flash_disks_match_data_sheets() {
        near(1e9 / random_ns("ssd-sata", 4096, 32), 95_000.0, 0.001);
        near(random_ns("ssd-sata", 4096, 1), 97_448.0, 0.001);
        near(
            rate("nvme-slc-cliff", 0),
            (MIB as f64) / (MIB as f64 / 3.5e9 + 70e-6),
            0.001,
        );
        near(1e9 / random_ns("cloud-3000-iops", 4096, 16), 3000.0, 0.001);
    }

    #[test]
    fn gallery_cliff_starts_after_four_gib() {
        let loads: Vec<TestRequest> = (0..8192).map(|k| write(k * MIB, MIB)).collect();
        let times = closed_loop(&mut machine("nvme-slc-cliff").0, 8, &loads);
        let rate = |from: usize, to: usize| {
            ((to - from) as u64 * MIB) as f64 / (times[to].1 - times[from].1) as f64 * 1e9
        };
        near(rate(0, 4095), 3e9, 0.001);
        near(rate(4096, 8191), 0.5e9, 0.001);
    }

    #[test]
    fn gallery_credits_last_eleven_seconds() {
        let loads = vec![read(0, 4096); 40_000];
        let times = closed_loop(&mut machine("cloud-credits").0, 16, &loads);
        near(33_333.0 / times[33_333].1 as f64 * 1e9, 3000.0, 0.01);
        near(
            6000.0 / (times[39_999].1 - times[33_999].1) as f64 * 1e9,
            300.0,
            0.01,
        );
    }
}
