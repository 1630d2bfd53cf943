//! Parses numbers as fio does (parse.c and exp/ of fio 3.42): sizes where `k` is 1024 and `kib`
//! is 1000, times where a bare number is seconds, and expressions in parentheses. Refuses what fio
//! reads only in part, such as `1.5g` (1 byte) or `30sec` (30 µs): no author means that. Pure.

/// The largest number of bytes, or of microseconds: 2^53, which is 8 PiB or 285 years. Up to it a
/// `f64` has every whole number; a larger one in a job file is a mistake.
const NUMBER_MAX: f64 = 9_007_199_254_740_992.0;
/// The deepest nesting of parentheses, since the parser is recursive and its stack limited. Chosen,
/// not measured.
const NESTING_MAX: usize = 32;
/// Microseconds of a second: fio counts times in them.
const SECOND_US: f64 = 1e6;

/// The meaning of units: fio's `kb_base`, and the powers that its output shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Base {
    /// `k` is 1024 and `kib` 1000: fio's default, kept for old job files.
    #[default]
    Binary,
    /// `k` is 1000 and `kib` 1024.
    Decimal,
}

/// How the sizes and rates of a job are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NumberForm {
    /// The unit of bytes that comes first.
    pub(crate) base: Base,
    /// The most digits (`significant_figures`).
    pub(crate) digits: usize,
}

impl Default for NumberForm {
    fn default() -> Self {
        Self {
            base: Base::default(),
            digits: DIGITS_DEFAULT,
        }
    }
}

/// The digits of fio without `significant_figures`.
pub(crate) const DIGITS_DEFAULT: usize = 4;

/// A number of bytes, or a percentage of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// A number of bytes.
    Bytes(u64),
    /// Percent of the size of a file or device, from 1 to 100.
    Percent(u64),
}

impl Amount {
    /// No bytes.
    pub const ZERO: Self = Self::Bytes(0);

    /// The amount in bytes, for a target of `target_bytes`.
    pub fn bytes(self, target_bytes: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => (u128::from(target_bytes) * u128::from(percent) / 100) as u64,
        }
    }
}

/// Parses a size, or any whole number, with an optional unit of sizes. Units in parentheses have
/// fio's default base, also with `kb_base=1000`: the grammar of expressions knows no other
/// (exp/expression-parser.l).
pub fn bytes(text: &str, base: Base) -> Result<u64, String> {
    if text.starts_with('(') {
        let value = expression(text, |unit| size_unit(unit, Base::Binary))?;
        return whole(value, text);
    }
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let number = u64::from_str_radix(digits, 16).map_err(|_| no_number(text))?;
        return whole(number as f64, text);
    }
    let number = without_factors_of_one(text);
    let bytes = scaled(number, |unit| size_unit(unit, base)).ok_or_else(|| no_number(text))?;
    whole(bytes, text)
}

/// The first number of a sum such as `40+30`, as test suites write times: fio reads only that.
pub fn first_of_sum(text: &str) -> &str {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|one| one.is_ascii_digit());
    match text.split_once('+') {
        Some((first, rest)) if is_number(first) && rest.split('+').all(is_number) => first,
        _ => text,
    }
}

/// A number without factors of one behind it, as scripts write them (`128*$LOAD_FACTOR`). fio reads
/// the digits before the first factor, so any other factor would be a mistake of the author.
fn without_factors_of_one(text: &str) -> &str {
    let mut number = text;
    while let Some(rest) = number.strip_suffix("*1") {
        number = rest;
    }
    if number.bytes().all(|digit| digit.is_ascii_digit()) {
        number
    } else {
        text
    }
}

fn no_number(text: &str) -> String {
    format!("'{text}' is not a fio number; write one such as 64, 4k or 10g")
}

/// A number in plain digits times its unit.
fn scaled(text: &str, unit_of: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = &text[..text.len() - unit.len()];
    Some(digits.parse::<f64>().ok()? * unit_of(unit)?)
}

/// Parses a size or a percentage.
pub fn amount(text: &str, base: Base) -> Result<Amount, String> {
    // Templates double the sign, and fio looks only at the first one.
    match text.strip_suffix("%%").or(text.strip_suffix('%')) {
        Some(percent) => match bytes(percent, base)? {
            percent @ 1..=100 => Ok(Amount::Percent(percent)),
            _ => Err(format!("'{text}' is out of range; use 1% to 100%")),
        },
        None => bytes(text, base).map(Amount::Bytes),
    }
}

