//! Parts of a record in words and as blocks: what every page says. Does not know how a page is laid
//! out.

pub(crate) mod changes;
pub(crate) mod commands;
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
pub(crate) mod method;
pub(crate) mod observed;
pub(crate) mod page;
pub(crate) mod ping;
pub(crate) mod plan;
pub(crate) mod proof;
pub(crate) mod remarks;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod server;
pub(crate) mod surface;
pub(crate) mod sweep;
mod sweep_view;
pub(crate) mod target;
pub(crate) mod tiles;
pub(crate) mod trials;
pub(crate) mod verdict;
