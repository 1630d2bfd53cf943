//! `SimDirectory`: a directory over FUSE with files in memory, in which O_DIRECT is refused. One
//! thread serves it, without delays.

use crate::fuse::connection::{Channel, Connection, Root, ServeError};
use crate::fuse::wire::{
    self, Attributes, Body, IN_HEADER_BYTES, InHeader, TRANSFER_BYTES, Transfer, init_flag, opcode,
    open_flag,
};
use crate::models::direct::DirectAccess;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

/// The root's number, given by the protocol.
const ROOT: u64 = 1;
/// Blocks of 4 KiB that statfs reports: 64 GiB, all free.
const BLOCKS: u64 = 16 << 20;

/// A directory that is served. Files can be created, written, read, truncated, listed and unlinked;
/// subdirectories, links and renames are missing. Dropping it unmounts lazily, ends the thread, and
/// forgets the files.
#[derive(Debug)]
pub struct SimDirectory {
    connection: Connection,
    refusals: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

/// The state of the directory, which only its thread changes.
struct Tree {
    direct: DirectAccess,
    refusals: Arc<AtomicU64>,
    /// The number of each file that has a name.
    names: BTreeMap<Vec<u8>, u64>,
    /// Every file that has a name or that the kernel knows, by its number.
    nodes: HashMap<u64, FileNode>,
    /// The number of the next new file. Numbers are never used again.
    next_node: u64,
}

/// A file in memory.
struct FileNode {
    content: File,
    mode: u32,
    links: u32,
    /// Times that the kernel looked it up. It may use the node until it has forgotten all of them.
    lookups: u64,
}

impl SimDirectory {
    /// Serves an empty directory on `mount_point` (made when missing).
    pub fn serve(direct: DirectAccess, mount_point: &Path) -> Result<Self, ServeError> {
        let connection = Connection::mount(mount_point, Root::Directory)?;
        let channels = connection.channels(1)?;
        let refusals = Arc::new(AtomicU64::new(0));
        let mut directory = Self {
            connection,
            refusals: refusals.clone(),
            thread: None,
        };
        let mut tree = Tree {
            direct,
            refusals,
            names: BTreeMap::new(),
            nodes: HashMap::new(),
            next_node: ROOT + 1,
        };
        let thread = std::thread::Builder::new()
            .name("simdirectory".to_owned())
            .spawn(move || tree.serve(&channels[0]))
            .map_err(|source| ServeError::Server { source })?;
        directory.thread = Some(thread);
        Ok(directory)
    }

    /// The directory where it is mounted.
    pub fn path(&self) -> &Path {
        self.connection.path()
    }

    /// Times that O_DIRECT was refused so far, at open or transfer.
    pub fn refusals(&self) -> u64 {
        self.refusals.load(Ordering::Relaxed)
    }
}

impl Drop for SimDirectory {
    fn drop(&mut self) {
        self.connection.stop();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has printed why; the mount ends all the same.
            let _ = thread.join();
        }
    }
}

impl Tree {
    fn serve(&mut self, channel: &Channel) {
        let mut buffer = Channel::buffer();
        while let Some(length) = channel.receive(&mut buffer) {
            let header = InHeader::read(&buffer[..length]);
            let body = &buffer[IN_HEADER_BYTES.min(length)..length];
            match header.opcode {
                opcode::FORGET => self.forget(header.node, wire::u64_at(body, 0)),
                opcode::BATCH_FORGET => {
                    for entry in body.get(8..).unwrap_or_default().chunks_exact(16) {
                        self.forget(wire::u64_at(entry, 0), wire::u64_at(entry, 8));
                    }
                }
                opcode::INTERRUPT => {}
                _ => match self.answer(&header, body) {
                    Ok(reply) => channel.reply(header.unique, Ok(&reply.0)),
                    Err(error) => channel.reply(
                        header.unique,
                        Err(error.raw_os_error().unwrap_or(libc::EIO)),
                    ),
                },
            }
        }
    }

