//! Words of commands that are shown to be pasted: for umount, fio and our own verbs alike. Runs nothing.

/// As a shell takes it for one word. What would act on a terminal is spelled out, as bash, ksh and zsh read it (`$'\x1b'`, POSIX.1-2024).
pub fn quoted(word: &str) -> String {
    let plain = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+:@%=,".contains(c));
    match () {
        () if plain => word.to_owned(),
        () if word.contains(char::is_control) => {
            let bytes = word.bytes().map(|byte| match byte {
                b'\'' | b'\\' => format!("\\{}", char::from(byte)),
                b' '..=b'~' => char::from(byte).to_string(),
                other => format!("\\x{other:02x}"),
            });
            format!("$'{}'", bytes.collect::<String>())
        }
        () => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_the_shell_are_quoted() {
        assert_eq!(
            ["/mnt/a-b", "a b", "it's", "$(x)", "", "größe"].map(quoted),
            ["/mnt/a-b", "'a b'", "'it'\\''s'", "'$(x)'", "''", "'größe'"]
        );
        assert_eq!(quoted("a\n\u{1b}[2Jit's\\ü"), "$'a\\x0a\\x1b[2Jit\\'s\\\\\\xc3\\xbc'");
    }
}
