//! What a saved record says of itself is not believed: it is judged again when it is loaded.

use crate::stderr::eprint_line;
use diskproof_analysis::again::{Rejudged, judged_again};
use diskproof_history::StoredRun;

/// The run as this program judges it; says where that is not what is stored.
pub(super) fn judged(stored: StoredRun, name: &str) -> StoredRun {
    let (record, found) = judged_again(stored.record);
    // The page as it was printed shows what is stored.
    let page = stored.page.filter(|_| found.is_as_stored());
    match found {
        Rejudged::Same => {}
        Rejudged::NoData => eprint_line(&format!(
            "note: {name} does not keep what was measured, so it is not judged again"
        )),
        Rejudged::Anew(judging) => eprint_line(&format!(
            "note: {name} was judged by the rules of version {judging}. What follows is judged \
             again"
        )),
        Rejudged::Differs(pointer) => eprint_line(&format!(
            "warning: {name} does not say what follows from its measurements: {pointer} differs. \
             The file was changed or damaged. What follows is judged again"
        )),
    }
    StoredRun {
        record,
        page,
        ..stored
    }
}

/// The same of one of many runs, without a word.
pub(super) fn judged_quietly(stored: StoredRun) -> StoredRun {
    StoredRun {
        record: judged_again(stored.record).0,
        ..stored
    }
}