    fn answer(&mut self, header: &InHeader, body: &[u8]) -> io::Result<Body> {
        match header.opcode {
            opcode::INIT => {
                let wanted = init_flag::ASYNC_READ
                    | init_flag::BIG_WRITES
                    | init_flag::WRITEBACK_CACHE
                    | init_flag::MAX_PAGES;
                Ok(Body::default().init(wire::u32_at(body, 12) & wanted))
            }
            opcode::LOOKUP => self.look_up(wire::name_in(body)),
            opcode::GETATTR => Ok(Body::default().attr_out(&self.attributes(header.node)?)),
            opcode::SETATTR => self.set_attributes(header.node, body),
            opcode::CREATE => self.create(body),
            opcode::UNLINK => self.unlink(wire::name_in(body)),
            opcode::OPEN => self
                .open(wire::u32_at(body, 0))
                .map(|flags| Body::default().open_out(0, flags)),
            opcode::READ => self.read(header.node, &Transfer::read(body)),
            opcode::WRITE => self.write(
                header.node,
                &Transfer::read(body),
                body.get(TRANSFER_BYTES..).unwrap_or_default(),
            ),
            opcode::FALLOCATE => self.allocate(header.node, body),
            opcode::OPENDIR => Ok(Body::default().open_out(0, 0)),
            opcode::READDIR => Ok(self.list(&Transfer::read(body))),
            opcode::STATFS => Ok(Body::default().statfs_out(BLOCKS, BLOCKS)),
            opcode::RELEASE | opcode::RELEASEDIR | opcode::FSYNC | opcode::DESTROY => {
                Ok(Body::default())
            }
            _ => Err(errno(libc::ENOSYS)),
        }
    }

    fn node(&self, node: u64) -> io::Result<&FileNode> {
        self.nodes.get(&node).ok_or_else(|| errno(libc::ENOENT))
    }

    fn attributes(&self, node: u64) -> io::Result<Attributes> {
        if node == ROOT {
            return Ok(Attributes {
                node,
                size_bytes: 4096,
                mode: Root::Directory.mode(),
                links: 2,
            });
        }
        let FileNode {
            content,
            mode,
            links,
            ..
        } = self.node(node)?;
        Ok(Attributes {
            node,
            size_bytes: content.metadata()?.len(),
            mode: *mode,
            links: *links,
        })
    }

    fn look_up(&mut self, name: &[u8]) -> io::Result<Body> {
        let node = *self.names.get(name).ok_or_else(|| errno(libc::ENOENT))?;
        let attributes = self.attributes(node)?;
        self.nodes.entry(node).and_modify(|n| n.lookups += 1);
        Ok(Body::default().entry_out(&attributes))
    }

    /// `struct fuse_setattr_in`: valid bits at 0, size at 16, mode at 68.
    fn set_attributes(&mut self, number: u64, body: &[u8]) -> io::Result<Body> {
        let valid = wire::u32_at(body, 0);
        if let Some(node) = self.nodes.get_mut(&number) {
            if valid & wire::SETATTR_SIZE != 0 {
                node.content.set_len(wire::u64_at(body, 16))?;
            }
            if valid & wire::SETATTR_MODE != 0 {
                node.mode = wire::u32_at(body, 68);
            }
        }
        Ok(Body::default().attr_out(&self.attributes(number)?))
    }

    /// `struct fuse_create_in`: open flags at 0, mode at 4, name at 16. A refused open leaves the
    /// file behind, as it does elsewhere: the kernel makes the file before it asks for O_DIRECT
    /// (do_dentry_open).
    fn create(&mut self, body: &[u8]) -> io::Result<Body> {
        let name = wire::name_in(body.get(16..).unwrap_or_default());
        if self.names.contains_key(name) {
            return Err(errno(libc::EEXIST));
        }
        let content = File::from(rustix::fs::memfd_create(
            "simdirectory",
            rustix::fs::MemfdFlags::CLOEXEC,
        )?);
        let number = self.next_node;
        self.next_node += 1;
        self.names.insert(name.to_owned(), number);
        self.nodes.insert(
            number,
            FileNode {
                content,
                mode: wire::u32_at(body, 4),
                links: 1,
                lookups: 0,
            },
        );
        let flags = self.open(wire::u32_at(body, 0))?;
        let entry = self.look_up(name)?;
        Ok(entry.open_out(0, flags))
    }

