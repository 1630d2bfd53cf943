//! Parts of a record in words and as blocks: what every page says. Does not know how a page is laid
//! out.

pub(crate) mod commits;
pub(crate) mod comparison;
pub(crate) mod figures;
pub(crate) mod files;
pub(crate) mod findings;
pub(crate) mod health;
pub(crate) mod identity;
pub(crate) mod inserts;
pub(crate) mod latency_search;
pub(crate) mod layers;
pub(crate) mod observed;
pub(crate) mod proof;
pub(crate) mod remarks;
pub(crate) mod run;
pub(crate) mod server;
pub(crate) mod surface;
pub(crate) mod sweep;
pub(crate) mod target;
pub(crate) mod trials;

use diskproof_model::block::Block;
use diskproof_model::record::Record;

/// Everything measured that is not a row of the table of workloads.
pub(crate) fn parts(record: &Record) -> Vec<Block> {
    let surveyed = record.surface.iter();
    let mut parts: Vec<Block> = surveyed
        .flat_map(|of| surface::blocks(record, of))
        .collect();
    parts.extend(record.files.iter().flat_map(|of| files::blocks(record, of)));
    parts.extend(
        record
            .layers
            .iter()
            .flat_map(|of| layers::blocks(record, of)),
    );
    parts.extend(record.observed.iter().flat_map(observed::blocks));
    let searched = record.latency_search.iter();
    parts.extend(searched.flat_map(|of| latency_search::blocks(record, of)));
    parts.extend(observed::likeness(record));
    parts
}
