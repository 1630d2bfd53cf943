//! Splits the text of a job file into sections and settings. Resolves comments, `include`,
//! `${VARIABLE}` and `$keyword`, and keeps the line of every setting. No INI crate reads this
//! dialect: keys without a value, line numbers across includes, arithmetic. Knows the form of
//! options, not their meaning.

use super::environment::{Environment, Keywords};
use super::translation::{JobFileError, Translated};
use crate::plan_file::quoted;
use crate::workload::WORKLOADS_MAX;
use diskproof_compat::fio_values::arithmetic;
use diskproof_compat::{JobOption, OptionsJob, fio_option};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The longest line that fio reads (`OPT_LEN_MAX`).
const LINE_BYTES_MAX: usize = 8192;
/// All text, with included files and the values of variables. People write and read job files.
const TEXT_BYTES_MAX: usize = 4 << 20;
/// Options of a section, including the global ones: fio has half as many.
const SETTINGS_MAX: usize = 1000;
/// Depth of nested includes.
const INCLUDES_DEEP: usize = 8;
/// Includes of one job file, at all depths.
const INCLUDES_MAX: usize = 256;

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceLine {
    file: Rc<str>,
    /// Line, from 1.
    pub line: usize,
    origin: TextOrigin,
}

/// Who chose the file that contains a line.
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
const INCLUDED: &str = "this line of an included file is invalid. Its text is not shown, because \
                        the file may be secret; copy the line into the job file to see the error";

/// The error of a section whose included options are each readable, but not together.
const INCLUDED_OPTIONS: &str = "this job is invalid with the options that it includes. They are \
                                not shown, because the file may be secret; copy them into the job \
                                file to see the error";

impl SourceLine {
    /// Whether it is no line of a file.
    pub(crate) fn is_on_command_line(&self) -> bool {
        self.line == 0
    }

    /// An error about a section of the job file itself.
    pub(crate) fn named_error(&self, section: &str, text: &'static str) -> JobFileError {
        self.located(format!("[{section}]: {text}"))
    }

    /// An error at this line that does not quote it.
    fn plain_error(&self, text: &'static str) -> JobFileError {
        self.located(text.to_owned())
    }

    /// An error at this line. Most texts quote the line, so an included line has its own text.
    pub(crate) fn error(&self, text: impl Into<String>) -> JobFileError {
        match self.origin {
            TextOrigin::JobFile => self.located(text.into()),
            TextOrigin::Include => self.plain_error(INCLUDED),
            TextOrigin::SectionWithInclude => self.plain_error(INCLUDED_OPTIONS),
        }
    }

    /// The same, about this text of the line.
    fn quoting(&self, line: &str, why: impl Display) -> JobFileError {
        self.error(format!("{}: {why}", quoted(line)))
    }

    fn located(&self, text: String) -> JobFileError {
        let (file, line) = (self.file.to_string(), self.line);
        JobFileError { file, line, text }
    }

    /// A setting on this line.
    fn setting(&self, option: JobOption, scope: Scope, part: usize) -> Rc<Setting> {
        Rc::new(Setting {
            option,
            source: self.clone(),
            scope,
            part,
        })
    }
}

/// A line `key=value` or `key`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The key, as written, and the text after the equals sign.
    pub option: JobOption,
    /// Its line.
    pub source: SourceLine,
    /// The kind of section that contains it.
    pub scope: Scope,
    /// Counts what fio reads at once: the sections of a file, and the options of the command line.
    pub part: usize,
}

impl Setting {
    /// An error about this setting, which it quotes.
    pub(crate) fn error(&self, text: impl Display) -> JobFileError {
        let JobOption { key, value } = &self.option;
        match value {
            Some(value) => self.source.quoting(&format!("{key}={value}"), text),
            None => self.source.quoting(key, text),
        }
    }
}

/// The kind of section that contains a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// A `[global]` section.
    Global,
    /// The job's own section.
    Own,
}

