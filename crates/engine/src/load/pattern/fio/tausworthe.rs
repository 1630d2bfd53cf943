//! Generates the random numbers of fio, by L'Ecuyer's combined Tausworthe generator of 32 bits
//! ("Maximally Equidistributed Combined Tausworthe Generators", Mathematics of Computation 65,
//! 1996).

/// As many numbers as a generator draws from.
const NUMBERS: f64 = 4_294_967_296.0;
/// The multiplier that spreads a seed over the components, as in fio.
const SPREAD: u32 = 69069;
/// Where the spreading begins, as in fio.
const SPREAD_START: u32 = 53;
/// The numbers that fio drops after it has set the components.
const DROPPED: u32 = 6;

/// The way of a component from a state to the next one, as shifts.
#[derive(Debug, Clone, Copy)]
struct ComponentLaw {
    /// The bits of the state that go on.
    kept: u32,
    kept_shift: u32,
    mixed_shift: u32,
    new_shift: u32,
    /// The paper forbids states below this.
    least: u32,
}

/// The components of the paper.
const LAWS: [ComponentLaw; 3] = [
    ComponentLaw {
        kept: !1,
        kept_shift: 12,
        mixed_shift: 13,
        new_shift: 19,
        least: 1,
    },
    ComponentLaw {
        kept: !7,
        kept_shift: 4,
        mixed_shift: 2,
        new_shift: 25,
        least: 7,
    },
    ComponentLaw {
        kept: !15,
        kept_shift: 17,
        mixed_shift: 3,
        new_shift: 11,
        least: 15,
    },
];

/// A generator.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tausworthe([u32; LAWS.len()]);

impl Tausworthe {
    /// The generator of a seed.
    pub(super) fn new(seed: u32) -> Self {
        let mut state = SPREAD_START;
        let states = LAWS.map(|law| {
            state = state.wrapping_mul(SPREAD) ^ seed;
            if state < law.least {
                state += law.least;
            }
            state
        });
        let mut generator = Self(states);
        for _ in 0..DROPPED {
            generator.bits();
        }
        generator
    }

    /// The next 32 random bits.
    pub(super) fn bits(&mut self) -> u32 {
        let mut bits = 0;
        for (state, law) in self.0.iter_mut().zip(LAWS) {
            let new = ((*state << law.mixed_shift) ^ *state) >> law.new_shift;
            *state = ((*state & law.kept) << law.kept_shift) ^ new;
            bits ^= *state;
        }
        bits
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        (end as f64 * (f64::from(self.bits()) / NUMBERS)) as u64
    }

    /// A percentage, from 1 to 100.
    pub(super) fn percent(&mut self) -> u8 {
        1 + self.below(100) as u8
    }
}
