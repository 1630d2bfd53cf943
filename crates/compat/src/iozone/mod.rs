//! iozone 3: rates by size of the file and of the record.

mod args;
mod pairs;
mod print;
#[cfg(test)]
mod tests;

pub(crate) use args::DROP_IN;
