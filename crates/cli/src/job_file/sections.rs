//! The text of a job file as sections and settings: comments, `include`, `${VARIABLE}` and
//! `$keyword` are gone, and every setting knows its line. A dialect of INI with keys without a
//! value, lines numbered across includes and arithmetic, which no crate reads. Knows no option of
//! fio, except its form.

use super::numbers::arithmetic;
use super::{Environment, JobFileError, MachineFacts, quoted};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The longest line, as fio reads them (`OPT_LEN_MAX`).
const LINE_BYTES_MAX: usize = 8192;
/// All text together, with what is included and what variables stand for: a job file is for people
/// to read.
const TEXT_BYTES_MAX: usize = 4 << 20;
/// Options of a section, those of its globals among them: twice as many as there are.
const SETTINGS_MAX: usize = 1000;
/// As many sections as a plan has workloads at most.
const SECTIONS_MAX: usize = 1440;
/// Files that include each other: deeper than anybody looks.
const INCLUDES_DEEP: usize = 8;
/// Includes altogether.
const INCLUDES_MAX: usize = 256;

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLine {
    file: Rc<str>,
    /// Line, from 1.
    pub line: usize,
    origin: TextOrigin,
}

/// Who chose the file that a line stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextOrigin {
    /// The user of the program: the job file itself.
    JobFile,
    /// The job file, by `include`. Under sudo this may be any file of the machine.
    Include,
    /// A section of the job file with options from an included file.
    SectionWithInclude,
}

/// The error of every line of an included file.
const INCLUDED: &str = "this line of an included file cannot be used. Its text is not shown, \
                        because the file may be secret; copy the line into the job file to see \
                        what is wrong";

/// The error of a section whose included options are each readable, but not together.
const INCLUDED_OPTIONS: &str = "this job cannot be used with the options that it includes. They \
                                are not shown, because the file may be secret; copy them into \
                                the job file to see what is wrong";

impl SourceLine {
    /// An error at this line that quotes nothing of it.
    fn plain_error(&self, text: &'static str) -> JobFileError {
        JobFileError {
            file: self.file.to_string(),
            line: self.line,
            text: text.to_owned(),
        }
    }

    /// An error at this line. Most texts quote the line, so an included line has a text of its own.
    pub fn error(&self, text: impl Into<String>) -> JobFileError {
        let text = match self.origin {
            TextOrigin::JobFile => text.into(),
            TextOrigin::Include => INCLUDED.to_owned(),
            TextOrigin::SectionWithInclude => INCLUDED_OPTIONS.to_owned(),
        };
        JobFileError {
            file: self.file.to_string(),
            line: self.line,
            text,
        }
    }
}

/// A line `key=value` or `key`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// As written.
    pub key: String,
    /// What stands behind the sign.
    pub value: Option<String>,
    /// Where.
    pub spot: SourceLine,
    /// Of which it is.
    pub scope: Scope,
}

impl Setting {
    /// What is wrong with it.
    pub fn error(&self, text: impl AsRef<str>) -> JobFileError {
        self.spot
            .error(format!("{}: {}", self.shown(), text.as_ref()))
    }

    /// As written, cut where it is long.
    pub fn shown(&self) -> String {
        quoted(
            &self
                .value
                .as_ref()
                .map_or_else(|| self.key.clone(), |value| format!("{}={value}", self.key)),
        )
    }
}

/// Where a setting stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// In a `[global]` section.
    Global,
    /// In the section of the job itself.
    Own,
}

/// A job's section, with the settings of the global ones before it.
#[derive(Debug, Clone)]
pub struct Section {
    /// Where its name stands.
    pub spot: SourceLine,
    /// Between the brackets.
    pub name: String,
    /// In order, the global ones first.
    pub settings: Vec<Rc<Setting>>,
}

/// Reads the sections of the job file at `path`.
pub fn read_sections(
    text: &str,
    path: &Path,
    surroundings: &dyn Environment,
) -> Result<Vec<Section>, JobFileError> {
    let mut reader = Reader {
        surroundings,
        machine: None,
        global: Vec::new(),
        sections: Vec::new(),
        open: Open::Nothing,
        bytes: 0,
        includes: 0,
    };
    reader.read(text, path, 0)?;
    reader.close();
    match reader.sections.is_empty() {
        true => Err(SourceLine {
            file: shown(path),
            line: 1,
            origin: TextOrigin::JobFile,
        }
        .error("there is no job in it: add a section such as [reads] with rw=randread")),
        false => Ok(reader.sections),
    }
}