/// A job's section, with the settings of the global sections before it.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    /// The line of its name.
    pub source: SourceLine,
    /// The text between the brackets.
    pub name: String,
    /// All settings in order, the global ones first.
    pub settings: Vec<Rc<Setting>>,
}

/// Text with jobs.
#[derive(Debug, Clone)]
pub enum JobText<'a> {
    /// A job file.
    File {
        /// Its content.
        text: Cow<'a, str>,
        /// Its path.
        path: &'a Path,
    },
    /// Options of the command line.
    Options {
        /// Those of every job, also of the files behind.
        global: &'a [JobOption],
        /// The jobs.
        jobs: &'a [OptionsJob],
    },
}

/// The name of the command line in errors.
const COMMAND_LINE: &str = "fio";

/// Sections, and the options of every job.
#[derive(Debug, Default)]
pub(crate) struct ReadSections {
    /// The sections.
    pub sections: Vec<Section>,
    /// The options of all global sections.
    pub global: Vec<Rc<Setting>>,
    /// The error of the first environment variable that is not set.
    pub unset: Option<JobFileError>,
}

/// Reads the sections of all `texts`. As in fio, global options also apply to the texts behind.
pub(crate) fn read_sections(
    texts: &[JobText<'_>],
    environment: &dyn Environment,
) -> Translated<ReadSections> {
    let mut reader = Reader {
        environment,
        keywords: None,
        done: ReadSections::default(),
        open: None,
        parts: 0,
        bytes: 0,
        includes: 0,
        glued: None,
    };
    let mut first = Rc::from(COMMAND_LINE);
    for text in texts {
        match text {
            JobText::File { text, path } => {
                first = shown(path);
                // What an unset variable stands for may be the cause of another error.
                let read = reader.read(text, path, 0);
                read.map_err(|error| reader.done.unset.take().unwrap_or(error))?;
                reader.open = None;
            }
            JobText::Options { global, jobs } => reader.add_jobs(global, jobs)?,
        }
    }
    let empty = SourceLine {
        file: first,
        line: 1,
        origin: TextOrigin::JobFile,
    };
    let no_job = "the file has no job; add a section such as [reads] with rw=randread";
    if reader.done.sections.is_empty() {
        Err(reader.glued.unwrap_or_else(|| empty.error(no_job)))
    } else {
        Ok(reader.done)
    }
}

struct Reader<'a> {
    environment: &'a dyn Environment,
    keywords: Option<Keywords>,
    done: ReadSections,
    /// What lines belong to: a global section, or the last one.
    open: Option<Scope>,
    /// Parts that have begun ([`Setting::part`]).
    parts: usize,
    bytes: usize,
    includes: usize,
    /// The error of the first section that begins behind an option.
    glued: Option<JobFileError>,
}

