//! The command line of `simdisk`. Must not open anything.

use diskproof_model::units::parse_size;
use diskproof_simdisk::{Medium, Model, gallery, spec};
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
    /// Parses the arguments after the program's name.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, String> {
        let (mut model, mut size, mut mount, mut backing) = (None, None, None, None);
        for pair in arguments.chunks(2) {
            let [key, value] = pair else {
                return Err(format!("'{}' needs a value\n{USAGE}", pair[0]));
            };
            let slot = match key.as_str() {
                "--model" => &mut model,
                "--size" => &mut size,
                "--mount" => &mut mount,
                "--backing" => &mut backing,
                _ => return Err(format!("unknown argument '{key}'\n{USAGE}")),
            };
            *slot = Some(value.as_str());
        }
        let model = model.ok_or_else(|| format!("--model is missing\n{USAGE}"))?;
        if model == "help" {
            return Err(help());
        }
        let natural_bytes = model
            .split(',')
            .next()
            .and_then(gallery::named)
            .map(|named| named.size_bytes);
        let size_bytes = match size {
            Some(text) => parse_size(text).map_err(|e| e.to_string())?,
            None => natural_bytes.ok_or_else(|| format!("--size is missing\n{USAGE}"))?,
        };
        if size_bytes == 0 {
            return Err("a disk of 0 bytes cannot be served; use a larger --size".to_owned());
        }
        Ok(Self {
            model: spec::parse(model).map_err(|e| e.to_string())?,
            size_bytes,
            mount_point: mount
                .ok_or_else(|| format!("--mount is missing\n{USAGE}"))?
                .into(),
            medium: backing.map_or(Medium::Memory, |path| Medium::File(path.into())),
        })
    }
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

    fn parse(line: &str) -> Result<Arguments, String> {
        Arguments::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
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
