//! Collects the bytes that processes had read and written when they ended, as the kernel reports
//! them at each exit (taskstats over generic netlink; Documentation/accounting/taskstats.rst).
//! Short-lived processes are seen nowhere else. Needs CAP_NET_ADMIN.

use crate::kernel::sysroot::{SysRoot, read_text};
use diskproof_model::measurement::ByteCount;
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use rustix::net::{AddressFamily, SocketFlags, SocketType, netlink, socket_with};
use std::os::fd::OwnedFd;

/// Messages wait in the socket until they are read at the end: room for some thousand exits. What
/// does not fit is lost, which the kernel reports (ENOBUFS).
const BUFFER_BYTES: usize = 8 << 20;
/// Generic netlink's own family, and its command that finds another (linux/genetlink.h).
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
/// linux/taskstats.h.
const TASKSTATS_CMD_GET: u8 = 1;
const ATTR_REGISTER_CPUMASK: u16 = 3;
const TYPE_STATS: u16 = 3;
const TYPE_AGGR_PID: u16 = 4;
/// Offsets in `struct taskstats`, which only grows at its end.
const COMM: std::ops::Range<usize> = 80..112;
const PID: usize = 128;
const PARENT: usize = 132;
const READ_BYTES: usize = 248;
const WRITE_BYTES: usize = 256;
/// Since version 12 (Linux 5.19).
const TGID: usize = 368;
/// Headers of netlink and generic netlink, and of an attribute.
const HEADER_BYTES: usize = 16;
const GENERIC_BYTES: usize = 4;
const ATTRIBUTE_BYTES: usize = 4;
const NLM_F_REQUEST: u16 = 1;
/// The kind of a message by which the kernel refuses a request (linux/netlink.h).
const NLMSG_ERROR: u16 = 2;

/// A thread that ended, with what it had read and written in all its life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EndedThread {
    /// The process that it belonged to.
    pub pid: u32,
    /// True for the first thread, whose name is the process's.
    pub is_first: bool,
    pub parent: u32,
    pub name: String,
    pub bytes: ByteCount,
}

/// Listens to exits from its opening on.
#[derive(Debug)]
pub(crate) struct ExitListener {
    socket: OwnedFd,
    /// The number of the family TASKSTATS, which the kernel chooses at boot.
    family: u16,
    /// Exits that were reported while the registration was under way; `None` where some were lost.
    exits_at_registration: Option<Vec<EndedThread>>,
}

impl ExitListener {
    /// `None` without the right to listen, or where the kernel does not report exits.
    pub(crate) fn open() -> Option<Self> {
        let socket = open_socket()?;
        let name = attribute(CTRL_ATTR_FAMILY_NAME, b"TASKSTATS\0");
        send(&socket, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, &name)?;
        let mut reply = [0; 8192];
        let length = rustix::io::read(&socket, &mut reply).ok()?;
        let family = family_number(reply.get(..length)?)?;
        let cpus = read_text(&SysRoot::default().sys.join("devices/system/cpu/possible"))?;
        let mask = attribute(ATTR_REGISTER_CPUMASK, format!("{cpus}\0").as_bytes());
        send(&socket, family, TASKSTATS_CMD_GET, &mask)?;
        Self::registered(socket, family)
    }

    /// Reads the answer to the registration; `None` where the kernel refuses it.
    fn registered(socket: OwnedFd, family: u16) -> Option<Self> {
        let mut reply = [0; 8192];
        // The kernel answers with an error message where it refuses, and not at all where it does
        // not. Then the first message may be the exit of a process already.
        let exits = match rustix::io::read(&socket, &mut reply) {
            Ok(length) => {
                if messages(&reply[..length]).any(|(kind, _)| kind == NLMSG_ERROR) {
                    return None;
                }
                threads(&reply[..length], family)
            }
            Err(rustix::io::Errno::AGAIN) => Some(Vec::new()),
            Err(_) => None,
        };
        Some(Self {
            socket,
            family,
            exits_at_registration: exits,
        })
    }

    /// The threads that ended; `None` where some were lost, or where the kernel does not say to
    /// which processes they belonged (before Linux 5.19). Without that our own threads would count
    /// as other processes.
    pub(crate) fn into_ended_threads(self) -> Option<Vec<EndedThread>> {
        let mut ended = self.exits_at_registration?;
        let mut buffer = vec![0; 64 << 10];
        loop {
            match rustix::io::read(&self.socket, &mut buffer) {
                Ok(length) => ended.extend(threads(&buffer[..length], self.family)?),
                Err(rustix::io::Errno::AGAIN) => return Some(ended),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return None,
            }
        }
    }
}

