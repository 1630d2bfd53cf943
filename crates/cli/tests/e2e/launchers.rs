//! Records that real launchers bring back: Slurm, ssh, pdsh, clush, Ansible and Open MPI, each with
//! its own daemons, which end with the test.

use crate::program::{Ran, needs, program_path, random_file, run, with_enough_time};
use diskproof_simdisk::testbed::{TempDir, place};
use serde_json::Value;
use std::process::{Command, Stdio};

const SLURM: &str = include_str!("launchers/slurm.sh");
const SSH: &str = include_str!("launchers/ssh.sh");
/// Only the commands: no daemon, and no network but that of the machine with itself.
const NO_DAEMON: &str =
    "PATH=$PATH:/usr/sbin:/sbin; ip link set lo up; timeout 300 bash -euc \"$2\"";

/// Times of a run, and with them how long its launcher may take: on a busy machine the first is too
/// short.
const TIMES: [&str; 2] = ["1s", "6s"];
/// Codes of hosts that are not in the sum because the machine was too busy.
const TOO_BUSY: [&str; 3] = ["few-slots", "filled-late", "late"];

/// A folder with the output of a launcher's processes.
struct Launched {
    place: TempDir,
}

impl Launched {
    /// Starts a number of hosts by a script, and carries out these commands on them. `$RUN` is the
    /// program with its verb, `$READS` are flags of a run of this time, `$SLACK` its seconds, and
    /// `$D` is a folder with the file `data` and a file of each host.
    fn on(starter: &str, hosts: u32, time: &str, commands: &str) -> Self {
        let place = place();
        let folder = place.path();
        random_file(&folder.join("data"), 16 << 20);
        for host in 1..=hosts {
            std::fs::copy(folder.join("data"), folder.join(format!("h{host}"))).unwrap();
        }
        // The first process of the namespaces dies with `unshare`, that with this thread, and all
        // others with the first one.
        let mut unshare = Command::new("setpriv");
        unshare
            .args([
                "--pdeathsig",
                "KILL",
                "unshare",
                "--mount",
                "--net",
                "--uts",
            ])
            .args(["--pid", "--fork", "--kill-child", "--mount-proc"])
            .args(["bash", "-euc", starter, "bash"])
            .arg(hosts.to_string())
            .arg(commands)
            .env("RUN", format!("{} run", program_path()))
            .env(
                "READS",
                format!("--rw randread --depth 4 --time {time} --no-history --no-health -q"),
            )
            .env("SLACK", time.trim_end_matches('s'))
            .env("D", folder)
            .env_remove("DISKPROOF_GIVE_UP_AFTER")
            .stdin(Stdio::null());
        Ran::of(unshare).exits(0);
        Self { place }
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.place.path().join(name)).unwrap()
    }

    /// The name of a new file with this text.
    fn file(&self, text: &str) -> &'static str {
        std::fs::write(self.place.path().join("joined"), text).unwrap();
        "joined"
    }

    /// The answer of `merge` to a file or folder, where so many hosts are expected.
    fn merged(&self, name: &str, expected: &str) -> Ran {
        let path = self.place.path().join(name);
        run([
            "merge",
            path.to_str().unwrap(),
            "--json",
            "--expect",
            expected,
        ])
    }
}

/// Asserts that the records of so many rows are whole, and that nothing else is said of the rest.
fn assert_whole(fleet: &Value, rows: usize) {
    assert_eq!(fleet["rows"].as_array().unwrap().len(), rows, "{fleet}");
    assert_eq!(fleet.get("missing"), None, "{fleet}");
    assert_eq!(fleet.get("refused"), None, "{fleet}");
}

