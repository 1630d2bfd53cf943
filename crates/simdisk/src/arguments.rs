//! The command line of `simdisk`. Must not open anything.

use diskproof_model::units::parse_size;
use diskproof_simdisk::{Medium, Model, gallery, spec};
use std::ffi::OsString;
use std::path::PathBuf;

/// The text of `--help`.
pub(crate) const USAGE: &str = concat!(
    "simdisk --model NAME|key=value,… [--size 4GiB] --mount FILE [--backing FILE]\n",
    "Serves a simulated disk over FUSE as the regular file FILE until SIGTERM or SIGINT.\n",
    "Prints 'ready FILE' when it is mounted.\n",
    "kill -9 is a power cut: with --backing and cache=honest or lying, the backing file\n",
    "then holds what survived. Any other end empties an honest cache first.\n",
    "A backing file that exists must be empty or have the disk's size.\n",
    "A named disk has its own size unless --size is given.\n",
    "'simdisk --model help' lists names and keys."
);

/// The disk to serve.
#[derive(Debug, PartialEq)]
pub(crate) struct Arguments {
    pub model: Model,
    pub size_bytes: u64,
    pub mount_point: PathBuf,
    pub medium: Medium,
}

impl Arguments {
    /// Parses the arguments after the program's name. Paths may be any bytes.
    pub(crate) fn parse(arguments: &[OsString]) -> Result<Self, String> {
        let (mut model, mut size, mut mount, mut backing) = (None, None, None, None);
        for pair in arguments.chunks(2) {
            let [key, value] = pair else {
                let key = pair[0].display();
                return Err(format!("'{key}' needs a value\n{USAGE}"));
            };
            let slot = match key.to_str() {
                Some("--model") => &mut model,
                Some("--size") => &mut size,
                Some("--mount") => &mut mount,
                Some("--backing") => &mut backing,
                _ => return Err(format!("unknown argument '{}'\n{USAGE}", key.display())),
            };
            *slot = Some(value);
        }
        let model = utf8_text("--model", model)?.ok_or_else(|| missing("--model"))?;
        if model == "help" {
            return Err(help());
        }
        Ok(Self {
            model: spec::parse(model).map_err(|error| error.to_string())?,
            size_bytes: size_bytes(utf8_text("--size", size)?, model)?,
            mount_point: mount.ok_or_else(|| missing("--mount"))?.into(),
            medium: match backing {
                Some(path) => Medium::File(path.into()),
                None => Medium::Memory,
            },
        })
    }
}

/// The value of an argument that is no path; `None` where it is not given.
fn utf8_text<'a>(key: &str, value: Option<&'a OsString>) -> Result<Option<&'a str>, String> {
    let Some(value) = value else {
        return Ok(None);
    };
    match value.to_str() {
        Some(text) => Ok(Some(text)),
        None => Err(format!("{key} '{}' is no text\n{USAGE}", value.display())),
    }
}

fn missing(key: &str) -> String {
    format!("{key} is missing\n{USAGE}")
}

/// The size that is given, else that of the named disk.
fn size_bytes(given: Option<&str>, model: &str) -> Result<u64, String> {
    let name = match model.split_once(',') {
        Some((name, _)) => name,
        None => model,
    };
    let bytes = match (given, gallery::named(name)) {
        (Some(text), _) => parse_size(text).map_err(|error| error.to_string())?,
        (None, Some(named)) => named.size_bytes,
        (None, None) => return Err(missing("--size")),
    };
    if bytes == 0 {
        return Err("a disk of 0 bytes cannot be served; use a larger --size".to_owned());
    }
    Ok(bytes)
}

fn help() -> String {
    let names: Vec<String> = gallery::GALLERY
        .iter()
        .map(|n| format!("  {:24}{}", n.name, n.about))
        .collect();
    format!("the disks are\n{}\n{}", names.join("\n"), spec::HELP)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt as _;

    fn parse(line: &str) -> Result<Arguments, String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        Arguments::parse(&words)
    }

    #[test]
    fn paths_may_be_any_bytes() {
        let bytes = OsString::from_vec(vec![b'm', 0xff]);
        let mut words = ["--model", "ssd-sata", "--mount"]
            .map(OsString::from)
            .to_vec();
        words.push(bytes.clone());
        let arguments = Arguments::parse(&words).unwrap();
        assert_eq!(arguments.mount_point, PathBuf::from(bytes.clone()));
        words[1] = bytes;
        let error = Arguments::parse(&words).unwrap_err();
        assert!(
            error.starts_with("--model 'm\u{fffd}' is no text"),
            "{error}"
        );
    }

    #[test]
    fn named_model_has_its_own_size() {
        let arguments = parse("--model momentus-7200.4 --mount m").unwrap();
        assert_eq!(arguments.size_bytes, 320_000_000_000);
        assert_eq!(arguments.medium, Medium::Memory);
        let arguments = parse("--model iops=5 --size 4GiB --mount m --backing b").unwrap();
        assert_eq!(arguments.size_bytes, 4 << 30);
        assert_eq!(arguments.medium, Medium::File("b".into()));
    }

    #[test]
    fn arguments_error_names_missing_or_unknown_argument() {
        for (line, word) in [
            ("--mount m", "--model is missing"),
            ("--model iops=5 --mount m", "--size is missing"),
            ("--model ssd-sata", "--mount is missing"),
            ("--model ssd-sata --mount", "'--mount' needs a value"),
            ("--speed 5", "unknown argument '--speed'"),
            ("--model ssd-sata --mount m --size x", "'x' is not a size"),
            ("--model ssd-sata --mount m --size 0", "a disk of 0 bytes"),
            ("--model help", "laptop-5400"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(word), "{line}: {error}");
        }
    }
}
