//! Quotes the words of commands that are shown to be pasted, for umount, fio and our own verbs
//! alike, and splits such a command into its words again. Runs nothing.

/// Returns the word as a shell takes it for one word. What would act on a terminal is spelled out,
/// as bash, ksh and zsh read it (`$'\x1b'`, POSIX.1-2024).
pub fn quoted(word: &str) -> String {
    let plain = !word.is_empty()
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "/._-+:@%=,".contains(c));
    if plain {
        return word.to_owned();
    }
    if !word.contains(char::is_control) {
        return format!("'{}'", word.replace('\'', "'\\''"));
    }
    let bytes = word.bytes().map(|byte| match byte {
        b'\'' | b'\\' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).to_string(),
        other => format!("\\x{other:02x}"),
    });
    format!("$'{}'", bytes.collect::<String>())
}

/// The words of a line whose words were [`quoted`], as a shell passes them to the command, without
/// a comment at the end.
pub fn words(line: &str) -> Vec<String> {
    let mut bytes = line.bytes().peekable();
    let (mut words, mut word) = (Vec::new(), None::<Vec<u8>>);
    while let Some(byte) = bytes.next() {
        match byte {
            b' ' => words.extend(word.take()),
            b'#' if word.is_none() => break,
            b'\'' => word
                .get_or_insert_default()
                .extend(bytes.by_ref().take_while(|byte| *byte != b'\'')),
            b'\\' => word.get_or_insert_default().extend(bytes.next()),
            b'$' if bytes.peek() == Some(&b'\'') => {
                bytes.next();
                word.get_or_insert_default().extend(spelled_out(&mut bytes));
            }
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words
        .iter()
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

/// Decodes what stands between `$'` and `'`, with those escapes that [`quoted`] writes.
fn spelled_out(bytes: &mut impl Iterator<Item = u8>) -> Vec<u8> {
    let mut text = Vec::new();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\'' => break,
            b'\\' => match bytes.next() {
                Some(b'x') => {
                    let digits: Vec<u8> = bytes.by_ref().take(2).collect();
                    let byte = std::str::from_utf8(&digits)
                        .ok()
                        .and_then(|digits| u8::from_str_radix(digits, 16).ok());
                    text.extend(byte);
                }
                other => text.extend(other),
            },
            other => text.push(other),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn comment_is_skipped() {
        let fio = words("fio --name='a b' --bs=8192  # overwrites");
        assert_eq!(fio, ["fio", "--name=a b", "--bs=8192"]);
        assert_eq!(words("a#b '#' ''"), ["a#b", "#", ""]);
        assert_eq!(words("$'a\\x0a\\''  'it'\\''s'"), ["a\n'", "it's"]);
    }

    proptest! {
        #[test]
        fn words_read_back_as_they_were(
            all in prop::collection::vec(any::<String>(), 0..8),
            line in any::<String>(),
        ) {
            let quoted: Vec<String> = all.iter().map(|word| quoted(word)).collect();
            prop_assert_eq!(words(&quoted.join(" ")), all);
            // No line makes it panic.
            words(&line);
        }
    }

    #[test]
    fn words_for_the_shell_are_quoted() {
        assert_eq!(
            ["/mnt/a-b", "a b", "it's", "$(x)", "", "größe"].map(quoted),
            ["/mnt/a-b", "'a b'", "'it'\\''s'", "'$(x)'", "''", "'größe'"]
        );
        let strange = quoted("a\n\u{1b}[2Jit's\\ü");
        assert_eq!(strange, "$'a\\x0a\\x1b[2Jit\\'s\\\\\\xc3\\xbc'");
    }
}
