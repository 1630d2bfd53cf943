//! dd of the GNU coreutils, in the forms that are used to test disks.

mod args;
mod human;
mod print;
#[cfg(test)]
mod tests;

pub(crate) use args::DROP_IN;