/// Asserts that this many hosts are in the sum, and that the others are not for these reasons.
/// Fails where the machine was too busy for the slots.
fn assert_sum(fleet: &Value, hosts: usize, others: &[&str]) -> Result<(), String> {
    let codes = left_out(fleet);
    let is_too_busy = codes.iter().any(|code| TOO_BUSY.contains(&code.as_str()));
    if (is_too_busy && codes != others) || fleet["sum"]["workloads"] == serde_json::json!([]) {
        return Err(format!("too busy: {fleet}"));
    }
    assert_eq!(codes, others, "{fleet}");
    let members = fleet["sum"]["members"].as_array();
    assert_eq!(members.map(Vec::len), Some(hosts), "{fleet}");
    let workloads = fleet["sum"]["workloads"].as_array().unwrap();
    assert_eq!(workloads.len(), 1, "{fleet}");
    assert!(workloads[0]["iops"]["value"].as_f64().unwrap() > 0.0);
    Ok(())
}

/// The codes of those that are not in the sum, in the order of the alphabet.
fn left_out(fleet: &Value) -> Vec<String> {
    let mut codes = Vec::new();
    for one in fleet["sum"]["left_out"].as_array().into_iter().flatten() {
        codes.push(one["reason"]["code"].as_str().unwrap().to_owned());
    }
    codes.sort();
    codes
}

/// The names of those of which no record came, in the order of the alphabet.
fn missing(fleet: &Value) -> Vec<String> {
    let mut names = Vec::new();
    for row in fleet["missing"].as_array().into_iter().flatten() {
        names.push(row["name"].as_str().unwrap().to_owned());
    }
    names.sort();
    names
}

/// Of the four ranks at the end, one is killed once it has announced itself, and one never starts.
const SRUNS: &str = r#"
    run="$RUN $D/data --bs 4k $READS"
    srun -N3 $run --pieces >$D/plain
    srun -l -N3 $run --pieces >$D/labels
    srun --mpi=pmi2 -N3 $run --together --start-at +$((5 * SLACK))s >$D/fences

    cat >$D/rank <<'RANK'
case $SLURM_PROCID in
    1)  "$@" >$D/rank1 &
        until grep -q diskproof1 $D/rank1; do sleep 0.1; done
        cat $D/rank1
        kill -9 $!;;
    2)  ;;
    *)  exec "$@";;
esac
RANK
    start=@$(($(date +%s) + 10 * SLACK))
    srun -N4 bash $D/rank $run --together --start-at $start >$D/faults
"#;

#[test]
fn slurm_brings_back_records_and_sums() {
    needs!("slurmctld", "slurmd", "srun", "munged", "ip", "unshare");
    with_enough_time(&TIMES, |time| {
        let launched = Launched::on(SLURM, 4, time, SRUNS);
        for output in ["plain", "labels"] {
            assert_whole(&launched.merged(output, "3").json(), 3);
        }
        let fleet = launched.merged("fences", "3").json();
        assert_sum(&fleet, 3, &[])?;
        assert_whole(&fleet, 3);
        let fleet = launched.merged("faults", "4").exits(1).json();
        assert_sum(&fleet, 2, &[])?;
        assert_eq!(missing(&fleet), ["rank 2", "testbed #1"], "{fleet}");
        Ok(())
    });
}

/// The two sums are measured one after the other, while both launchers wait.
const SSH_COMMANDS: &str = r#"
    for host in h1 h2 h3; do
        $SSH $host $RUN $D/$host --bs 4k $READS --pieces &
    done >$D/ssh
    wait
    clush -f 3 -b -o '-F /run/ssh_config' -w $HOSTS \
        "$RUN $D/\$(hostname) --bs 4k $READS --pieces" >$D/clush
    now=$(date +%s)
    pdsh -f 3 -w $HOSTS $RUN $D/%h --bs 4k $READS --together \
        --start-at @$((now + 8 * SLACK)) --rank %n/3 >$D/pdsh &
    ansible all -f 3 -o -a "$RUN $D/{{ inventory_hostname }} --bs 4k $READS --together \
        --start-at @$((now + 18 * SLACK)) \
        --rank {{ groups['all'].index(inventory_hostname) }}/3" >$D/ansible
    wait
"#;

