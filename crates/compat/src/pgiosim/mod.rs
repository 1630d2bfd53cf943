//! pgiosim 0.5: random blocks of files, as an index scan reads them.

mod args;
mod print;
#[cfg(test)]
mod tests;

pub(crate) use args::DROP_IN;
