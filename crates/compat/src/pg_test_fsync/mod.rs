//! pg_test_fsync of PostgreSQL.

mod args;
mod print;
mod rows;
#[cfg(test)]
mod tests;

pub(crate) use args::DROP_IN;
