//! An acceptance test: whether a disk is what its label says. An `AcceptPlan` is the plan, an
//! `AcceptMeasurement` what came back, `AcceptFigures` what follows from it.

mod content;
mod data;
mod layout;
mod states;
mod unwritten;

pub use content::SectorContent;
pub use data::{
    ACCEPT_BYTES_MIN, AcceptFigures, AcceptMeasurement, AcceptPlan, AcceptRecord, AcceptVerdict,
    BAD_RANGES_MAX, BadBytes, BadContent, BadRange, Displacement, Edge, Fraud, HealthChange,
    HealthCounter, MovedBytes, MovedPiece, PlaceContent, PlacesBefore, PositionCell, Procedure,
    RateByPosition, SlowPart, StalledPlace, TestStall, TestStop, Undecided, UnwrittenRange,
    WriteCliff,
};
pub use layout::{BLOCK_BYTES, Batch, Pass, Piece, chunk_bytes, chunks, salted, shuffled};
pub(crate) use states::PIECES_MAX;
pub use states::{PieceState, PieceStates};