/// Parses a time, in nanoseconds; a bare number is seconds.
pub fn time_ns(text: &str) -> Result<u64, String> {
    if text.starts_with('(') {
        return nanoseconds(expression(text, time_unit_us)?, text);
    }
    let number = without_factors_of_one(first_of_sum(text));
    match scaled(number, time_unit_us) {
        Some(us) => nanoseconds(us, text),
        None => Err(format!(
            "'{text}' is not a fio time; write one such as 30, 30s, 5m or 500ms"
        )),
    }
}

/// Parses a time, in nanoseconds; a bare number is microseconds.
pub fn short_time_ns(text: &str) -> Result<u64, String> {
    if text.chars().any(char::is_alphabetic) {
        time_ns(text)
    } else {
        nanoseconds(expression(text, |_| None)?, text)
    }
}

/// A time in microseconds, which fio reads without their fraction, in nanoseconds.
fn nanoseconds(us: f64, text: &str) -> Result<u64, String> {
    Ok(whole(us, text)? * 1000)
}

/// Evaluates an expression of plain numbers, as `bc` does for fio: divisions drop the fraction.
pub fn arithmetic(text: &str) -> Result<u64, String> {
    whole(expression(text, |_| None)?, text)
}

/// The value of `text` without its fraction, as fio reads it; an error if it is negative or above
/// [`NUMBER_MAX`].
fn whole(value: f64, text: &str) -> Result<u64, String> {
    match value.trunc() {
        value if (0.0..=NUMBER_MAX).contains(&value) => Ok(value as u64),
        _ => Err(format!(
            "the value of '{text}' is {value}, which is negative or too large"
        )),
    }
}

/// As in fio, `ki` means the same as `k`; only `kib` has the other base.
fn size_unit(unit: &str, base: Base) -> Option<f64> {
    let lower = unit.to_ascii_lowercase();
    let power = match lower.chars().next() {
        None => return Some(1.0),
        Some('b') if lower.len() == 1 => return Some(1.0),
        Some(letter) => 1 + "kmgtp".find(letter)? as i32,
    };
    let (plain, other): (f64, f64) = match base {
        Base::Binary => (1024.0, 1000.0),
        Base::Decimal => (1000.0, 1024.0),
    };
    match &lower[1..] {
        "" | "b" | "i" => Some(plain.powi(power)),
        "ib" => Some(other.powi(power)),
        _ => None,
    }
}

fn time_unit_us(unit: &str) -> Option<f64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "" | "s" => SECOND_US,
        "us" | "usec" => 1.0,
        "ms" | "msec" => 1e3,
        "m" => 60.0 * SECOND_US,
        "h" => 3600.0 * SECOND_US,
        "d" => 86400.0 * SECOND_US,
        _ => return None,
    })
}

/// The factor of a unit inside an expression; that of no unit is for a value without any.
type UnitFactor = fn(&str) -> Option<f64>;

/// The value of an expression or of a part of it.
#[derive(Debug, Clone, Copy)]
struct ExpressionValue {
    number: f64,
    /// True if it was written without a point, or follows from such numbers: the quotient of two of
    /// them loses its fraction.
    is_whole: bool,
}

/// Evaluates an expression; times are in microseconds. The value may be negative, and of any size.
fn expression(text: &str, factor: UnitFactor) -> Result<f64, String> {
    let mut parser = Parser {
        text,
        rest: text,
        factor,
        nesting: 0,
        has_unit: false,
    };
    let value = parser.value(0)?;
    if !parser.rest.trim_start().is_empty() {
        return Err(parser.wrong());
    }
    let plain = factor("").filter(|_| !parser.has_unit);
    Ok(value.number * plain.unwrap_or(1.0))
}

/// Precedence in fio's grammar (exp/expression-parser.y): a unit binds less tightly than a product,
/// so `2*4k` is 8k and `8/2k` is 4k.
const UNIT_BINDS: u8 = 2;
/// A sign binds more tightly than everything else.
const SIGN_BINDS: u8 = 6;

/// A parser by precedence of operators ("precedence climbing").
struct Parser<'a> {
    /// The whole expression, for errors.
    text: &'a str,
    /// The part that was not read yet.
    rest: &'a str,
    factor: UnitFactor,
    /// The nesting of [`Parser::value`], which calls itself.
    nesting: usize,
    /// True once a unit was read. The factor of a value without any applies to the whole
    /// expression.
    has_unit: bool,
}