    fn open(&self, open_flags: u32) -> io::Result<u32> {
        if wire::is_direct(open_flags) && self.direct.refuses_open() {
            return Err(self.refuse());
        }
        Ok(open_flag::KEEP_CACHE)
    }

    /// Counts a refusal, and returns its error.
    fn refuse(&self) -> io::Error {
        self.refusals.fetch_add(1, Ordering::Relaxed);
        errno(libc::EINVAL)
    }

    fn check_direct(&self, transfer: &Transfer) -> io::Result<()> {
        if transfer.is_direct() && self.direct.refuses_transfer() {
            Err(self.refuse())
        } else {
            Ok(())
        }
    }

    fn read(&self, node: u64, transfer: &Transfer) -> io::Result<Body> {
        self.check_direct(transfer)?;
        let mut data = vec![0; transfer.length_bytes as usize];
        let length = self
            .node(node)?
            .content
            .read_at(&mut data, transfer.offset_bytes)?;
        data.truncate(length);
        Ok(Body(data))
    }

    fn write(&self, node: u64, transfer: &Transfer, data: &[u8]) -> io::Result<Body> {
        self.check_direct(transfer)?;
        self.node(node)?
            .content
            .write_all_at(data, transfer.offset_bytes)?;
        Ok(Body::default().u32(data.len() as u32).u32(0))
    }

    /// `struct fuse_fallocate_in`: offset at 8, length at 16, mode at 24. Only growing is known.
    fn allocate(&self, node: u64, body: &[u8]) -> io::Result<Body> {
        if wire::u32_at(body, 24) != 0 {
            return Err(errno(libc::EOPNOTSUPP));
        }
        let content = &self.node(node)?.content;
        let end = wire::u64_at(body, 8) + wire::u64_at(body, 16);
        if content.metadata()?.len() < end {
            content.set_len(end)?;
        }
        Ok(Body::default())
    }

    fn unlink(&mut self, name: &[u8]) -> io::Result<Body> {
        let number = self.names.remove(name).ok_or_else(|| errno(libc::ENOENT))?;
        self.nodes.entry(number).and_modify(|n| n.links -= 1);
        self.forget(number, 0);
        Ok(Body::default())
    }

    /// An unlinked file lives on while the kernel knows it: a program has it open.
    fn forget(&mut self, number: u64, lookups: u64) {
        let Some(node) = self.nodes.get_mut(&number) else {
            return;
        };
        node.lookups = node.lookups.saturating_sub(lookups);
        if node.links == 0 && node.lookups == 0 {
            self.nodes.remove(&number);
        }
    }

    /// READDIR has the layout of READ; its offset counts entries. 24 bytes of `fuse_dirent` and up
    /// to 7 of padding with each name.
    fn list(&self, transfer: &Transfer) -> Body {
        let dots = [
            (ROOT, u32::from(libc::DT_DIR), &b"."[..]),
            (ROOT, u32::from(libc::DT_DIR), &b".."[..]),
        ];
        let files = self
            .names
            .iter()
            .map(|(name, number)| (*number, u32::from(libc::DT_REG), &name[..]));
        let mut body = Body::default();
        for (index, (node, kind, name)) in dots
            .into_iter()
            .chain(files)
            .enumerate()
            .skip(transfer.offset_bytes as usize)
        {
            if body.0.len() + 24 + name.len() + 7 > transfer.length_bytes as usize {
                break;
            }
            body = body.directory_entry(node, index as u64 + 1, kind, name);
        }
        body
    }
}

fn errno(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}
