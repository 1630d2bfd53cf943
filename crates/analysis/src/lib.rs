//! Measurements in, judgements out: estimates with their uncertainty, findings with their evidence,
//! settings with their reason. Pure: no I/O, no clock, no environment; knows only the nouns of
//! `model`.
#![forbid(unsafe_code)]

pub mod compare;
pub mod estimate;
pub mod expect;
pub mod judge;
pub mod postgres;
pub mod reproduce;
pub mod rules;
pub mod surface;
pub mod verdict;

mod mechanics;
mod shape;
#[cfg(test)]
mod stopping;
mod student;

#[cfg(test)]
mod dice;
#[cfg(test)]
mod healthy;
#[cfg(test)]
mod surveyed;
