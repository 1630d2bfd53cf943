//! The gate while another process exchanges what it looks at: not by chance, but at each point
//! between two of its steps. Whatever happens, it opens what was released, or it refuses.

use crate::admit::{Admission, Consent, Intent, Overwriting, admit};
use crate::file::direct_io::AlignedBlock;
use crate::file::held::proc_path;
use crate::identity::probe::probe;
use crate::kernel::steps::{GateStep, Hook, OwnProcesses, SeenProcess, ShortPauses};
use crate::open::target::OpenTarget;
use diskproof_simdisk::testbed::{Loop, TempDir, can_run, place, place_in_memory, run};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::cell::Cell;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

const MIB: u64 = 1 << 20;
/// One bit of a schedule stands for each of these kinds of steps.
const STEPS: [GateStep; 6] = [
    GateStep::Probe,
    GateStep::Resolve,
    GateStep::FindName,
    GateStep::Climb,
    GateStep::Judge,
    GateStep::Open,
];

/// Two paths, and whether they are exchanged now.
struct Exchange {
    one: PathBuf,
    other: PathBuf,
    is_exchanged: Cell<bool>,
}

impl Exchange {
    fn set(&self, wanted: bool) {
        if self.is_exchanged.replace(wanted) != wanted {
            renameat_with(CWD, &self.one, CWD, &self.other, RenameFlags::EXCHANGE).unwrap();
        }
    }
}

/// When the paths are exchanged.
#[derive(Debug, Clone, Copy)]
enum Schedule {
    /// Exactly from one point to another, or all the time but then.
    Between {
        from: usize,
        until: usize,
        is_inside: bool,
    },
    /// While the next step is one of these kinds.
    BySteps(u32),
}

impl Schedule {
    /// `None`: it stays as it is.
    fn wants(self, point: usize, next: GateStep) -> Option<bool> {
        match self {
            Self::Between {
                from,
                until,
                is_inside,
            } => Some((from..until).contains(&point) == is_inside),
            Self::BySteps(bits) => {
                let bit = bit(next);
                (bit > 0).then_some(bits & bit > 0)
            }
        }
    }
}

fn bit(step: GateStep) -> u32 {
    let number = STEPS.iter().position(|known| *known == step);
    number.map_or(0, |number| 1 << number)
}

/// What the gate went through.
#[derive(Default)]
struct Trace {
    points: Cell<usize>,
    /// Bits of the steps.
    steps: Cell<u32>,
}

/// What makes the other file, directory or device one that is never to be written to, until it is
/// dropped.
enum Forbidden {
    Nothing,
    /// Names made for it.
    Names(Vec<PathBuf>),
    Used(User),
    /// A device with data on it.
    Filled(PathBuf),
}

/// A process that has it open, for which the gate need not wait long: it stays.
struct User {
    process: Child,
    _seen: SeenProcess,
    _pauses: ShortPauses,
}

impl Drop for Forbidden {
    fn drop(&mut self) {
        match self {
            Self::Nothing => {}
            Self::Names(names) => {
                for name in names {
                    std::fs::remove_file(name).unwrap();
                }
            }
            Self::Used(user) => {
                user.process.kill().unwrap();
                user.process.wait().unwrap();
            }
            Self::Filled(device) => write_block(device, 0),
        }
    }
}

fn link(case: &Case) -> Forbidden {
    let name = case.place.path().join("second name");
    std::fs::hard_link(&case.victim, &name).unwrap();
    Forbidden::Names(vec![name])
}

fn serve(case: &Case) -> Forbidden {
    let server = case.place.path().join("theirs");
    std::fs::create_dir_all(server.join("global")).unwrap();
    let names = ["PG_VERSION", "global/pg_control"].map(|name| server.join(name));
    for name in &names {
        std::fs::write(name, "17\n").unwrap();
    }
    Forbidden::Names(names.into())
}

fn hold(case: &Case) -> Forbidden {
    let file = std::fs::File::open(&case.victim).unwrap();
    let mut user = Command::new("sleep");
    user.arg("600").stdin(Stdio::from(file));
    let process = user.spawn().unwrap();
    Forbidden::Used(User {
        _seen: SeenProcess::begin(process.id()),
        process,
        _pauses: ShortPauses::begin(),
    })
}

