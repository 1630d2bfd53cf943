//! The gate of a run refuses it for every reason that is known before anything is opened for
//! writing. Each question is asked once, and what was granted is handed on.

use super::answerable::refuse_unanswerable;
use super::job::{AgreedChanges, MeasuringJob};
use crate::failure::Failure;
use crate::inspection::stall_timeout;
use crate::plan_file::KeptFile;
use crate::saved::refuse_foreign_history;
use diskproof_device::{
    Admission, Consent, Intent, OpenError, OpenTarget, admit, admit_requests, check_space_together,
    own_allocated_bytes,
};
use diskproof_model::budget::{BeyondTargets, Budget, TargetUse};
use diskproof_model::op::OpKind;
use diskproof_model::plan::{Plan, Workload};
use diskproof_model::target::{Refusal, TargetIdentity, TargetKind};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;
use std::path::Path;
use std::time::Duration;

/// The permissions that the gate has granted.
pub(super) struct Granted {
    /// The most that the run may do.
    pub budget: Budget,
    /// Permission to open the targets, in their order.
    pub admissions: Vec<Admission>,
    /// The targets that the user released.
    pub consent: Consent,
    /// A target that is silent for longer hangs.
    pub stall_timeout: Duration,
}

/// Lets a job pass, or refuses it for the first reason.
pub(super) fn pass_gate(job: &MeasuringJob<'_>) -> Result<Granted, Failure> {
    let MeasuringJob {
        plan,
        identities,
        flags,
        ..
    } = job;
    // A load that follows another one has been identified before it.
    crate::inspection::begin(Path::new(&plan.targets.join(", ")), flags.verbosity());
    let budget = plan.budget(identities);
    let consent = flags.destructive.consent(identities)?;
    for beyond in &budget.beyond {
        refuse_unless_agreed(*beyond, job)?;
    }
    let stall_timeout = stall_timeout()?;
    refuse_foreign_history(&flags.history)?;
    refuse_unanswerable(plan, &flags.expected)?;
    let kept_files = job.shown.kept_files();
    let admissions = admit_within(&budget, plan, identities, &consent, kept_files)?;
    Ok(Granted {
        budget,
        admissions,
        consent,
        stall_timeout,
    })
}

/// Refuses what a plan changes besides its targets, unless the user has agreed to it and there is
/// room for it.
fn refuse_unless_agreed(beyond: BeyondTargets, job: &MeasuringJob<'_>) -> Result<(), Failure> {
    let why = match (beyond, &job.agreed) {
        (BeyondTargets::Server { room_bytes }, AgreedChanges::Server(_)) => {
            let Some(identity) = job.identities.first() else {
                return Ok(());
            };
            let files = Intent::Server {
                scratch_bytes: job.plan.scratch_bytes().unwrap_or(0),
                server_bytes: room_bytes,
            };
            admit(identity.clone(), files)?;
            return Ok(());
        }
        // A campaign does not switch it: its rows would state what was never set.
        (BeyondTargets::WriteCache, AgreedChanges::WriteCache(_))
            if job.plan.is_measured_as_listed() =>
        {
            return Ok(());
        }
        (BeyondTargets::Commands, AgreedChanges::Commands(_)) => return Ok(()),
        (BeyondTargets::Server { .. }, _) => {
            "the plan has INSERTs, and no PostgreSQL server was found for them"
        }
        (BeyondTargets::WriteCache, _) => {
            "the plan switches the disk's write cache, which this command cannot do; use \
             'diskproof commit --write-cache'"
        }
        (BeyondTargets::Commands, _) => {
            "the plan runs commands that change a setting, which this command cannot do; use \
             'diskproof compare --prepare'"
        }
    };
    Err(Failure::Usage(why.to_owned()))
}

/// Permission to use these targets as the plan needs them, or why the gate refuses one.
pub(crate) fn admit_all(
    plan: &Plan,
    identities: &[TargetIdentity],
    consent: &Consent,
) -> Result<Vec<Admission>, Failure> {
    admit_within(&plan.budget(identities), plan, identities, consent, &[])
}

