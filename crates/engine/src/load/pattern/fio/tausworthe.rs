//! Generates the random numbers of fio, by L'Ecuyer's combined Tausworthe generators of 32 bits
//! ("Maximally Equidistributed Combined Tausworthe Generators", Mathematics of Computation 65,
//! 1996) and of 64 bits ("Tables of Maximally Equidistributed Combined LFSR Generators",
//! Mathematics of Computation 68, 1999).

/// The multiplier that spreads a seed over the components of 32 bits, as in fio.
const SPREAD_32: u32 = 69069;
/// The one of those of 64 bits.
const SPREAD_64: u64 = 6_906_969_069;
/// Where the spreading begins, as in fio.
const SPREAD_START: u32 = 53;
/// The numbers that fio drops after it has set the components.
const DROPPED: u32 = 6;

/// The way of a component from a state to the next one, as shifts.
#[derive(Debug, Clone, Copy)]
struct ComponentLaw {
    /// The low bits of the state that do not go on.
    lost_bits: u32,
    kept_shift: u32,
    mixed_shift: u32,
    new_shift: u32,
    /// fio sets no state below this; the papers forbid some of them.
    least: u32,
}

/// The components of 32 bits.
const LAWS_32: [ComponentLaw; 3] = [
    component(1, 12, 13, 19, 1),
    component(3, 4, 2, 25, 7),
    component(4, 17, 3, 11, 15),
];

/// The components of 64 bits.
const LAWS_64: [ComponentLaw; 5] = [
    component(1, 10, 1, 53, 1),
    component(9, 5, 24, 50, 7),
    component(12, 29, 3, 23, 15),
    component(17, 23, 5, 24, 33),
    component(23, 8, 3, 33, 49),
];

const fn component(
    lost_bits: u32,
    kept_shift: u32,
    mixed_shift: u32,
    new_shift: u32,
    least: u32,
) -> ComponentLaw {
    ComponentLaw {
        lost_bits,
        kept_shift,
        mixed_shift,
        new_shift,
        least,
    }
}

/// A generator: the states of its components.
#[derive(Debug, Clone, Copy)]
pub(super) enum Tausworthe {
    Bits32([u32; LAWS_32.len()]),
    Bits64([u64; LAWS_64.len()]),
}

impl Tausworthe {
    /// The generator of 32 bits of a seed.
    pub(super) fn new(seed: u32) -> Self {
        let mut state = SPREAD_START;
        Self::Bits32(LAWS_32.map(|law| {
            state = state.wrapping_mul(SPREAD_32) ^ seed;
            if state < law.least {
                state += law.least;
            }
            state
        }))
        .begun()
    }

    /// The generator of 64 bits of a seed.
    pub(super) fn wide(seed: u64) -> Self {
        let mut state = u64::from(SPREAD_START);
        Self::Bits64(LAWS_64.map(|law| {
            state = state.wrapping_mul(SPREAD_64) ^ seed;
            if state < u64::from(law.least) {
                state += u64::from(law.least);
            }
            state
        }))
        .begun()
    }

    fn begun(mut self) -> Self {
        for _ in 0..DROPPED {
            self.bits();
        }
        self
    }

    /// The next random bits, up to [`Self::largest`].
    pub(super) fn bits(&mut self) -> u64 {
        match self {
            Self::Bits32(states) => {
                let mut bits = 0;
                for (state, law) in states.iter_mut().zip(LAWS_32) {
                    let new = ((*state << law.mixed_shift) ^ *state) >> law.new_shift;
                    let kept = *state & (u32::MAX << law.lost_bits);
                    *state = (kept << law.kept_shift) ^ new;
                    bits ^= *state;
                }
                u64::from(bits)
            }
            Self::Bits64(states) => {
                let mut bits = 0;
                for (state, law) in states.iter_mut().zip(LAWS_64) {
                    let new = ((*state << law.mixed_shift) ^ *state) >> law.new_shift;
                    let kept = *state & (u64::MAX << law.lost_bits);
                    *state = (kept << law.kept_shift) ^ new;
                    bits ^= *state;
                }
                bits
            }
        }
    }

    /// The largest number of which all bits are random.
    pub(super) fn largest(&self) -> u64 {
        match self {
            Self::Bits32(_) => u64::from(u32::MAX),
            Self::Bits64(_) => u64::MAX,
        }
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        let numbers = self.largest() as f64 + 1.0;
        (end as f64 * (self.bits() as f64 / numbers)) as u64
    }

    /// A percentage, from 1 to 100.
    pub(super) fn percent(&mut self) -> u8 {
        1 + self.below(100) as u8
    }
}
