//! Lists every figure of a record, once: its key, its value with the interval, its unit, and the
//! names that it has in each format. Readers iterate over [`figures`] or look a metric up by name;
//! none lists metrics of its own. A new figure is a row of `tables`.

mod field;
mod key;
mod list;
mod names;
pub(crate) mod tables;
mod walk;

pub use key::{Figure, Key, Metric, Part};
pub use list::FigureList;
pub(crate) use list::{survey_key, target_labels};
pub use names::{Named, named, names_of_part, names_part_of_survey, threshold_names, unit_of};
pub use walk::{figures, part_figure, points};
