# Starts $1 hosts h1, h2 and so on, each with an sshd and a name of its own, and carries out the
# commands $2, in which $SSH, pdsh and ansible reach them, and nobody else does. $HOSTS has their
# names with commas between. To be the first process of PID, mount, network and UTS namespaces of
# its own: with it everything ends that it has started, and what it mounts is seen by nobody else.
set -eu
# The mounts of other tests would stay in use here after these have ended.
awk '$2 ~ /diskproof-test-/ {print $2}' /proc/self/mounts | tac | while read -r point; do
    umount -l "$(printf '%b' "$point")" 2>/dev/null || true
done
count=$1 commands=$2
export PATH=$PATH:/usr/sbin:/sbin
mount -t tmpfs -o mode=755 testbed /run
mkdir /run/sshd /run/ansible
ip link set lo up

# A locked password would lock the account; nobody logs in with one.
sed 's/^root:[^:]*:/root:*:/' /etc/shadow >/run/shadow
chmod 600 /run/shadow
mount --bind /run/shadow /etc/shadow
ssh-keygen -q -t ed25519 -N '' -f /run/key
ssh-keygen -q -t ed25519 -N '' -f /run/hostkey
cat >/run/ssh_config <<CONF
User root
IdentityFile /run/key
IdentitiesOnly yes
IdentityAgent none
UserKnownHostsFile /dev/null
GlobalKnownHostsFile /dev/null
StrictHostKeyChecking no
BatchMode yes
LogLevel ERROR
CONF
printf '127.0.0.1 localhost\n' >/run/hosts
HOSTS=
for number in $(seq "$count"); do
    address=127.0.1.$number
    printf '%s h%s\n' "$address" "$number" >>/run/hosts
    HOSTS=$HOSTS${HOSTS:+,}h$number
    cat >"/run/sshd-$number" <<CONF
ListenAddress $address:22
HostKey /run/hostkey
AuthorizedKeysFile /run/key.pub
PermitRootLogin yes
PermitUserRC no
StrictModes no
UsePAM no
PidFile none
PrintMotd no
MaxStartups 100
Subsystem sftp internal-sftp
CONF
    unshare --uts bash -c "hostname h$number; exec /usr/sbin/sshd -D -e -f /run/sshd-$number" \
        >"/run/sshd-$number.log" 2>&1 &
done
mount --bind /run/hosts /etc/hosts
export HOSTS SSH='ssh -F /run/ssh_config' HOME=/run
export PDSH_RCMD_TYPE=ssh PDSH_SSH_ARGS_APPEND='-F /run/ssh_config'
printf '%s\n' "$HOSTS" | tr , '\n' >/run/inventory
export ANSIBLE_INVENTORY=/run/inventory ANSIBLE_SSH_ARGS='-F /run/ssh_config'
export ANSIBLE_HOME=/run/ansible ANSIBLE_LOCAL_TEMP=/run/ansible ANSIBLE_REMOTE_TEMP=/run/ansible
export ANSIBLE_NOCOLOR=1 ANSIBLE_PYTHON_INTERPRETER=auto_silent
for number in $(seq "$count"); do
    for _ in $(seq 300); do
        ! $SSH "h$number" true 2>/dev/null || break
        sleep 0.1
    done
    $SSH "h$number" true || { cat "/run/sshd-$number.log" >&2; exit 1; }
done
timeout 300 bash -euc "$commands"