/// Permission to use these targets within this budget, which is the plan's on them. The scratch
/// files of some targets keep their names.
fn admit_within(
    budget: &Budget,
    plan: &Plan,
    identities: &[TargetIdentity],
    consent: &Consent,
    kept_files: &[Option<KeptFile>],
) -> Result<Vec<Admission>, Failure> {
    check_operations(plan.workloads(), identities)?;
    let mut admissions = Vec::new();
    for (index, (identity, target_use)) in identities.iter().zip(&budget.targets).enumerate() {
        let intent = match *target_use {
            TargetUse::Read => Intent::Read,
            TargetUse::Overwrite { .. } => Intent::Overwrite(consent),
            TargetUse::Files {
                size_bytes, count, ..
            } => Intent::Files { size_bytes, count },
            TargetUse::Scratch { size_bytes, .. } => {
                let kept_file = match kept_files.get(index) {
                    Some(Some(kept_file)) => Some(kept_file),
                    Some(None) | None => None,
                };
                Intent::KeptFiles {
                    name: kept_file.and_then(KeptFile::first_name),
                    size_bytes,
                    allocated_bytes: match kept_file {
                        Some(kept_file) => kept_allocated_bytes(kept_file, identity, size_bytes),
                        None => 0,
                    },
                }
            }
        };
        let admission = admit_requests(identity.clone(), intent, budget.request_bytes)?;
        admissions.push(admission);
    }
    let server = admit_server(budget, identities)?;
    check_space_together(admissions.iter().chain(&server))?;
    Ok(admissions)
}

/// Permission for the temporary server, which takes space in the first target.
fn admit_server(
    budget: &Budget,
    identities: &[TargetIdentity],
) -> Result<Option<Admission>, Refusal> {
    match (budget.server_room_bytes(), identities.first()) {
        (0, _) | (_, None) => Ok(None),
        (size_bytes, Some(identity)) => {
            admit(identity.clone(), Intent::Scratch { size_bytes }).map(Some)
        }
    }
}

/// The part of `size_bytes` in this directory for which kept files of an earlier run have blocks.
/// Blocks beyond a file's equal part are not written again, and do not count.
fn kept_allocated_bytes(kept_file: &KeptFile, directory: &TargetIdentity, size_bytes: u64) -> u64 {
    match &directory.filesystem {
        Some(filesystem) if filesystem.overwrites_without_space() => {}
        Some(_) | None => return 0,
    }
    let part_bytes = size_bytes / kept_file.names.len().max(1) as u64;
    let directory = Path::new(&directory.path);
    let mut bytes = 0;
    for name in &kept_file.names {
        bytes += own_allocated_bytes(&directory.join(name)).min(part_bytes);
    }
    bytes
}

/// Refuses workloads with operations that a target is known not to take, which would be noticed
/// only when the workload begins.
fn check_operations(workloads: &[Workload], identities: &[TargetIdentity]) -> Result<(), Failure> {
    for (target, identity) in identities.iter().enumerate() {
        for workload in workloads.iter().filter(|one| one.runs_on(target)) {
            for kind in OpKind::ALL {
                if workload.makes(kind)
                    && let Some(why) = identity.obstacle_to(kind)
                {
                    let (path, name) = (&identity.path, &workload.name);
                    return Err(Failure::Usage(format!("{path}: workload '{name}' {why}")));
                }
            }
        }
    }
    Ok(())
}

/// Checks for `--dry-run`, in addition to the gate, that the targets could be opened for writing,
/// without doing it.
pub(super) fn rehearse(job: &MeasuringJob<'_>, granted: Granted) -> Result<(), Failure> {
    let admissions = granted.admissions.into_iter().zip(&job.identities);
    for (index, (admission, identity)) in admissions.enumerate() {
        if identity.kind == TargetKind::Directory {
            let access = Access::WRITE_OK | Access::EXEC_OK;
            check_access(&identity.path, access, "create a file in it")?;
        } else if job.plan.writes_to(index) {
            let access = Access::WRITE_OK | Access::READ_OK;
            check_access(&identity.path, access, "open it for writing")?;
        } else {
            OpenTarget::open(admission)?;
        }
    }
    Ok(())
}