impl<'a> Parser<'a> {
    /// Takes the letters of a kind.
    fn take(&mut self, is_wanted: fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !is_wanted(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    /// The error of an expression that cannot be read.
    fn wrong(&self) -> String {
        format!(
            "'{}' is not an expression; write one such as (4 * 1024) or (2g / 3), with + - * / % \
             ^ and parentheses",
            self.text
        )
    }

    /// The next character that is no space; it stays unread.
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    /// Reads a value up to the first operator that binds less tightly than `least`.
    fn value(&mut self, least: u8) -> Result<ExpressionValue, String> {
        self.nesting += 1;
        if self.nesting > NESTING_MAX {
            return Err(self.wrong());
        }
        let mut left = self.operand()?;
        while let Some(next) = self.peek() {
            let (binds, binds_right) = match next {
                '+' | '-' => (1, 2),
                '*' | '/' => (3, 4),
                '^' => (4, 4),
                '%' => (5, 6),
                letter if letter.is_ascii_alphabetic() && UNIT_BINDS >= least => {
                    left = self.unit(left)?;
                    continue;
                }
                _ => break,
            };
            if binds < least {
                break;
            }
            self.rest = &self.rest[1..];
            let right = self.value(binds_right)?;
            left = combine(next, left, right).ok_or_else(|| self.wrong())?;
        }
        self.nesting -= 1;
        Ok(left)
    }

    /// Reads a number, a value in parentheses, or either with a sign.
    fn operand(&mut self) -> Result<ExpressionValue, String> {
        match self.peek() {
            Some('(') => {
                self.rest = &self.rest[1..];
                let value = self.value(0)?;
                self.peek();
                self.rest = self.rest.strip_prefix(')').ok_or_else(|| self.wrong())?;
                Ok(value)
            }
            Some('-') => {
                self.rest = &self.rest[1..];
                let value = self.value(SIGN_BINDS)?;
                Ok(ExpressionValue {
                    number: -value.number,
                    ..value
                })
            }
            _ => {
                let digits = self.take(|c| c.is_ascii_digit() || c == '.');
                let number = digits.parse::<f64>().map_err(|_| self.wrong())?;
                let is_whole = !digits.contains('.');
                Ok(ExpressionValue { number, is_whole })
            }
        }
    }

    fn unit(&mut self, value: ExpressionValue) -> Result<ExpressionValue, String> {
        let unit = self.take(|c| c.is_ascii_alphabetic());
        let factor = (self.factor)(unit).ok_or_else(|| self.wrong())?;
        self.has_unit = true;
        Ok(ExpressionValue {
            number: value.number * factor,
            ..value
        })
    }
}

/// Applies an operator; `None` for one that is not defined for these values, and for a result that
/// is not finite.
fn combine(sign: char, left: ExpressionValue, right: ExpressionValue) -> Option<ExpressionValue> {
    let is_whole = left.is_whole && right.is_whole;
    let (a, b) = (left.number, right.number);
    let number = match sign {
        '+' => a + b,
        '-' => a - b,
        '*' => a * b,
        '/' if is_whole => (a / b).trunc(),
        '/' => a / b,
        '%' if is_whole => a % b,
        '^' => a.powf(b),
        _ => return None,
    };
    // A division by zero is not finite.
    if number.is_finite() {
        Some(ExpressionValue { number, is_whole })
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(text: &str) -> Result<u64, String> {
        bytes(text, Base::Binary)
    }

    #[test]
    fn size_units_match_fio() {
        let cases = [
            ("64", 64),
            ("4k", 4096),
            ("4K", 4096),
            ("4kb", 4096),
            ("4kib", 4000),
            ("4Ki", 4096),
            ("1Mi", 1 << 20),
            ("45Gi", 45 << 30),
            ("4b", 4),
            ("100B", 100),
            ("10GiB", 10_000_000_000),
            ("1t", 1 << 40),
            ("0x1000", 4096),
            ("128*1", 128),
            ("128*1*1", 128),
        ];
        for (text, wanted) in cases {
            assert_eq!(size(text), Ok(wanted), "{text}");
        }
        let decimal = ["4k", "4ki", "4kib", "(4k)"].map(|text| bytes(text, Base::Decimal));
        assert_eq!(decimal, [Ok(4000), Ok(4000), Ok(4096), Ok(4096)]);
        let wrong =
            "k 1.5g -4k 4x 4kk 128*2 4k*1 *1 4bi 4e 0x 0xg 9999999999999999999 5*1024 4k,8k ١";
        for text in wrong.split(' ').chain([""]) {
            assert!(size(text).is_err(), "{text}");
        }
        for (text, wanted) in [
            ("10%", Some(Amount::Percent(10))),
            ("1g", Some(Amount::Bytes(1 << 30))),
            ("100%%", Some(Amount::Percent(100))),
            ("25%%", Some(Amount::Percent(25))),
            ("0%", None),
            ("101%", None),
            ("%", None),
        ] {
            assert_eq!(amount(text, Base::Binary).ok(), wanted, "{text}");
        }
        assert_eq!(Amount::Percent(33).bytes(100), 33);
    }

    /// Whether it is written with a unit, in hexadecimal or in parentheses.
    #[test]
    fn numbers_beyond_the_largest_are_errors_in_every_notation() {
        const LARGEST: u64 = 1 << 53;
        for text in ["8p", "9007199254740992", "0x20000000000000", "(8 * 1p)"] {
            assert_eq!(size(text), Ok(LARGEST), "{text}");
        }
        for text in [
            "5000p",
            "9p",
            "9007199254740994",
            "0x20000000000002",
            "(5000p)",
            "(8p + 2)",
        ] {
            assert!(size(text).is_err(), "{text}");
        }
        assert!(amount("5000p", Base::Binary).is_err());
        let times = [
            ("9007199254740992us", Some(LARGEST * 1000)),
            ("9007199254740994us", None),
            ("(9007199254740992us)", Some(LARGEST * 1000)),
            ("9007199255", None),
            ("(104250d)", None),
        ];
        for (text, wanted) in times {
            assert_eq!(time_ns(text).ok(), wanted, "{text}");
        }
        assert_eq!(short_time_ns("9007199254740992"), Ok(LARGEST * 1000));
        assert!(short_time_ns("9007199254740994").is_err());
    }

    #[test]
    fn bare_times_are_seconds() {
        const SECOND: u64 = 1_000_000_000;
        for (text, wanted) in [
            ("30", 30 * SECOND),
            ("30s", 30 * SECOND),
            ("5m", 300 * SECOND),
            ("500ms", SECOND / 2),
            ("7us", 7000),
            ("1H", 3600 * SECOND),
            ("(2*30)", 60 * SECOND),
            ("100*1", 100 * SECOND),
            // fio 3.33 runs for 40 s.
            ("40+30", 40 * SECOND),
            ("(2m)", 120 * SECOND),
            ("(500ms * 2)", SECOND),
        ] {
            assert_eq!(time_ns(text), Ok(wanted), "{text}");
        }
        let short = ["2000", "3ms", "1s"].map(short_time_ns);
        assert_eq!(short, [Ok(2_000_000), Ok(3_000_000), Ok(SECOND)]);
        for text in [
            "30sec", "5min", "", "s", "40+", "+40", "4+3s", "-1", "1.5s", "10 s 5",
        ] {
            assert!(time_ns(text).is_err(), "{text}");
        }
    }

    #[test]
    fn expression_precedence_matches_fio() {
        for (text, wanted) in [
            ("(4 * 1024)", 4096),
            ("(2*4k)", 8192),
            ("(8/2k)", 4096),
            ("(1+4k)", 4097),
            ("(7/2)", 3),
            ("(7.0/2*2)", 7),
            ("(2^10)", 1024),
            ("(17%5)", 2),
            ("((1g - 24m) / 2)", 524_288_000),
            ("(-3+5)", 2),
            ("(4kib)", 4000),
        ] {
            assert_eq!(size(text), Ok(wanted), "{text}");
        }
        for text in [
            "(",
            "()",
            "(1",
            "(1+)",
            "(1/0)",
            "(5%0)",
            "(1-2)",
            "(4x)",
            "(1) 2",
            &"(".repeat(100_000),
            "(9^99)",
            "(1..2)",
        ] {
            assert!(size(text).is_err(), "{text}");
        }
        assert_eq!(arithmetic("5*1024*1024*64/8"), Ok(41_943_040));
        assert_eq!(arithmetic("8*1024*4096"), Ok(33_554_432));
        assert!(arithmetic("5*1k").is_err());
    }
}
