//! The files that a job chooses more often than others (`file_service_type=zipf` and its
//! relatives), as fio draws them: zipf after Gray et al. ("Quickly Generating Billion-Record
//! Synthetic Databases", SIGMOD 1994), pareto by its inverse, normal as a mean of twelve numbers.

use super::tausworthe::Tausworthe;
use diskproof_model::shape::{FileService, FioFiles};

/// Each file has so many numbers, as in fio (`FIO_FSERVICE_SHIFT`).
const NUMBERS_OF_FILE: u64 = 1 << 10;
/// As in fio, the sum of a zipf law ends here.
const ZIPF_TERMS_MAX: u64 = 10_000_000;
/// The numbers whose mean is normal.
const NORMAL_DRAWS: u64 = 12;

/// The law by which some files are chosen more often than others.
#[derive(Debug, Clone)]
pub(super) struct FileLaw {
    kind: LawKind,
    /// The numbers of all files.
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

impl FileLaw {
    /// The law of these files; `None` where all are chosen alike.
    pub(super) fn new(files: FioFiles) -> Option<Self> {
        let numbers = u64::from(files.count) * NUMBERS_OF_FILE;
        let (kind, centre) = match files.service {
            FileService::RoundRobin | FileService::Random | FileService::Sequential => return None,
            FileService::Zipf { theta, centre } => {
                let zeta = zeta(numbers.min(ZIPF_TERMS_MAX), theta);
                (LawKind::Zipf { theta, zeta }, centre)
            }
            FileService::Pareto { power, centre } => {
                let exponent = power.ln() / (1.0 - power).ln();
                (LawKind::Pareto { exponent }, centre)
            }
            FileService::Normal { deviation, centre } => {
                let width = (numbers as f64 * deviation / 100.0).ceil() as u64;
                let deviation = width.min(numbers / 2);
                (LawKind::Normal { deviation }, centre)
            }
        };
        Some(Self {
            kind,
            numbers,
            centre,
        })
    }

    /// Where the numbers begin. Takes a number of a new generator, also where the job sets a
    /// centre, except for the normal law.
    pub(super) fn first_number(&self, draw: &mut Tausworthe) -> u64 {
        let numbers = self.numbers as f64;
        if let LawKind::Normal { .. } = self.kind {
            return match self.centre {
                // A negative distance goes around the end.
                Some(centre) => (numbers * (centre - 0.5)) as i64 as u64,
                None => 0,
            };
        }
        let drawn = u64::from(draw.bits());
        match self.centre {
            Some(centre) => (numbers * centre) as u64,
            None => drawn,
        }
    }

    /// The index of the next file.
    pub(super) fn file(&self, first_number: u64, draw: &mut Tausworthe) -> usize {
        let number = match self.kind {
            LawKind::Zipf { theta, zeta } => self.zipf_number(theta, zeta, unit(draw)),
            LawKind::Pareto { exponent } => {
                ((self.numbers - 1) as f64 * unit(draw).powf(exponent)) as u64
            }
            LawKind::Normal { deviation } => self.normal_number(deviation, draw),
        };
        let place = number.wrapping_add(first_number) % self.numbers;
        (place / NUMBERS_OF_FILE) as usize
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
            sum += u64::from(draw.bits()) % (self.numbers + 1);
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

/// The sum of the first terms of a zipf law.
fn zeta(terms: u64, theta: f64) -> f64 {
    let mut sum = 0.0;
    for term in 1..=terms {
        sum += (1.0 / term as f64).powf(theta);
    }
    sum
}

/// A number from 0 to 1.
fn unit(draw: &mut Tausworthe) -> f64 {
    f64::from(draw.bits()) / f64::from(u32::MAX)
}