/// Data of no known format.
fn fill(case: &Case) -> Forbidden {
    write_block(&case.victim, 0x5a);
    Forbidden::Filled(case.victim.clone())
}

fn write_block(device: &Path, byte: u8) {
    let file = std::fs::File::options().write(true).open(device).unwrap();
    file.write_all_at(&[byte; 4096], 4096).unwrap();
    file.sync_data().unwrap();
}

/// Where the gate begins.
struct GateStart {
    /// What was admitted before, where only the opening runs; `None` starts the gate at the path.
    admission: Option<Admission>,
    _forbidden: Forbidden,
}

/// One kind of exchange.
struct Case {
    /// Dropped before their images are.
    devices: Vec<Loop>,
    images: Vec<TempDir>,
    place: TempDir,
    exchange: Rc<Exchange>,
    /// What the user names.
    target: PathBuf,
    is_scratch: bool,
    /// A file or device that is never to be written to.
    victim: PathBuf,
    forbid: fn(&Self) -> Forbidden,
    _processes: OwnProcesses,
}

impl Case {
    /// `mine` holds what is released, `theirs` the victim.
    fn new(target: &str, [one, other]: [&str; 2], forbid: fn(&Self) -> Forbidden) -> Self {
        let place = place();
        let at = |name: &str| place.path().join(name);
        for directory in ["mine", "theirs", "mine/inner", "theirs/inner"] {
            std::fs::create_dir(at(directory)).unwrap();
            std::fs::write(at(directory).join("file"), vec![1; 2 * MIB as usize]).unwrap();
        }
        std::os::unix::fs::symlink(at("theirs/file"), at("link")).unwrap();
        let exchange = Exchange {
            one: at(one),
            other: at(other),
            is_exchanged: Cell::new(false),
        };
        let victim = match target.starts_with("theirs") {
            true => at(target),
            false => at("theirs/file"),
        };
        Self {
            devices: Vec::new(),
            images: Vec::new(),
            exchange: Rc::new(exchange),
            target: at(target),
            is_scratch: false,
            victim,
            forbid,
            place,
            _processes: OwnProcesses::begin(),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn admit(&self) -> Option<Admission> {
        let name = |device: &Loop| device.name().to_owned();
        let consent = Consent {
            destroy: self.devices.iter().map(name).collect(),
            overwriting: Overwriting::Allowed,
            ..Consent::default()
        };
        let intent = match self.is_scratch {
            true => Intent::Scratch { size_bytes: MIB },
            false => Intent::Overwrite(&consent),
        };
        admit(probe(&self.target).ok()?, intent).ok()
    }

    /// Runs the gate, and exchanges as the schedule says.
    fn run(&self, schedule: Schedule, start: GateStart) -> Rc<Trace> {
        let (trace, exchange) = (Rc::new(Trace::default()), Rc::clone(&self.exchange));
        let gone = Rc::clone(&trace);
        let hook = Hook::set(move |next| {
            if let Some(wanted) = schedule.wants(gone.points.get(), next) {
                exchange.set(wanted);
            }
            gone.points.set(gone.points.get() + 1);
            gone.steps.set(gone.steps.get() | bit(next));
        });
        let admission = start.admission.or_else(|| self.admit());
        let opened = admission.and_then(|admission| OpenTarget::open(admission).ok());
        drop(hook);
        self.exchange.set(false);
        if let Some(target) = opened {
            self.check(&target, schedule);
        }
        trace
    }

    /// With all names back in their place, what is open has the name of what was released.
    fn check(&self, target: &OpenTarget, schedule: Schedule) {
        let name = std::fs::read_link(proc_path(target.fd())).unwrap();
        let is_mine = name.starts_with(self.file("mine"));
        assert!(is_mine, "{schedule:?} opened {}", name.display());
        rustix::io::pwrite(target.fd(), AlignedBlock::zeroed(4096).bytes(), 0).unwrap();
    }

    /// One exchange at each point, to and fro.
    fn exchange_once(&self, start: impl Fn() -> GateStart) {
        for is_inside in [false, true] {
            for until in 0.. {
                let once = Schedule::Between {
                    from: 0,
                    until,
                    is_inside,
                };
                // Another test may hold a device for a moment, which ends the gate early, but not
                // twice.
                if self.run(once, start()).points.get() <= until
                    && self.run(once, start()).points.get() <= until
                {
                    break;
                }
            }
        }
    }

    /// One exchange at each point, and the way back at each later one.
    fn exchange_twice(&self, start: impl Fn() -> GateStart) {
        for is_inside in [false, true] {
            for from in 0.. {
                let points = |until| {
                    let twice = Schedule::Between {
                        from,
                        until,
                        is_inside,
                    };
                    self.run(twice, start()).points.get()
                };
                // A later way back would come after the end, too.
                let mut until = from + 1;
                let mut reached = points(until);
                while reached > until {
                    until += 1;
                    reached = points(until);
                }
                if reached <= from {
                    break;
                }
            }
        }
    }

    /// One state before each kind of step, for all sets of kinds.
    fn exchange_by_steps(&self, start: impl Fn() -> GateStart) {
        // Schedules that differ only in steps that the gate did not reach are the same.
        let mut done: Vec<(u32, u32)> = Vec::new();
        for bits in 0..1 << STEPS.len() {
            let differs = |(steps, before): &(u32, u32)| (bits ^ before) & steps != 0;
            if done.iter().all(differs) {
                let trace = self.run(Schedule::BySteps(bits), start());
                done.push((trace.steps.get(), bits));
            }
        }
    }

    /// The whole way from the path to the descriptor, and the opening alone.
    fn run_all(&self) {
        let before = hash(&self.victim);
        let start = || GateStart {
            admission: None,
            _forbidden: (self.forbid)(self),
        };
        self.exchange_once(start);
        self.exchange_by_steps(start);
        self.exchange_once(|| self.late());
        // The victim is like any other, but another one was admitted.
        self.exchange_once(|| GateStart {
            admission: Some(self.admitted(!self.has_victim_when_exchanged())),
            _forbidden: Forbidden::Nothing,
        });
        assert_eq!(hash(&self.victim), before);
    }

    /// The opening alone, with an exchange and the way back.
    fn run_twice(&self) {
        let before = hash(&self.victim);
        self.exchange_twice(|| self.late());
        assert_eq!(hash(&self.victim), before);
    }

    /// The victim was admitted while it was like any other: the opening must detect that it is
    /// one no longer.
    fn late(&self) -> GateStart {
        GateStart {
            admission: Some(self.admitted(self.has_victim_when_exchanged())),
            _forbidden: (self.forbid)(self),
        }
    }

    /// True if the target is the victim while the paths are exchanged; else it is so before.
    fn has_victim_when_exchanged(&self) -> bool {
        !self.target.starts_with(self.file("theirs"))
    }

    fn admitted(&self, is_exchanged: bool) -> Admission {
        self.exchange.set(is_exchanged);
        let admission = patiently(|| self.admit());
        self.exchange.set(false);
        admission
    }

    /// Without an exchange it is opened: a gate that refuses all would pass every test here.
    fn assert_opens(&self) {
        let _forbidden = (self.forbid)(self);
        patiently(|| OpenTarget::open(self.admit()?).ok());
    }
}

/// Other tests start processes, which until their exec have open what this one has.
fn patiently<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    for _ in 0..600 {
        if let Some(done) = attempt() {
            return done;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("it is refused although nothing speaks against it")
}

fn hash(path: &Path) -> String {
    run("sha256sum", &[path.to_str().unwrap()])
}

// One test for each kind of exchange, so that they run beside each other.

const FILES: [&str; 2] = ["mine/file", "theirs/file"];
const DIRECTORIES: [&str; 2] = ["mine", "theirs"];

/// Exchanges two paths at each point of the gate, once.
fn gate_opens_no_other_file(exchanged: [&str; 2], forbid: fn(&Case) -> Forbidden) {
    let case = Case::new("mine/file", exchanged, forbid);
    case.assert_opens();
    case.run_all();
}

#[test]
fn gate_opens_no_file_with_a_second_name_when_files_are_exchanged() {
    gate_opens_no_other_file(FILES, link);
}

#[test]
fn gate_opens_no_file_in_use_when_files_are_exchanged() {
    gate_opens_no_other_file(FILES, hold);
}

#[test]
fn gate_opens_no_file_with_a_second_name_when_directories_are_exchanged() {
    gate_opens_no_other_file(DIRECTORIES, link);
}

#[test]
fn gate_opens_no_file_of_a_server_when_directories_are_exchanged() {
    gate_opens_no_other_file(DIRECTORIES, serve);
}

#[test]
fn gate_opens_no_other_file_when_files_are_exchanged_to_and_fro() {
    Case::new("mine/file", FILES, link).run_twice();
}

#[test]
fn gate_opens_no_file_with_a_second_name_when_directories_are_exchanged_to_and_fro() {
    Case::new("mine/file", DIRECTORIES, link).run_twice();
}

#[test]
fn gate_opens_no_file_of_a_server_when_directories_are_exchanged_to_and_fro() {
    Case::new("mine/file", DIRECTORIES, serve).run_twice();
}

#[test]
fn gate_opens_no_file_of_a_server_when_its_directory_is_moved_out() {
    let moved = ["theirs/inner", "mine/inner"];
    let case = Case::new("theirs/inner/file", moved, serve);
    case.run_all();
}

#[test]
fn gate_opens_no_file_behind_a_symlink_that_takes_its_place() {
    let case = Case::new("mine/file", ["mine/file", "link"], link);
    case.assert_opens();
    case.run_all();
}

#[test]
fn gate_makes_no_scratch_file_in_a_server_when_directories_are_exchanged() {
    for (target, exchanged) in [
        ("mine", ["mine", "theirs"]),
        ("theirs/inner", ["theirs/inner", "mine/inner"]),
    ] {
        let mut case = Case::new(target, exchanged, serve);
        case.is_scratch = true;
        case.victim = case.file("theirs/file");
        if target == "mine" {
            case.assert_opens();
        }
        case.run_all();
    }
}

/// Exchanges nodes of devices, or what leads to them.
fn gate_opens_no_other_device(test: &str, exchanged: [&str; 2]) {
    if !can_run(test, &["losetup", "mknod"]) {
        return;
    }
    let mut case = Case::new("mine/node", exchanged, fill);
    for place in ["mine", "theirs"] {
        let images = place_in_memory();
        let image = images.path().join("image");
        // The gate reads all of it each time.
        std::fs::write(&image, vec![0; 2 * MIB as usize]).unwrap();
        let device = Loop::over(&image, &[]);
        case.images.push(images);
        let number = device.name().strip_prefix("loop").unwrap();
        let node = case.file(place).join("node");
        run("mknod", &[node.to_str().unwrap(), "b", "7", number]);
        case.devices.push(device);
    }
    std::fs::remove_file(case.file("link")).unwrap();
    std::os::unix::fs::symlink(case.file("theirs/node"), case.file("link")).unwrap();
    case.victim = case.devices[1].node.clone();
    case.assert_opens();
    case.run_all();
}

#[test]
fn gate_opens_no_other_device_when_nodes_are_exchanged() {
    gate_opens_no_other_device(
        "gate_opens_no_other_device_when_nodes_are_exchanged",
        ["mine/node", "theirs/node"],
    );
}

#[test]
fn gate_opens_no_other_device_when_directories_are_exchanged() {
    gate_opens_no_other_device(
        "gate_opens_no_other_device_when_directories_are_exchanged",
        DIRECTORIES,
    );
}

#[test]
fn gate_opens_no_other_device_behind_a_symlink_that_takes_its_place() {
    gate_opens_no_other_device(
        "gate_opens_no_other_device_behind_a_symlink_that_takes_its_place",
        ["mine/node", "link"],
    );
}