impl Reader<'_> {
    /// Adds jobs of the command line. The shell has replaced its variables.
    fn add_jobs(&mut self, global: &[JobOption], jobs: &[OptionsJob]) -> Translated<()> {
        let source = SourceLine {
            file: Rc::from(COMMAND_LINE),
            line: 0,
            origin: TextOrigin::JobFile,
        };
        let options = jobs.iter().map(|job| job.options.len()).max().unwrap_or(0);
        if jobs.len() > WORKLOADS_MAX || global.len() + options > SETTINGS_MAX {
            return Err(source.error(format!(
                "the command line has more than {WORKLOADS_MAX} jobs or {SETTINGS_MAX} options"
            )));
        }
        for option in global {
            self.parts += 1;
            let setting = source.setting(option.clone(), Scope::Global, self.parts);
            self.done.global.push(setting);
        }
        for job in jobs {
            let name = JobOption {
                key: "name".to_owned(),
                value: Some(job.name.clone()),
            };
            let mut settings = self.done.global.clone();
            for option in std::iter::once(&name).chain(&job.options) {
                self.parts += 1;
                settings.push(source.setting(option.clone(), Scope::Own, self.parts));
            }
            self.done.sections.push(Section {
                source: source.clone(),
                name: job.name.clone(),
                settings,
            });
        }
        Ok(())
    }

    fn read(&mut self, text: &str, path: &Path, depth: usize) -> Translated<()> {
        let file = shown(path);
        let origin = match depth {
            0 => TextOrigin::JobFile,
            _ => TextOrigin::Include,
        };
        for (index, line) in text.lines().enumerate() {
            let source = SourceLine {
                file: Rc::clone(&file),
                line: index + 1,
                origin,
            };
            if line.len() > LINE_BYTES_MAX {
                let why = "bytes; is this a job file?";
                let why = format!("this line has more than {LINE_BYTES_MAX} {why}");
                return Err(source.quoting(line, why));
            }
            let line = without_comment(line);
            if line.is_empty() {
                continue;
            }
            self.count(line.len(), &source)?;
            let include = line.strip_prefix("include");
            match include.filter(|rest| rest.starts_with([' ', '\t', '='])) {
                Some(name) => self.include(name[1..].trim(), &source, path, depth)?,
                None if line.starts_with('[') && depth > 0 => {
                    return Err(source.plain_error(
                        "an included file cannot start a section. Move the section into the job \
                         file",
                    ));
                }
                None if line.starts_with('[') => self.begin(line, source)?,
                None => self.add(line, source)?,
            }
        }
        Ok(())
    }

    fn count(&mut self, bytes: usize, source: &SourceLine) -> Translated<()> {
        self.bytes += bytes;
        if self.bytes > TEXT_BYTES_MAX {
            Err(source.error("with its includes the file has more than 4 MiB of text; split it"))
        } else {
            Ok(())
        }
    }

    fn begin(&mut self, line: &str, source: SourceLine) -> Translated<()> {
        let name = line[1..].strip_suffix(']').map(str::trim);
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return Err(source.quoting(line, "a section is a name in brackets, such as [reads]"));
        };
        self.parts += 1;
        // As in fio, every name that begins with "global".
        if name.starts_with("global") {
            self.open = Some(Scope::Global);
        } else if self.done.sections.len() == WORKLOADS_MAX {
            return Err(source.error(format!(
                "the file has more than {WORKLOADS_MAX} jobs, the limit of a plan"
            )));
        } else {
            let has_include = |setting: &Rc<Setting>| setting.source.origin == TextOrigin::Include;
            let origin = if self.done.global.iter().any(has_include) {
                TextOrigin::SectionWithInclude
            } else {
                TextOrigin::JobFile
            };
            self.open = Some(Scope::Own);
            self.done.sections.push(Section {
                source: SourceLine { origin, ..source },
                name: name.to_owned(),
                settings: self.done.global.clone(),
            });
        }
        Ok(())
    }

    fn include(
        &mut self,
        name: &str,
        source: &SourceLine,
        includer: &Path,
        depth: usize,
    ) -> Translated<()> {
        self.includes += 1;
        if depth == INCLUDES_DEEP || self.includes > INCLUDES_MAX {
            return Err(source.plain_error(
                "includes are circular, more than 8 levels deep, or more than 256 in number",
            ));
        }
        if self.open.is_none() {
            return Err(source.error("include before the first section; move it into [global]"));
        }
        // As in fio: first relative to the current directory, then to the including file.
        let given = PathBuf::from(name);
        let sibling = includer.parent().unwrap_or(Path::new("")).join(name);
        let read = |path: PathBuf| Ok((self.environment.text(&path)?, path));
        let text: Result<(String, PathBuf), String> = read(given).or_else(|_| read(sibling));
        let (text, path) =
            text.map_err(|why| source.error(format!("include {}: {why}", quoted(name))))?;
        self.read(&text, &path, depth + 1)
    }

    fn add(&mut self, line: &str, source: SourceLine) -> Translated<()> {
        let line = self.without_variables(line, &source)?;
        let line = self.without_keywords(line, &source)?;
        let (key, value) = match line.split_once('=') {
            Some((key, value)) => (key.trim_end(), Some(value.trim().to_owned())),
            None => (line.as_str(), None),
        };
        if let Some((before, name)) = line.rsplit_once('[').filter(|_| line.ends_with(']')) {
            let name = quoted(name);
            let why = "a section begins on a line of its own; write";
            let error = source.quoting(&line, format!("{why} [{name} below {before}"));
            self.glued.get_or_insert(error);
        }
        let key = key.to_owned();
        let option = JobOption { key, value };
        let Some(scope) = self.open else {
            let why = "an option before the first section; put [global] above it";
            return Err(source.quoting(&line, why));
        };
        let ReadSections {
            sections, global, ..
        } = &mut self.done;
        let settings = match sections.last_mut().filter(|_| scope == Scope::Own) {
            Some(section) => {
                if source.origin == TextOrigin::Include {
                    section.source.origin = TextOrigin::SectionWithInclude;
                }
                &mut section.settings
            }
            None => global,
        };
        settings.push(source.setting(option, scope, self.parts));
        if settings.len() > SETTINGS_MAX {
            return Err(source.error(format!(
                "the job has more than {SETTINGS_MAX} options; is this a job file?"
            )));
        }
        Ok(())
    }

    /// Replaces `${NAME}` by the value in the environment. A value is not expanded again, so there
    /// is no recursion.
    fn without_variables(&mut self, line: &str, source: &SourceLine) -> Translated<String> {
        let (mut done, mut rest) = (String::new(), line);
        while let Some((before, name, behind)) = first_variable(rest) {
            rest = behind;
            let Some(value) = self.environment.variable(name) else {
                done.push_str(&format!("{before}${{{name}}}"));
                let what = format!("the environment variable {} is not set", quoted(name));
                let error = source.quoting(line, format!("{what}; set it before the command"));
                self.done.unset.get_or_insert(error);
                continue;
            };
            done.push_str(before);
            done.push_str(&value);
            if done.len() > LINE_BYTES_MAX {
                let most = format!("more than {LINE_BYTES_MAX} bytes");
                return Err(
                    source.quoting(line, format!("with its variables this line has {most}"))
                );
            }
        }
        self.count(done.len(), source)?;
        done.push_str(rest);
        Ok(done)
    }

    /// Replaces fio's keywords for the machine, and evaluates arithmetic with them.
    fn without_keywords(&mut self, line: String, source: &SourceLine) -> Translated<String> {
        if !line.contains('$') {
            return Ok(line);
        }
        let environment = self.environment;
        let keywords = self.keywords.get_or_insert_with(|| environment.keywords());
        let mut plain = line.clone();
        for (keyword, value) in keywords {
            plain = plain.replace(*keyword, &value.to_string());
        }
        match plain.split_once('=') {
            Some((key, sum)) if plain != line && sum.contains(['+', '-', '*', '/']) => {
                let value = arithmetic(sum.trim());
                let value = value.map_err(|why| source.quoting(&line, why))?;
                Ok(format!("{key}={value}"))
            }
            _ => Ok(plain),
        }
    }
}

/// Splits at the first `${NAME}`: the text before it, the name, the text after it.
fn first_variable(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once("${")?;
    let (name, behind) = rest.split_once('}')?;
    Some((before, name, behind))
}

/// The line without its comment and surrounding blanks. fio has no quotes: every `#` or `;` begins
/// a comment.
fn without_comment(line: &str) -> &str {
    line.split([';', '#']).next().unwrap_or_default().trim()
}

fn shown(path: &Path) -> Rc<str> {
    path.display().to_string().into()
}

/// The settings of a section by name; of several with one name, the last. (Several `filename` add
/// up; their reader goes through all settings.)
pub(crate) fn last_by_name(settings: &[Rc<Setting>]) -> BTreeMap<&'static str, &Setting> {
    let settings = settings.iter().map(Rc::as_ref);
    let named = settings.filter_map(|one| Some((fio_option(&one.option.key)?.name(), one)));
    named.collect()
}
