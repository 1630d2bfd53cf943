//! Pages for terminals that show ASCII only: every sign is replaced by one of the same width, so
//! that tables and graphs stay aligned.

/// The page in ASCII. Signs without an equivalent become `?`.
pub fn transliterate(page: &str) -> String {
    page.chars()
        .map(|c| if c.is_ascii() { c } else { ascii_equivalent(c) })
        .collect()
}

/// The ASCII character for a sign: the most similar one, or for bars and shades one of about the
/// same blackness.
fn ascii_equivalent(c: char) -> char {
    match c {
        '–' | '—' | '─' | '−' | '⠒' => '-',
        '·' | '…' => '.',
        'µ' | 'μ' => 'u',
        '±' => '~',
        '×' => 'x',
        '≤' => '<',
        '≥' => '>',
        '│' => '|',
        '┤' | '├' | '└' | '┴' => '+',
        '•' => 'o',
        '→' => '>',
        '’' | '‘' => '\'',
        '“' | '”' => '"',
        '\u{a0}' => ' ',
        '\u{2800}' => ' ',
        '\u{2801}'..='\u{28ff}' => '*',
        '▁' => '_',
        '▂' => '.',
        '▃' => ':',
        '▄' => '-',
        '▅' => '=',
        '▆' => '+',
        '▇' => '%',
        '█' => '#',
        '▏' | '▎' | '▍' | '▌' => '-',
        '▋' | '▊' | '▉' => '=',
        '░' | '▒' => ':',
        '▓' => '%',
        '▲' | '△' => '^',
        '▼' | '▽' => 'v',
        '≠' => '!',
        '✓' => '+',
        '✗' | '✕' => 'x',
        '●' => '*',
        '○' => 'o',
        '²' => '2',
        '°' => 'o',
        _ => '?',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_of_verdicts_stay_apart() {
        assert_eq!(transliterate("✓ a ✗ b ? c 35 °C"), "+ a x b ? c 35 oC");
    }

    #[test]
    fn transliteration_keeps_columns() {
        let page = "8 µs ± 1 % · 2 × –\n 90 ┤⣀⡀ • ├ 5\n    └──┴─\n▁▂▃▄▅▆▇█ é";
        let ascii = "8 us ~ 1 % . 2 x -\n 90 +** o + 5\n    +--+-\n_.:-=+%# ?";
        assert_eq!(transliterate(page), ascii);
    }
}
