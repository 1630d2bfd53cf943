//! Finds the greatest common divisor of distances and sizes in bytes: a device that wraps displaces
//! its blocks by multiples of its real size.

/// The greatest common divisor of two numbers; the other one where one of them is 0.
pub(crate) fn greatest_common_divisor(one: u64, other: u64) -> u64 {
    let (mut divisor, mut remainder) = (one, other);
    while remainder > 0 {
        (divisor, remainder) = (remainder, divisor % remainder);
    }
    divisor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisor_is_the_greatest_common_one() {
        assert_eq!(greatest_common_divisor(12, 18), 6);
        assert_eq!(greatest_common_divisor(18, 12), 6);
        assert_eq!(greatest_common_divisor(7, 5), 1);
        assert_eq!(greatest_common_divisor(8, 4), 4);
    }

    /// The first distance is its own divisor: none was known before.
    #[test]
    fn zero_leaves_the_other_number() {
        assert_eq!(greatest_common_divisor(0, 9), 9);
        assert_eq!(greatest_common_divisor(9, 0), 9);
        assert_eq!(greatest_common_divisor(0, 0), 0);
    }
}
