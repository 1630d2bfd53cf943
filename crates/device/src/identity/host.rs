//! Reads facts about the machine from uname, /proc and /sys, among them the CPU time that the
//! hypervisor gave to other virtual machines. An unknown fact stays empty.

use crate::identity::cgroups::{io_limits, meminfo_bytes};
use crate::kernel::container::container;
use crate::kernel::sysroot::{SysRoot, first_text, read_text, value_of};
use diskproof_model::target::HostFacts;
use rustix::process::geteuid;
use rustix::system::uname;
use rustix::thread::sched_getaffinity;
use std::path::Path;

/// Returns what is known about this machine.
pub fn host_facts() -> HostFacts {
    let root = SysRoot::default();
    let names = uname();
    HostFacts {
        name: names.nodename().to_string_lossy().into_owned(),
        kernel: names.release().to_string_lossy().into_owned(),
        cpus: cpus(),
        uid: geteuid().as_raw(),
        container: container(&root, Path::new("/")),
        io_limits: io_limits(&root),
        ..facts_in(&root, Path::new("/"))
    }
}

/// CPUs that this process may use; more than 1024 need the standard library's growing mask.
fn cpus() -> u32 {
    let counted = sched_getaffinity(None).map(|set| set.count()).unwrap_or(0);
    if counted > 0 {
        return counted;
    }
    match std::thread::available_parallelism() {
        Ok(number) => u32::try_from(number.get()).unwrap_or(u32::MAX),
        Err(_) => 1,
    }
}

fn facts_in(root: &SysRoot, top: &Path) -> HostFacts {
    let cpuinfo = read_text(&root.proc.join("cpuinfo")).unwrap_or_default();
    let meminfo = read_text(&root.proc.join("meminfo")).unwrap_or_default();
    let load = read_text(&root.proc.join("loadavg")).unwrap_or_default();
    let cpu = root.sys.join("devices/system/cpu/cpu0");
    let os = first_text(top, &["etc/os-release", "usr/lib/os-release"]);
    HostFacts {
        os: os.as_deref().and_then(os_name),
        cpu: cpu_model(&cpuinfo),
        memory_bytes: meminfo_bytes(&meminfo, "MemTotal:").unwrap_or(0),
        hypervisor: hypervisor(root, &cpuinfo),
        load_average: load.split_whitespace().next().map(str::to_owned),
        governor: read_text(&cpu.join("cpufreq/scaling_governor")),
        ..HostFacts::default()
    }
}

/// `PRETTY_NAME` of os-release(5), without its quotes.
fn os_name(text: &str) -> Option<String> {
    let name = value_of(text, "PRETTY_NAME", '=')?.trim_matches(['"', '\'']);
    if name.is_empty() {
        return None;
    }
    Some(name.to_owned())
}

/// x86 and POWER name the model; most ARM kernels do not.
fn cpu_model(cpuinfo: &str) -> Option<String> {
    ["model name", "cpu model", "cpu", "Hardware"]
        .iter()
        .find_map(|name| value_of(cpuinfo, name, ':'))
        .map(str::to_owned)
}

/// The hypervisor's name; `unknown` when only the CPU flag shows that there is one; `None` on bare
/// metal.
fn hypervisor(root: &SysRoot, cpuinfo: &str) -> Option<String> {
    if let Some(kind) = read_text(&root.sys.join("hypervisor/type")) {
        return Some(kind);
    }
    for name in ["sys_vendor", "product_name", "bios_vendor"] {
        if let Some(text) = read_text(&root.sys.join("class/dmi/id").join(name))
            && let Some(kind) = hypervisor_by_firmware(&text)
        {
            return Some(kind.to_owned());
        }
    }
    // A guest without firmware tables still has its hypervisor's clock.
    let source = root.sys.join("devices/system/clocksource/clocksource0");
    let clocks = read_text(&source.join("available_clocksource")).unwrap_or_default();
    if let Some(kind) = hypervisor_by_clock(&clocks) {
        return Some(kind.to_owned());
    }
    let flags = value_of(cpuinfo, "flags", ':').unwrap_or_default();
    if flags.split_whitespace().any(|flag| flag == "hypervisor") {
        return Some("unknown".to_owned());
    }
    None
}

/// The hypervisor that the firmware tables name. Amazon's tables are the same on bare metal, so
/// they do not count here.
fn hypervisor_by_firmware(text: &str) -> Option<&'static str> {
    const NAMES: [(&str, &str); 9] = [
        ("VMware", "vmware"),
        ("VirtualBox", "virtualbox"),
        ("innotek", "virtualbox"),
        ("Xen", "xen"),
        ("Virtual Machine", "microsoft"),
        ("KVM", "kvm"),
        ("QEMU", "kvm"),
        ("Google Compute Engine", "kvm"),
        ("Parallels", "parallels"),
    ];
    for (mark, name) in NAMES {
        if text.contains(mark) {
            return Some(name);
        }
    }
    None
}

fn hypervisor_by_clock(clocks: &str) -> Option<&'static str> {
    clocks.split_whitespace().find_map(|clock| match clock {
        "kvm-clock" => Some("kvm"),
        "xen" => Some("xen"),
        hyperv if hyperv.starts_with("hyperv") => Some("microsoft"),
        _ => None,
    })
}

