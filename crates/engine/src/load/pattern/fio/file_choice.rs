//! Chooses the file of the next request, as fio does: knows which files are open, which are done,
//! and whose turn it is.

use super::draws::Draws;
use super::law::FileLaw;
use diskproof_model::shape::{FileService, FioFiles};

/// A steep law may never draw one of the few files that are open. After so many draws the first
/// open one is taken; fio would go on for ever. Chosen, not measured.
const REDRAWS_MAX: u32 = 1 << 12;

/// The state of a file in a lap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileState {
    Closed,
    Open,
    /// The lap has nothing more to do in it.
    Done,
}

/// A chosen file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChosenFile {
    pub(super) index: usize,
    /// True if the lap begins with it.
    pub(super) is_new: bool,
}

/// The choice of files. As in fio it goes on where the lap before ended.
#[derive(Debug, Clone)]
pub(super) struct FileChoice {
    files: FioFiles,
    /// The law by which some files are chosen more often than others, if there is one.
    law: Option<FileLaw>,
    states: Vec<FileState>,
    /// Files that are open.
    open: u32,
    /// Files that are done.
    done: u32,
    /// The file whose turn is next.
    next: usize,
    /// The file of the last request.
    served: Option<usize>,
    /// Requests that go to it before the next choice.
    served_left: u32,
}

impl FileChoice {
    pub(super) fn new(files: FioFiles) -> Self {
        Self {
            files,
            law: FileLaw::new(files),
            states: vec![FileState::Closed; files.count as usize],
            open: 0,
            done: 0,
            next: 0,
            served: None,
            served_left: 0,
        }
    }

    /// The law by which some files are chosen more often than others, if there is one.
    pub(super) fn law(&self) -> Option<&FileLaw> {
        self.law.as_ref()
    }

    /// Closes all files, of which none is done then.
    pub(super) fn begin_lap(&mut self) {
        self.states.fill(FileState::Closed);
        self.open = 0;
        self.done = 0;
    }

    /// Ends this open file: nothing more is done in it until the next lap.
    pub(super) fn end_file(&mut self, index: usize) {
        self.states[index] = FileState::Done;
        self.open -= 1;
        self.done += 1;
    }

    /// Closes this open file, which begins again when it is chosen next.
    pub(super) fn close_file(&mut self, index: usize) {
        self.states[index] = FileState::Closed;
        self.open -= 1;
    }

    /// True if no file has anything left to do.
    pub(super) fn are_all_done(&self) -> bool {
        self.done == self.files.count
    }

    /// The file of the next request; `None` where all are done.
    pub(super) fn choose(&mut self, draws: &mut Draws) -> Option<ChosenFile> {
        if let Some(served) = self.served
            && self.states[served] == FileState::Open
        {
            let stays = self.files.service == FileService::Sequential || self.served_left > 0;
            if stays {
                self.served_left = self.served_left.saturating_sub(1);
                return Some(ChosenFile {
                    index: served,
                    is_new: false,
                });
            }
        }
        if self.are_all_done() {
            return None;
        }
        let index = self.next_open(draws);
        let is_new = self.states[index] == FileState::Closed;
        if is_new {
            self.states[index] = FileState::Open;
            self.open += 1;
        }
        self.served = Some(index);
        self.served_left = self.files.turn_ops.saturating_sub(1);
        Some(ChosenFile { index, is_new })
    }

    /// The next file that is open or may be opened. One of those is there, as not all are done.
    fn next_open(&mut self, draws: &mut Draws) -> usize {
        let mut redraws = 0;
        loop {
            let index = self.next_index(draws);
            match self.states[index] {
                FileState::Open => return index,
                FileState::Closed if self.open < self.files.open_max.max(1) => return index,
                FileState::Closed | FileState::Done => {}
            }
            redraws += 1;
            if self.law.is_some()
                && redraws > REDRAWS_MAX
                && let Some(open) = self.first_open()
            {
                return open;
            }
        }
    }

    fn first_open(&self) -> Option<usize> {
        self.states
            .iter()
            .position(|state| *state == FileState::Open)
    }

    /// The file whose turn is next, whether it is open or not.
    fn next_index(&mut self, draws: &mut Draws) -> usize {
        if let Some(law) = &self.law {
            return law.file(draws.first_number, &mut draws.files);
        }
        if self.files.service == FileService::Random {
            return draws.files.below(self.states.len() as u64) as usize;
        }
        let index = self.next;
        self.next = (index + 1) % self.states.len();
        index
    }
}
