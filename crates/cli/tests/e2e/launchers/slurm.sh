# Starts Slurm's daemons with $1 nodes, n0 and so on, and carries out the commands $2, in which srun
# works. To be the first process of PID, mount, network and UTS namespaces of its own: with it
# everything ends that it has started, and what it mounts is seen by nobody else.
set -eu
# The mounts of other tests would stay in use here after these have ended.
awk '$2 ~ /diskproof-test-/ {print $2}' /proc/self/mounts | tac | while read -r point; do
    umount -l "$(printf '%b' "$point")" 2>/dev/null || true
done
nodes=$1 last=$(($1 - 1)) commands=$2
export PATH=$PATH:/usr/sbin:/sbin
mount -t tmpfs -o mode=755 testbed /run
hostname testbed
printf '127.0.0.1 localhost testbed\n' >/run/hosts
mount --bind /run/hosts /etc/hosts
ip link set lo up
# Slurm listens only where the machine has an address beside those of localhost.
ip address add 10.0.0.1/32 dev lo

mkdir /run/munge /run/state /run/spool
(umask 077 && head -c 1024 /dev/urandom >/run/munge/key)
munged --foreground --force --key-file=/run/munge/key --socket=/run/munge/socket \
    --pid-file=/run/munge/pid --log-file=/run/munge/log --seed-file=/run/munge/seed \
    >/run/munge/out 2>&1 &
cat >/run/slurm.conf <<CONF
ClusterName=testbed
SlurmctldHost=testbed(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=/run/munge/socket
CredType=cred/munge
SlurmctldPort=17000
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd-%n.pid
StateSaveLocation=/run/state
SlurmdSpoolDir=/run/spool/%n
SlurmctldLogFile=/run/slurmctld.log
SlurmdLogFile=/run/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/linear
MpiDefault=none
SwitchType=switch/none
SlurmdParameters=config_overrides
InactiveLimit=0
KillWait=2
NodeName=DEFAULT CPUs=1 State=UNKNOWN
NodeName=n[0-$last] NodeHostname=testbed NodeAddr=127.0.0.1 Port=[17001-$((17001 + last))]
PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE
CONF
export SLURM_CONF=/run/slurm.conf
until [ -S /run/munge/socket ]; do sleep 0.1; done
slurmctld -D -c -f "$SLURM_CONF" >/run/slurmctld.out 2>&1 &
controller=$!
for node in $(seq 0 "$last"); do
    mkdir "/run/spool/n$node"
    slurmd -D -N "n$node" -f "$SLURM_CONF" >"/run/slurmd-n$node.out" 2>&1 &
done
until [ "$(timeout 10 sinfo -h -t idle -o %D 2>/dev/null)" = "$nodes" ]; do
    if [ "$SECONDS" -gt 60 ] || ! kill -0 "$controller"; then
        tail -n 20 /run/*.out >&2
        exit 1
    fi
    sleep 0.2
done
timeout 300 bash -euc "$commands"