/// Place of `steal` among the numbers of the first line of /proc/stat (proc(5)); the ones after it
/// are parts of the earlier ones.
const STOLEN: usize = 7;
/// A share is computed from at least so many ticks of all CPUs together: a second of one CPU, so
/// that one tick is one percent.
const TICKS_MIN: u64 = 100;

/// The CPU time of the machine since it was started, in ticks of all CPUs together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineCpuTime {
    /// Ticks of all kinds.
    all: u64,
    /// Ticks that the hypervisor gave to others.
    stolen: u64,
}

impl MachineCpuTime {
    /// The CPU time until now; `None` where the system does not report it.
    pub fn now() -> Option<Self> {
        Self::parse_stat(&read_text(&SysRoot::default().proc.join("stat"))?)
    }

    fn parse_stat(text: &str) -> Option<Self> {
        let all_cpus = text.lines().next()?.strip_prefix("cpu ")?;
        let mut ticks: Vec<u64> = Vec::new();
        for number in all_cpus.split_whitespace().take(STOLEN + 1) {
            ticks.push(number.parse().ok()?);
        }
        let all = ticks
            .iter()
            .fold(0, |sum: u64, ticks| sum.saturating_add(*ticks));
        Some(Self {
            all,
            stolen: *ticks.get(STOLEN)?,
        })
    }

    /// The share of the CPU time since `start` that the hypervisor gave to others, from 0 to 1;
    /// `None` of too short a time.
    pub fn stolen_share_since(self, start: Self) -> Option<f64> {
        let all = self.all.saturating_sub(start.all);
        let stolen = self.stolen.saturating_sub(start.stolen);
        if all < TICKS_MIN {
            return None;
        }
        Some((stolen as f64 / all as f64).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known() {
        let facts = host_facts();
        let uname = |flag: &str| {
            let said = std::process::Command::new("uname").arg(flag).output();
            String::from_utf8(said.unwrap().stdout).unwrap()
        };
        assert_eq!(facts.name, uname("-n").trim());
        assert_eq!(facts.kernel, uname("-r").trim());
        let cpus = std::thread::available_parallelism().unwrap().get();
        assert_eq!(facts.cpus as usize, cpus);
        assert!(facts.memory_bytes > 1 << 20 && facts.load_average.is_some() && facts.os.is_some());
    }

    #[test]
    fn facts_read() {
        let os = "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n";
        assert_eq!(os_name(os).unwrap(), "Debian GNU/Linux 12 (bookworm)");
        let cpu = "processor\t: 0\nmodel name\t: Xeon(R): fast\n";
        assert_eq!(cpu_model(cpu).unwrap(), "Xeon(R): fast");
        let memory = "MemTotal:       24684092 kB\nMemFree: 1 kB\n";
        let bytes = meminfo_bytes(memory, "MemTotal:");
        assert_eq!(bytes, Some(24_684_092 * 1024));
    }

    /// A machine's files, and its root.
    struct Machine(tempfile::TempDir, SysRoot);

    impl Machine {
        fn new() -> Self {
            let place = tempfile::tempdir().unwrap();
            let root = SysRoot {
                sys: place.path().join("sys"),
                proc: place.path().join("proc"),
            };
            Self(place, root)
        }

        fn put(&self, file: &str, text: &str) {
            let path = self.0.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn hypervisors_are_named() {
        let machine = Machine::new();
        let named = |cpu: &str| hypervisor(&machine.1, cpu);
        assert_eq!(named("flags\t: fpu vme\n"), None);
        assert_eq!(named("flags\t: fpu hypervisor\n").unwrap(), "unknown");
        let clocks = "sys/devices/system/clocksource/clocksource0/available_clocksource";
        for (file, text, name) in [
            (clocks, "tsc kvm-clock acpi_pm \n", "kvm"),
            ("sys/class/dmi/id/sys_vendor", "VMware, Inc.\n", "vmware"),
            ("sys/hypervisor/type", "xen\n", "xen"),
        ] {
            machine.put(file, text);
            assert_eq!(named("").unwrap(), name);
        }
    }

    #[test]
    fn stolen_share_is_the_one_computed_by_hand() {
        let start =
            MachineCpuTime::parse_stat("cpu  100 0 50 800 10 0 5 35 7 7\ncpu0 1 2").unwrap();
        assert_eq!((start.all, start.stolen), (1000, 35));
        let end = MachineCpuTime::parse_stat("cpu  150 0 70 900 10 0 5 65 9 9").unwrap();
        assert_eq!(end.stolen_share_since(start), Some(30.0 / 200.0));
        assert_eq!(start.stolen_share_since(start), None);
        // A clock that goes backwards steals nothing.
        assert_eq!(start.stolen_share_since(end), None);
    }

    #[test]
    fn other_text_tells_nothing() {
        let other = [
            "",
            "cpu",
            "cpu  1 2 3",
            "cpu  1 2 3 4 5 6 7 x",
            "intr 1 2 3 4",
        ];
        for text in other {
            assert_eq!(MachineCpuTime::parse_stat(text), None, "{text:?}");
        }
        assert!(MachineCpuTime::now().is_some());
    }
}