#[test]
fn ssh_pdsh_clush_and_ansible_bring_back_records_and_sums() {
    needs!("sshd", "ssh", "pdsh", "clush", "ansible", "ip", "unshare");
    with_enough_time(&TIMES, |time| {
        let launched = Launched::on(SSH, 3, time, SSH_COMMANDS);
        for output in ["ssh", "clush"] {
            assert_whole(&launched.merged(output, "3").json(), 3);
        }
        for output in ["pdsh", "ansible"] {
            let fleet = launched.merged(output, "3").json();
            assert_sum(&fleet, 3, &[])?;
            assert_whole(&fleet, 3);
        }
        Ok(())
    });
}

/// Rank 2 is killed once it has announced itself, 3 has another plan, 4 comes when the others have
/// ended, and 5 never.
const RANKS_THAT_FAIL: &str = r#"
    flags="$READS --together --start-at @$(($(date +%s) + 8 * SLACK))"
    $SSH h1 $RUN $D/h1 --bs 4k $flags --rank 0/6 >$D/0 &
    $SSH h2 $RUN $D/h2 --bs 4k $flags --rank 1/6 >$D/1 &
    $SSH h3 "echo \$\$ >$D/pid; exec $RUN $D/h3 --bs 4k $flags --rank 2/6" >$D/2 &
    $SSH h4 $RUN $D/h4 --bs 16k $flags --rank 3/6 >$D/3 &
    until grep -q diskproof1 $D/2; do sleep 0.1; done
    kill -9 $(cat $D/pid)
    wait
    $SSH h5 $RUN $D/h5 --bs 4k $flags --rank 4/6 >$D/4
"#;

#[test]
fn ranks_that_fail_over_ssh_are_named_and_in_no_sum() {
    needs!("sshd", "ssh", "ip", "unshare");
    with_enough_time(&TIMES, |time| {
        let launched = Launched::on(SSH, 5, time, RANKS_THAT_FAIL);
        let texts = ["0", "1", "2", "3", "4"].map(|rank| launched.text(rank));
        let all = launched.file(&texts.join("\n\n"));
        let fleet = launched.merged(all, "6").exits(1).json();
        let names = missing(&fleet);
        assert!(names.contains(&"h3 #2".to_owned()), "{fleet}");
        assert!(names.contains(&"rank 5".to_owned()), "{fleet}");
        assert_eq!(fleet.get("refused"), None, "{fleet}");
        assert_sum(&fleet, 2, &["late", "other-plan"])?;
        // One of two whole records loses the end of a line: nothing is left to add up.
        let mut lines: Vec<&str> = texts[1].lines().collect();
        lines[2] = &lines[2][..lines[2].len() - 30];
        let cut = launched.file(&format!("{}\n{}", texts[0], lines.join("\n")));
        let fleet = launched.merged(cut, "2").exits(1).json();
        assert_eq!(fleet.get("sum"), None, "{fleet}");
        assert_eq!(missing(&fleet), ["h2 #1"], "{fleet}");
        assert_eq!(fleet["refused"].as_array().unwrap().len(), 1, "{fleet}");
        Ok(())
    });
}

const MPIRUN: &str = r#"
    mkdir $D/results
    export OMPI_MCA_plm_rsh_agent=false OMPI_MCA_oob_tcp_if_include=lo
    mpirun.openmpi --allow-run-as-root --oversubscribe -n 3 $RUN $D/data --bs 4k $READS \
        --together --start-at @$(($(date +%s) + 8 * SLACK)) -o $D/results/
"#;

#[test]
fn open_mpi_leaves_a_file_of_each_rank() {
    needs!("mpirun.openmpi", "ip", "unshare");
    with_enough_time(&TIMES, |time| {
        let launched = Launched::on(NO_DAEMON, 0, time, MPIRUN);
        let results = launched.place.path().join("results");
        assert_eq!(std::fs::read_dir(results).unwrap().count(), 3);
        let fleet = launched.merged("results", "3").json();
        assert_sum(&fleet, 3, &[])?;
        assert_whole(&fleet, 3);
        Ok(())
    });
}
