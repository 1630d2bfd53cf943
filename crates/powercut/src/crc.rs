//! CRC-32C (Castagnoli), as in iSCSI (RFC 3720, B.4): the checksum of sectors, files and frames.

/// The reflected polynomial.
const POLYNOMIAL: u32 = 0x82f6_3b78;

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut at = 0;
    while at < table.len() {
        let mut value = at as u32;
        let mut bit = 0;
        while bit < 8 {
            let carry = value & 1;
            value >>= 1;
            if carry != 0 {
                value ^= POLYNOMIAL;
            }
            bit += 1;
        }
        table[at] = value;
        at += 1;
    }
    table
}

/// The checksum of several parts in order.
pub(crate) fn crc32c(parts: &[&[u8]]) -> u32 {
    let mut value = u32::MAX;
    for byte in parts.iter().copied().flatten() {
        value = TABLE[usize::from(value as u8 ^ byte)] ^ (value >> 8);
    }
    !value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_has_the_values_of_rfc_3720() {
        assert_eq!(crc32c(&[b"123456789"]), 0xe306_9283);
        assert_eq!(crc32c(&[&[0; 32]]), 0x8a91_36aa);
        assert_eq!(crc32c(&[b"1234", b"", b"56789"]), 0xe306_9283);
    }
}
