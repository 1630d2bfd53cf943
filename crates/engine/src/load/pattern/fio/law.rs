//! Draws numbers by a law under which some are more frequent than others: of files
//! (`file_service_type=zipf` and its relatives) and of places (`random_distribution`). The laws are
//! fio's: zipf after Gray et al. ("Quickly Generating Billion-Record Synthetic Databases", SIGMOD
//! 1994), pareto by its inverse, normal as a mean of twelve numbers.

use super::tausworthe::Tausworthe;
use diskproof_model::shape::{FioFiles, FioLaw, FioLawKind, FioPlaceLaw};
use std::sync::{Mutex, PoisonError};

/// Each file has so many numbers, as in fio (`FIO_FSERVICE_SHIFT`).
const NUMBERS_OF_FILE: u64 = 1 << 10;
/// The multiplier that scatters frequent places, as in fio (`GOLDEN_RATIO_64`): 2⁶⁴ divided by the
/// square of the golden ratio.
const SCATTERED_BY: u64 = 0x61C8_8646_80B5_83EB;
/// As in fio, the sum of a zipf law ends here.
const ZIPF_TERMS_MAX: u64 = 10_000_000;
/// The numbers whose mean is normal.
const NORMAL_DRAWS: u64 = 12;

/// The law by which some files are chosen more often than others.
#[derive(Debug, Clone)]
pub(super) struct FileLaw(Law);

impl FileLaw {
    /// The law of these files; `None` where all are chosen alike.
    pub(super) fn new(files: FioFiles) -> Option<Self> {
        let numbers = u64::from(files.count) * NUMBERS_OF_FILE;
        Some(Self(Law::new(files.service.law()?, numbers)))
    }

    /// Where the numbers of a lap begin.
    pub(super) fn first_number(&self, draw: &mut Tausworthe) -> u64 {
        self.0.first_number(draw)
    }

    /// The index of the next file.
    pub(super) fn file(&self, first_number: u64, draw: &mut Tausworthe) -> usize {
        let number = self.0.number(draw).wrapping_add(first_number) % self.0.numbers;
        (number / NUMBERS_OF_FILE) as usize
    }
}

/// The law of places in a file, with its own random numbers, which go on from lap to lap.
#[derive(Debug, Clone)]
pub(super) struct PlaceLaw {
    law: Law,
    draw: Tausworthe,
    first_number: u64,
}

impl PlaceLaw {
    pub(super) fn new(place_law: FioPlaceLaw) -> Self {
        let law = Law::new(place_law.law, place_law.places);
        let mut draw = Tausworthe::new(place_law.seed);
        let first_number = law.first_number(&mut draw);
        Self {
            law,
            draw,
            first_number,
        }
    }

    /// The next place. Frequent ones lie far apart.
    pub(super) fn place(&mut self) -> u64 {
        let scattered = self.law.number(&mut self.draw).wrapping_mul(SCATTERED_BY);
        scattered.wrapping_add(self.first_number) % self.law.numbers
    }
}

/// The law of some numbers.
#[derive(Debug, Clone)]
struct Law {
    kind: LawKind,
    /// As many numbers are drawn.
    numbers: u64,
    /// The most frequent number lies here: drawn where the job sets no centre.
    centre: Option<f64>,
}

#[derive(Debug, Clone, Copy)]
enum LawKind {
    Zipf { theta: f64, zeta: f64 },
    Pareto { exponent: f64 },
    Normal { deviation: u64 },
}

impl Law {
    fn new(law: FioLaw, numbers: u64) -> Self {
        let kind = match law.kind {
            FioLawKind::Zipf { theta } => LawKind::Zipf {
                theta,
                zeta: zeta(numbers.min(ZIPF_TERMS_MAX), theta),
            },
            FioLawKind::Pareto { power } => LawKind::Pareto {
                exponent: power.ln() / (1.0 - power).ln(),
            },
            FioLawKind::Normal { deviation } => {
                let width = (numbers as f64 * deviation / 100.0).ceil() as u64;
                LawKind::Normal {
                    deviation: width.min(numbers / 2),
                }
            }
        };
        Self {
            kind,
            numbers,
            centre: law.centre,
        }
    }