fn check_access(path: &str, access: Access, doing: &'static str) -> Result<(), OpenError> {
    let path_text = path.to_owned();
    match accessat(CWD, path, access, AtFlags::EACCESS) {
        Ok(()) => Ok(()),
        Err(Errno::ROFS) => Err(OpenError::ReadOnly {
            path: path_text,
            doing,
        }),
        Err(_) => Err(OpenError::NotPermitted {
            path: path_text,
            doing,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::op::OpKind;
    use diskproof_model::plan::{Scratch, Task, Workloads};
    use diskproof_model::stream::Streams;
    use diskproof_simdisk::testbed::{Disk, TempDir, can_run};

    /// A block device that accepts discards or not.
    fn device(discard: bool) -> TargetIdentity {
        let mut identity = diskproof_device::probe(std::path::Path::new("/")).unwrap();
        "/dev/sdb".clone_into(&mut identity.path);
        identity.kind = TargetKind::BlockDevice;
        let layer = serde_json::json!({
            "name": "sdb", "kind": "disk", "device": "8:16", "below": [], "size_bytes": 1u64 << 30,
            "read_only": false, "discard": discard,
        });
        identity.layers = vec![serde_json::from_value(layer).unwrap()];
        identity
    }

    #[test]
    fn device_without_discards_is_refused_where_a_workload_trims() {
        let writes = Workload {
            streams: Streams::with_reads(0),
            ..Workload::named("write")
        };
        assert!(check_operations(&[writes], &[device(false)]).is_ok());
        let trims = [Workload {
            streams: Streams::doing(&[OpKind::Trim, OpKind::Write]),
            ..Workload::named("trim")
        }];
        assert!(check_operations(&trims, &[device(true)]).is_ok());
        let refused = check_operations(&trims, &[device(false)]).unwrap_err();
        let why = refused.to_string();
        assert!(why.starts_with("/dev/sdb: workload 'trim' trims"), "{why}");
        let on_the_second = trims.map(|workload| Workload {
            target: Some(1),
            ..workload
        });
        let accepts = [device(false), device(true)];
        assert!(check_operations(&on_the_second, &accepts).is_ok());
    }

    const MIB: u64 = 1 << 20;

    /// A plan that fills a scratch file of this size in each directory.
    fn plan_of(size_mib: u64, directories: &[TargetIdentity]) -> Plan {
        let workloads = Workloads::as_planned(vec![Workload::named("read")]);
        let targets = directories.iter().map(|target| target.path.clone());
        Plan {
            targets: targets.collect(),
            scratch: Some(Scratch::of_size(size_mib * MIB)),
            tasks: vec![Task::Workloads(workloads)],
            ..Plan::default()
        }
    }

    /// Two directories on a filesystem of 400 MiB, of which a tenth stays free.
    fn directories_of(disk: &Disk) -> Vec<TargetIdentity> {
        let mut directories = Vec::new();
        for name in ["one", "two"] {
            let path = disk.path().join(name);
            std::fs::create_dir(&path).unwrap();
            directories.push(diskproof_device::probe(&path).unwrap());
        }
        directories
    }

    #[test]
    fn gate_refuses_targets_that_have_no_room_together() {
        let name = "gate_refuses_targets_that_have_no_room_together";
        if !can_run(name, &["losetup", "mkfs.ext4"]) {
            return;
        }
        let disk = Disk::new("ext4", 400 * MIB, "rw");
        let both = directories_of(&disk);
        for (size_mib, count, is_admitted) in [(100, 2, true), (200, 1, true), (200, 2, false)] {
            let directories = &both[..count];
            let plan = plan_of(size_mib, directories);
            let admitted = admit_all(&plan, directories, &Consent::default());
            assert_eq!(admitted.is_ok(), is_admitted, "{size_mib} MiB × {count}");
        }
    }

    #[test]
    fn gate_refuses_a_server_that_has_no_room_beside_the_scratch_file() {
        let name = "gate_refuses_a_server_that_has_no_room_beside_the_scratch_file";
        if !can_run(name, &["losetup", "mkfs.ext4"]) {
            return;
        }
        let disk = Disk::new("ext4", 400 * MIB, "rw");
        let directories = &directories_of(&disk)[..1];
        let plan = plan_of(200, directories);
        for (room_mib, is_admitted) in [(50, true), (200, false), (1000, false)] {
            let server = BeyondTargets::Server {
                room_bytes: room_mib * MIB,
            };
            let budget = Budget {
                beyond: vec![server],
                ..plan.budget(directories)
            };
            let admitted = admit_within(&budget, &plan, directories, &Consent::default(), &[]);
            assert_eq!(admitted.is_ok(), is_admitted, "{room_mib} MiB");
        }
    }

    #[test]
    fn gate_refuses_changes_beyond_the_targets_without_the_word_of_the_user() {
        let flags = crate::flags::MeasuringFlags::default();
        let job = MeasuringJob::new(Plan::default(), Vec::new(), &flags);
        let server = BeyondTargets::Server { room_bytes: 1 };
        for beyond in [server, BeyondTargets::WriteCache, BeyondTargets::Commands] {
            let refused = refuse_unless_agreed(beyond, &job).unwrap_err();
            assert_eq!(refused.exit(), crate::failure::Exit::Usage, "{beyond:?}");
        }
        let job = MeasuringJob {
            agreed: AgreedChanges::Commands(crate::session::SettingCommands::default()),
            ..job
        };
        assert!(refuse_unless_agreed(BeyondTargets::Commands, &job).is_ok());
        assert!(refuse_unless_agreed(BeyondTargets::WriteCache, &job).is_err());
    }

    /// Files of our own, each of a mebibyte, in a directory on this filesystem.
    struct OwnFiles {
        place: TempDir,
        directory: TargetIdentity,
        kept: KeptFile,
    }

    impl OwnFiles {
        /// `None` where the filesystem keeps no mark of them.
        fn new(names: [&str; 2]) -> Option<Self> {
            let place = diskproof_simdisk::testbed::place();
            let mut directory = diskproof_device::probe(place.path()).unwrap();
            for name in names {
                let intent = Intent::Scratch { size_bytes: MIB };
                let admission = admit(directory.clone(), intent).unwrap();
                let file = OpenTarget::create_named(admission, name, 0).unwrap();
                let path = place.path().join(name);
                std::fs::write(&path, vec![1; MIB as usize]).unwrap();
                std::fs::File::open(&path).unwrap().sync_all().unwrap();
                file.mark_own();
                drop(file);
                if own_allocated_bytes(&path) < MIB {
                    return None;
                }
            }
            directory.filesystem.as_mut().unwrap().kind = "ext4".to_owned();
            let kept = KeptFile {
                names: names.map(str::to_owned).to_vec(),
                ..KeptFile::default()
            };
            Some(Self {
                place,
                directory,
                kept,
            })
        }
    }

    /// Blocks that are there already need no room. A copy of them does, and so does what lies
    /// beyond the part of a file.
    #[test]
    fn blocks_of_kept_files_count_where_they_are_written_in_place() {
        let Some(mut own) = OwnFiles::new(["a", "b"]) else {
            println!("SKIPPED: blocks_of_kept_files_count_where_they_are_written_in_place: xattrs");
            return;
        };
        for (size_bytes, expected) in [(2 * MIB, 2 * MIB), (MIB, MIB)] {
            let bytes = kept_allocated_bytes(&own.kept, &own.directory, size_bytes);
            assert_eq!(bytes, expected, "{size_bytes}");
        }
        // The mark of a file may have a block of its own.
        let bytes = kept_allocated_bytes(&own.kept, &own.directory, 8 * MIB);
        assert!((2 * MIB..3 * MIB).contains(&bytes), "{bytes}");
        std::fs::write(own.place.path().join("b"), [2; 8192]).unwrap();
        let bytes = kept_allocated_bytes(&own.kept, &own.directory, 2 * MIB);
        assert_eq!(bytes, MIB, "another program changed the second one");
        own.directory.filesystem.as_mut().unwrap().kind = "btrfs".to_owned();
        assert_eq!(kept_allocated_bytes(&own.kept, &own.directory, 2 * MIB), 0);
        own.directory.filesystem = None;
        assert_eq!(kept_allocated_bytes(&own.kept, &own.directory, 2 * MIB), 0);
    }

    #[test]
    fn rehearsal_refuses_a_filesystem_that_is_only_read() {
        let name = "rehearsal_refuses_a_filesystem_that_is_only_read";
        if !can_run(name, &["losetup", "mkfs.ext4"]) {
            return;
        }
        for (options, expected) in [("rw", true), ("ro", false)] {
            let disk = Disk::new("ext4", 64 * MIB, options);
            let path = disk.path().to_str().unwrap();
            let access = Access::WRITE_OK | Access::EXEC_OK;
            let checked = check_access(path, access, "create a file in it");
            assert_eq!(checked.is_ok(), expected, "{options}");
            if let Err(error) = checked {
                assert!(matches!(error, OpenError::ReadOnly { .. }), "{error:?}");
            }
        }
    }
}
