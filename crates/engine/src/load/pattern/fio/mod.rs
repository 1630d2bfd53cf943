//! Makes the requests of a job in the order of fio 3.33: the same kinds, files, places and sizes,
//! in laps that end where its laps end. `job_file/tests/fio_counts.txt` of the crate `cli` has what
//! the real fio counted for 100 command lines. The test beside it checks that the same is counted
//! here.
//!
//! A request follows in four choices, in this order: the file (`file_choice`), a sync or the kind
//! of operation, the place in the file (`places`), the size (`sizes`). Where one of the last two
//! fails, the file is done in this lap, and another one is chosen. A lap is over when all files are
//! done. Each choice has random numbers of its own (`draws`), so none changes another.

mod amount;
mod draws;
mod file_choice;
mod law;
mod places;
mod shift_register;
mod sizes;
mod steps;
mod tausworthe;
mod walk;

pub use amount::{FioAmount, FioLimits, OpAmount};
pub use draws::{drawn_file_bytes, seed_of_places};
pub(crate) use steps::FioSteps;
pub use steps::{has_requests, mean_bytes};