    /// Where the numbers begin. Takes a number of a new generator, also where the job sets a
    /// centre, except for the normal law.
    fn first_number(&self, draw: &mut Tausworthe) -> u64 {
        let numbers = self.numbers as f64;
        if let LawKind::Normal { .. } = self.kind {
            return match self.centre {
                // A negative distance goes around the end.
                Some(centre) => (numbers * (centre - 0.5)) as i64 as u64,
                None => 0,
            };
        }
        let drawn = draw.bits();
        match self.centre {
            Some(centre) => (numbers * centre) as u64,
            None => drawn,
        }
    }

    /// The next number, before it is moved to where the numbers begin.
    fn number(&self, draw: &mut Tausworthe) -> u64 {
        match self.kind {
            LawKind::Zipf { theta, zeta } => self.zipf_number(theta, zeta, unit(draw)),
            LawKind::Pareto { exponent } => {
                ((self.numbers - 1) as f64 * unit(draw).powf(exponent)) as u64
            }
            LawKind::Normal { deviation } => self.normal_number(deviation, draw),
        }
    }

    fn zipf_number(&self, theta: f64, zeta: f64, drawn: f64) -> u64 {
        let second = 0.5_f64.powf(theta);
        let place = drawn * zeta;
        if place < 1.0 {
            return 0;
        }
        if place < 1.0 + second {
            return 1;
        }
        let numbers = self.numbers as f64;
        let eta = (1.0 - (2.0 / numbers).powf(1.0 - theta)) / (1.0 - (1.0 + second) / zeta);
        (numbers * (eta * drawn - eta + 1.0).powf(1.0 / (1.0 - theta))) as u64
    }

    fn normal_number(&self, deviation: u64, draw: &mut Tausworthe) -> u64 {
        let mut sum = 0;
        for _ in 0..NORMAL_DRAWS {
            sum += draw.bits() % (self.numbers + 1);
        }
        let mean = sum.div_ceil(NORMAL_DRAWS);
        if deviation == 0 {
            return mean;
        }
        let shift = draw.below(deviation) as i64 - (deviation / 2) as i64;
        self.shifted(mean, shift)
    }

    /// The number at a distance from the mean, which is halved until the number is one of those of
    /// the files.
    fn shifted(&self, mean: u64, shift: i64) -> u64 {
        let mut shift = shift;
        loop {
            match mean.checked_add_signed(shift) {
                Some(number) if number < self.numbers => return number,
                _ if shift == 0 => return mean,
                _ => shift /= 2,
            }
        }
    }
}

/// The sum of the first terms of a zipf law. Each sum is computed once: one of ten million terms
/// takes half a second, and a job needs it several times.
fn zeta(terms: u64, theta: f64) -> f64 {
    let mut sums = SUMS.lock().unwrap_or_else(PoisonError::into_inner);
    for known in sums.iter() {
        if known.terms == terms && known.theta == theta {
            return known.sum;
        }
    }
    let mut sum = 0.0;
    for term in 1..=terms {
        sum += (1.0 / term as f64).powf(theta);
    }
    sums.push(ZetaSum { terms, theta, sum });
    sum
}

/// A sum that is known.
#[derive(Debug)]
struct ZetaSum {
    terms: u64,
    theta: f64,
    sum: f64,
}

/// The sums so far: one for each size of a file and each law of a plan.
static SUMS: Mutex<Vec<ZetaSum>> = Mutex::new(Vec::new());

/// A number from 0 to 1.
fn unit(draw: &mut Tausworthe) -> f64 {
    draw.bits() as f64 / f64::from(u32::MAX)
}