/// The section that lines belong to.
#[derive(Debug)]
enum Open {
    Nothing,
    Global,
    FioJob(Section),
}

struct Reader<'a> {
    surroundings: &'a dyn Environment,
    machine: Option<MachineFacts>,
    global: Vec<Rc<Setting>>,
    sections: Vec<Section>,
    open: Open,
    bytes: usize,
    includes: usize,
}

impl Reader<'_> {
    fn read(&mut self, text: &str, path: &Path, depth: usize) -> Result<(), JobFileError> {
        let file = shown(path);
        let origin = if depth == 0 {
            TextOrigin::JobFile
        } else {
            TextOrigin::Include
        };
        for (index, line) in text.lines().enumerate() {
            let spot = SourceLine {
                file: Rc::clone(&file),
                line: index + 1,
                origin,
            };
            if line.len() > LINE_BYTES_MAX {
                return Err(spot.error(format!(
                    "{}: this line has more than {LINE_BYTES_MAX} bytes; is it another file?",
                    quoted(line)
                )));
            }
            let line = without_comment(line);
            if line.is_empty() {
                continue;
            }
            self.count(line.len(), &spot)?;
            match line
                .strip_prefix("include")
                .filter(|rest| rest.starts_with([' ', '\t', '=']))
            {
                Some(name) => self.include(name[1..].trim(), &spot, path, depth)?,
                None if line.starts_with('[') && depth > 0 => {
                    return Err(spot.plain_error(
                        "an included file cannot begin a section. Move the section into the job \
                         file",
                    ));
                }
                None if line.starts_with('[') => self.begin(line, spot)?,
                None => self.add(line, spot)?,
            }
        }
        Ok(())
    }

    fn count(&mut self, bytes: usize, spot: &SourceLine) -> Result<(), JobFileError> {
        self.bytes += bytes;
        if self.bytes > TEXT_BYTES_MAX {
            Err(spot.error("with all that is included it has more than 4 MiB of text; split it"))
        } else {
            Ok(())
        }
    }

    fn begin(&mut self, line: &str, spot: SourceLine) -> Result<(), JobFileError> {
        self.close();
        let Some(name) = line[1..]
            .strip_suffix(']')
            .map(str::trim)
            .filter(|name| !name.is_empty())
        else {
            return Err(spot.error(format!(
                "{}: a section is a name in brackets, such as [reads]",
                quoted(line)
            )));
        };
        // As fio has it: whatever begins with it.
        self.open = if name.starts_with("global") {
            Open::Global
        } else if self.sections.len() == SECTIONS_MAX {
            return Err(spot.error(format!(
                "there are more than {SECTIONS_MAX} jobs; a plan has at most so many"
            )));
        } else {
            let has_include = |setting: &Rc<Setting>| setting.spot.origin == TextOrigin::Include;
            let origin = match self.global.iter().any(has_include) {
                true => TextOrigin::SectionWithInclude,
                false => TextOrigin::JobFile,
            };
            Open::FioJob(Section {
                spot: SourceLine { origin, ..spot },
                name: name.to_owned(),
                settings: self.global.clone(),
            })
        };
        Ok(())
    }

    fn close(&mut self) {
        if let Open::FioJob(section) = std::mem::replace(&mut self.open, Open::Nothing) {
            self.sections.push(section);
        }
    }

    fn include(
        &mut self,
        name: &str,
        spot: &SourceLine,
        includer: &Path,
        depth: usize,
    ) -> Result<(), JobFileError> {
        self.includes += 1;
        if depth == INCLUDES_DEEP || self.includes > INCLUDES_MAX {
            return Err(spot.plain_error(
                "files include each other without end, more than 8 deep, or more than 256 times",
            ));
        }
        if matches!(self.open, Open::Nothing) {
            return Err(
                spot.error("include stands before the first section: move it behind [global]")
            );
        }
        // As fio: first as it stands, then beside the file that includes it.
        let beside = includer
            .parent()
            .map_or_else(|| PathBuf::from(name), |folder| folder.join(name));
        let text = self
            .surroundings
            .text(Path::new(name))
            .map(|text| (text, PathBuf::from(name)));
        let text = text.or_else(|_| {
            self.surroundings
                .text(&beside)
                .map(|text| (text, beside.clone()))
        });
        let (text, path) =
            text.map_err(|why| spot.error(format!("include {}: {why}", quoted(name))))?;
        self.read(&text, &path, depth + 1)
    }

    fn add(&mut self, line: &str, spot: SourceLine) -> Result<(), JobFileError> {
        let line = self.without_variables(line, &spot)?;
        let line = self.without_keywords(line, &spot)?;
        let (key, value) = match line.split_once('=') {
            Some((key, value)) => (key.trim_end(), Some(value.trim().to_owned())),
            None => (line.as_str(), None),
        };
        let setting = |scope| {
            Rc::new(Setting {
                key: key.to_owned(),
                value,
                spot: spot.clone(),
                scope,
            })
        };
        let settings = match &mut self.open {
            Open::Nothing => {
                return Err(spot.error(format!(
                    "{}: an option before the first section: put [global] above it",
                    quoted(&line)
                )));
            }
            Open::Global => {
                self.global.push(setting(Scope::Global));
                &self.global
            }
            Open::FioJob(section) => {
                if spot.origin == TextOrigin::Include {
                    section.spot.origin = TextOrigin::SectionWithInclude;
                }
                section.settings.push(setting(Scope::Own));
                &section.settings
            }
        };
        if settings.len() > SETTINGS_MAX {
            return Err(spot.error(format!(
                "these are more than {SETTINGS_MAX} options for one job; is it another file?"
            )));
        }
        Ok(())
    }

    /// `${NAME}` by the environment. What that holds is not looked through again, so nothing can go
    /// in circles.
    fn without_variables(&mut self, line: &str, spot: &SourceLine) -> Result<String, JobFileError> {
        let (mut done, mut rest) = (String::new(), line);
        while let Some((before, name, behind)) = first_variable(rest) {
            let Some(value) = self.surroundings.variable(name) else {
                return Err(spot.error(format!(
                    "{}: the environment has no {}: set it before the program",
                    quoted(line),
                    quoted(name)
                )));
            };
            done.push_str(before);
            done.push_str(&value);
            if done.len() > LINE_BYTES_MAX {
                return Err(spot.error(format!(
                    "{}: with its variables this line has more than {LINE_BYTES_MAX} bytes",
                    quoted(line)
                )));
            }
            rest = behind;
        }
        self.count(done.len(), spot)?;
        done.push_str(rest);
        Ok(done)
    }

    /// fio's keywords for the machine, and the sums that are made with them.
    fn without_keywords(
        &mut self,
        line: String,
        spot: &SourceLine,
    ) -> Result<String, JobFileError> {
        if !["$pagesize", "$mb_memory", "$ncpus"]
            .iter()
            .any(|keyword| line.contains(keyword))
        {
            return Ok(line);
        }
        let surroundings = self.surroundings;
        let machine = self.machine.get_or_insert_with(|| surroundings.machine());
        let keywords = [
            ("$pagesize", machine.page_bytes),
            ("$mb_memory", machine.memory_mib),
            ("$ncpus", machine.cpus),
        ];
        let plain = keywords
            .iter()
            .fold(line.clone(), |line, (keyword, value)| {
                line.replace(keyword, &value.to_string())
            });
        match plain.split_once('=') {
            Some((key, sum)) if sum.contains(['+', '-', '*', '/']) => {
                let value = arithmetic(sum.trim())
                    .map_err(|why| spot.error(format!("{}: {why}", quoted(&line))))?;
                Ok(format!("{key}={value}"))
            }
            _ => Ok(plain),
        }
    }
}

/// The first `${NAME}`: what is before, the name, what is behind.
fn first_variable(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once("${")?;
    let (name, behind) = rest.split_once('}')?;
    Some((before, name, behind))
}

/// Without blanks on both sides and without a comment. fio knows no quotes: a `#` or `;` begins a
/// comment wherever it stands.
fn without_comment(line: &str) -> &str {
    line.split([';', '#']).next().unwrap_or_default().trim()
}

fn shown(path: &Path) -> Rc<str> {
    path.display().to_string().into()
}

/// The settings of a section by name, the last of each; those of `filename` add up and are not told
/// apart here.
pub fn last_by_name(
    settings: &[Rc<Setting>],
    name: impl Fn(&str) -> &'static str,
) -> BTreeMap<&'static str, &Setting> {
    settings
        .iter()
        .map(|setting| (name(&setting.key), setting.as_ref()))
        .collect()
}