fn open_socket() -> Option<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (family, protocol) = (AddressFamily::NETLINK, Some(netlink::GENERIC));
    let socket = socket_with(family, SocketType::RAW, flags, protocol).ok()?;
    // Without the right to a larger buffer the usual one stays.
    let _ = set_socket_recv_buffer_size_force(&socket, BUFFER_BYTES);
    Some(socket)
}

/// Sends one request; the kernel has carried it out when this returns.
fn send(socket: &OwnedFd, kind: u16, command: u8, attributes: &[u8]) -> Option<()> {
    let length = (HEADER_BYTES + GENERIC_BYTES + attributes.len()) as u32;
    let mut message = Vec::new();
    message.extend(length.to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(NLM_F_REQUEST.to_ne_bytes());
    message.extend([0; 8]);
    message.extend([command, 1, 0, 0]);
    message.extend(attributes);
    if rustix::io::write(socket, &message).ok()? == message.len() {
        Some(())
    } else {
        None
    }
}

/// The number of a family, in the answer of the kernel.
fn family_number(reply: &[u8]) -> Option<u16> {
    for (kind, attributes) in messages(reply) {
        if kind == GENL_ID_CTRL
            && let Some(value) = find(attributes, CTRL_ATTR_FAMILY_ID)
            && let Some(number) = u16_at(value)
        {
            return Some(number);
        }
    }
    None
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(((ATTRIBUTE_BYTES + value.len()) as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// The kind of each message of generic netlink, and its attributes.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = u32_at(bytes)? as usize;
        let message = bytes.get(..length)?;
        if length < HEADER_BYTES {
            return None;
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        let attributes = message.get(HEADER_BYTES + GENERIC_BYTES..);
        Some((u16_at(&message[4..])?, attributes.unwrap_or_default()))
    })
}

/// Attributes with their kinds.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (length, kind) = (usize::from(u16_at(bytes)?), u16_at(bytes.get(2..)?)?);
        let value = bytes.get(ATTRIBUTE_BYTES..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

fn find(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    for (found, value) in attributes(bytes) {
        if found == kind {
            return Some(value);
        }
    }
    None
}

/// The threads whose ends some messages report; `None` where a message does not say to which
/// process its thread belonged.
fn threads(bytes: &[u8], family: u16) -> Option<Vec<EndedThread>> {
    let mut threads = Vec::new();
    for (sender, content) in messages(bytes) {
        if sender != family {
            continue;
        }
        for (kind, value) in attributes(content) {
            if kind == TYPE_AGGR_PID
                && let Some(stats) = find(value, TYPE_STATS)
            {
                threads.push(ended_thread(stats)?);
            }
        }
    }
    Some(threads)
}

/// The thread of a `struct taskstats`; `None` where the kernel's version is too short for a field.
fn ended_thread(stats: &[u8]) -> Option<EndedThread> {
    let thread = u32_at(stats.get(PID..)?)?;
    let pid = u32_at(stats.get(TGID..)?)?;
    let name = stats
        .get(COMM)?
        .split(|byte| *byte == 0)
        .next()
        .unwrap_or_default();
    Some(EndedThread {
        pid,
        is_first: pid == thread,
        parent: u32_at(stats.get(PARENT..)?)?,
        name: String::from_utf8_lossy(name).into_owned(),
        bytes: ByteCount {
            read_bytes: u64_at(stats.get(READ_BYTES..)?)?,
            write_bytes: u64_at(stats.get(WRITE_BYTES..)?)?,
            ..ByteCount::default()
        },
    })
}

fn u16_at(bytes: &[u8]) -> Option<u16> {
    bytes.first_chunk().map(|chunk| u16::from_ne_bytes(*chunk))
}

fn u32_at(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|chunk| u32::from_ne_bytes(*chunk))
}

fn u64_at(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk().map(|chunk| u64::from_ne_bytes(*chunk))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(family: u16, stats: &[u8]) -> Vec<u8> {
        let inner = [attribute(1, &7_u32.to_ne_bytes()), attribute(3, stats)].concat();
        let body = [vec![0; GENERIC_BYTES], attribute(TYPE_AGGR_PID, &inner)].concat();
        let mut bytes = ((HEADER_BYTES + body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(family.to_ne_bytes());
        bytes.resize(HEADER_BYTES, 0);
        bytes.extend(body);
        bytes
    }

    fn stats(thread: u32, pid: u32) -> Vec<u8> {
        let mut stats = vec![0; 384];
        stats[COMM.start..COMM.start + 7].copy_from_slice(b"pg_dump");
        stats[PID..PID + 4].copy_from_slice(&thread.to_ne_bytes());
        stats[PARENT..PARENT + 4].copy_from_slice(&3_u32.to_ne_bytes());
        stats[READ_BYTES..READ_BYTES + 8].copy_from_slice(&4096_u64.to_ne_bytes());
        stats[WRITE_BYTES..WRITE_BYTES + 8].copy_from_slice(&512_u64.to_ne_bytes());
        stats[TGID..TGID + 4].copy_from_slice(&pid.to_ne_bytes());
        stats
    }

    fn ended(pid: u32, is_first: bool) -> EndedThread {
        EndedThread {
            pid,
            is_first,
            parent: 3,
            name: "pg_dump".to_owned(),
            bytes: ByteCount {
                read_bytes: 4096,
                write_bytes: 512,
                ..ByteCount::default()
            },
        }
    }

    #[test]
    fn exit_messages_are_read_with_their_process() {
        let (worker, other, first) = (stats(7, 5), stats(9, 9), stats(5, 5));
        let all = [(31, &worker), (30, &other), (31, &first)];
        let bytes = all.map(|(family, stats)| message(family, stats)).concat();
        let expected = vec![ended(5, false), ended(5, true)];
        assert_eq!(threads(&bytes, 31), Some(expected));
    }

    /// The number of a thread is not that of its process: our own workers would be other programs.
    #[test]
    fn exits_without_their_process_are_not_reported() {
        let new = message(31, &stats(5, 5));
        let old = message(31, &stats(8, 0)[..TGID]);
        assert_eq!(threads(&[new.clone(), old.clone()].concat(), 31), None);
        let [ours, kernels] = messages_of(&[old]);
        let listener = ExitListener::registered(ours, 31).unwrap();
        rustix::io::write(&kernels, &new).unwrap();
        assert_eq!(listener.into_ended_threads(), None);
    }

    #[test]
    fn exit_during_the_registration_is_kept() {
        let [ours, kernels] = messages_of(&[message(31, &stats(7, 7))]);
        let listener = ExitListener::registered(ours, 31).unwrap();
        rustix::io::write(&kernels, &message(31, &stats(5, 5))).unwrap();
        let expected = vec![ended(7, true), ended(5, true)];
        assert_eq!(listener.into_ended_threads(), Some(expected));
        let [ours, _kernels] = messages_of(&[message(NLMSG_ERROR, &stats(7, 7))]);
        assert!(ExitListener::registered(ours, 31).is_none());
    }

    /// A socket from which these messages can be read, and the other end of it.
    fn messages_of(messages: &[Vec<u8>]) -> [OwnedFd; 2] {
        let (ours, kernels) = std::os::unix::net::UnixDatagram::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        for message in messages {
            kernels.send(message).unwrap();
        }
        [ours.into(), kernels.into()]
    }

    #[test]
    fn short_lived_process_is_reported_where_permitted() {
        let Some(listener) = ExitListener::open() else {
            eprintln!("SKIPPED: short_lived_process_is_reported_where_permitted: CAP_NET_ADMIN");
            return;
        };
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let mut child = std::process::Command::new("dd")
            .args(["if=/dev/zero", "bs=1M", "count=4", "conv=fsync"])
            .arg(format!("of={}", place.path().join("x").display()))
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        child.wait().unwrap();
        // The message is queued before the parent can reap the child.
        let Some(ended) = listener.into_ended_threads() else {
            eprintln!("SKIPPED: short_lived_process_is_reported_where_permitted: exits lost");
            return;
        };
        let dd = ended
            .iter()
            .find(|thread| thread.pid == child.id())
            .unwrap();
        assert!(dd.name == "dd" && dd.bytes.write_bytes >= 4 << 20, "{dd:?}");
    }
}
