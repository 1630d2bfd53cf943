//! Reads what a run left on its target, past the page cache where that works. Changes nothing.

use crate::error::CutError;
use crate::judge::StreamContent;
use crate::page::{AlignedPage, FILE_BYTES, PAGE_BYTES, PageLabel, SlotState, inspect};
use crate::run::{BLANK, RunDescription, StreamKind};
use crate::run_files::{ENTRY_PREFIX, file_name};
use diskproof_device::{OpenTarget, open_regular_file};
use diskproof_model::plan::CachePolicy;

use rustix::io::{Errno, pread};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Reads what every stream left, in the order of the description, and calls `on_slot_read` after
/// each page or file. `pages` is the target, or the file of the region in the run's directory, and
/// `None` where that file is gone. Fails where the target cannot be read as a whole: that says
/// nothing about its writes.
pub fn read_content(
    run: &RunDescription,
    mut pages: Option<OpenTarget>,
    directory: Option<&Path>,
    on_slot_read: &dyn Fn(),
) -> Result<Vec<StreamContent>, CutError> {
    if let Some(pages) = &mut pages {
        pages.drop_cache();
        pages.set_cache(CachePolicy::Direct)?;
    }
    let mut page = Box::new(AlignedPage([0; PAGE_BYTES]));
    let mut content = Vec::new();
    // The place of a page that could be read.
    let mut readable_offset = None;
    for (index, stream) in run.streams.iter().enumerate() {
        if stream.kind == StreamKind::Entries {
            content.push(StreamContent::Names(read_names(directory)?));
            continue;
        }
        let mut states = Vec::new();
        for slot in 0..stream.slots {
            let place = run.label(index, slot, 0);
            states.push(match (stream.kind, &pages, directory) {
                (StreamKind::Files, _, Some(folder)) => {
                    file_state(&folder.join(file_name(slot)), place)?
                }
                (StreamKind::Pages | StreamKind::Control, Some(target), _) => {
                    let offset = run.page_offset(index, slot);
                    let state = page_state(target, &mut page, offset, place)?;
                    if state != SlotState::Unreadable {
                        readable_offset = Some(offset);
                    }
                    state
                }
                _ => SlotState::Foreign,
            });
            on_slot_read();
        }
        content.push(StreamContent::Slots(states));
    }
    if let Some(target) = &pages
        && content.iter().any(StreamContent::has_unreadable)
    {
        check_is_readable(target, &mut page, readable_offset)?;
    }
    Ok(content)
}

/// Distinguishes sectors that a cut damaged from a disk that is gone: of such a disk no page can be
/// read, nor one again that was read before.
fn check_is_readable(
    target: &OpenTarget,
    page: &mut AlignedPage,
    readable_offset: Option<u64>,
) -> Result<(), CutError> {
    let read_again = match readable_offset {
        Some(offset) => read_page(target, page, offset),
        None => Err(Errno::IO),
    };
    match read_again {
        Ok(_) => Ok(()),
        Err(errno) => Err(CutError::NotReadable(
            target.identity().path.clone(),
            errno.into(),
        )),
    }
}

/// Returns the checksum of the region that a run fills, or its byte if all bytes are equal; `None`
/// where it cannot be read. A run compares it before and after the cut to recognise that all its
/// writes were lost. Calls `on_page_read` after each page.
pub fn region_fingerprint(
    run: &RunDescription,
    pages: &OpenTarget,
    on_page_read: &dyn Fn(),
) -> Option<String> {
    pages.drop_cache();
    let mut page = Box::new(AlignedPage([0; PAGE_BYTES]));
    let mut hash = Sha256::new();
    let mut first_byte = None;
    let mut is_uniform = true;
    for number in 0..run.region_bytes() / PAGE_BYTES as u64 {
        let length = read_page(pages, &mut page, number * PAGE_BYTES as u64).ok()?;
        on_page_read();
        let content = &page.0[..length];
        let byte = *first_byte.get_or_insert(*content.first()?);
        is_uniform &= content.iter().all(|other| *other == byte);
        hash.update(content);
    }
    if is_uniform {
        return first_byte.map(|byte| format!("{BLANK} {byte:02x}"));
    }
    let digest = hash.finalize();
    Some(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns the time of the last change of a directory, for the same comparison; `None` where the
/// directory cannot be read.
pub fn directory_change_time(directory: &Path) -> Option<String> {
    let metadata = std::fs::metadata(directory).ok()?;
    Some(format!("{}.{:09}", metadata.ctime(), metadata.ctime_nsec()))
}

/// The kernel's id of this boot: another one after every start of the machine. `None` without
/// /proc.
pub fn boot_id() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
}

/// Returns the state of a page. Only an error that says nothing about the sectors is an error here.
fn page_state(
    target: &OpenTarget,
    page: &mut AlignedPage,
    offset: u64,
    place: PageLabel,
) -> Result<SlotState, CutError> {
    match read_page(target, page, offset) {
        Ok(length) => Ok(inspect(&page.0[..length], place)),
        // A disk reports these for sectors that a cut damaged.
        Err(Errno::IO | Errno::ILSEQ | Errno::NODATA) => Ok(SlotState::Unreadable),
        Err(errno) => Err(CutError::Read(target.identity().path.clone(), errno.into())),
    }
}

/// Reads a page and returns its length: less than a page at the end of the target.
fn read_page(target: &OpenTarget, page: &mut AlignedPage, offset: u64) -> Result<usize, Errno> {
    let mut length = 0;
    while length < PAGE_BYTES {
        match pread(target.fd(), &mut page.0[length..], offset + length as u64) {
            Ok(0) => break,
            Ok(bytes) => length += bytes,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(length)
}

/// Returns the state of a small file.
fn file_state(path: &Path, place: PageLabel) -> Result<SlotState, CutError> {
    match read_file(path) {
        Ok(Some(content)) if content.len() == FILE_BYTES => Ok(inspect(&content, place)),
        // A rename that was durable before its content.
        Ok(Some(_)) => Ok(SlotState::Mixed {
            oldest: 0,
            has_invalid: true,
        }),
        Ok(None) => Ok(SlotState::Foreign),
        Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => {
            Ok(SlotState::Unreadable)
        }
        Err(error) => Err(read_error(path, error)),
    }
}

/// The content of a regular file, as far as it can be one of ours; `None` of anything else.
fn read_file(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let Some(file) = open_regular_file(path)? else {
        return Ok(None);
    };
    let mut content = Vec::new();
    file.take(FILE_BYTES as u64 + 1).read_to_end(&mut content)?;
    Ok(Some(content))
}

/// Returns the numbers in the names of a directory's entries; none where the directory is gone.
fn read_names(directory: Option<&Path>) -> Result<BTreeSet<u64>, CutError> {
    let mut names = BTreeSet::new();
    let Some(directory) = directory else {
        return Ok(names);
    };
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(names),
        Err(error) => return Err(read_error(directory, error)),
    };
    for entry in entries {
        let name = match entry {
            Ok(entry) => entry.file_name(),
            Err(error) => return Err(read_error(directory, error)),
        };
        if let Some(text) = name.to_string_lossy().strip_prefix(ENTRY_PREFIX)
            && let Ok(number) = text.parse()
        {
            names.insert(number);
        }
    }
    Ok(names)
}

fn read_error(path: &Path, error: io::Error) -> CutError {
    CutError::Read(path.display().to_string(), error)
}
