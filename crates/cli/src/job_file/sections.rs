//! Splits the text of a job file into sections and settings. Resolves comments, `include`,
//! `${VARIABLE}` and `$keyword`, and keeps the line of every setting. No INI crate reads this
//! dialect: keys without a value, line numbers across includes, arithmetic.

use super::environment::{Environment, Keywords, PathKind};
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
/// The most text, with included files and the values of variables. People write and read job files.
const TEXT_BYTES_MAX: usize = 4 << 20;
/// The most options of a section, including the global ones: fio has half as many.
const SETTINGS_MAX: usize = 1000;
/// The greatest depth of nested includes, so that a circle ends. Chosen, not measured.
const INCLUDE_DEPTH_MAX: usize = 8;
/// The most includes of one job file, at all depths. Chosen, not measured.
const INCLUDES_MAX: usize = 256;

/// A line of a job file, or of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceLine {
    file: Rc<str>,
    /// The number of the line, from 1; 0 on the command line.
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
    /// True for an option of the command line, which is no line of a file.
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

    /// An error at this line that quotes this text of it.
    fn quoting(&self, line: &str, why: impl Display) -> JobFileError {
        self.error(format!("{}: {why}", quoted(line)))
    }

    fn located(&self, text: String) -> JobFileError {
        JobFileError {
            file: self.file.to_string(),
            line: self.line,
            text,
        }
    }

    /// A setting on this line.
    fn setting(&self, option: JobOption, scope: Scope, pass: usize) -> Rc<Setting> {
        Rc::new(Setting {
            option,
            source: self.clone(),
            scope,
            pass,
        })
    }
}

/// A line `key=value` or `key`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The key, as written, and the text after the equals sign.
    pub option: JobOption,
    /// The line that contains it.
    pub source: SourceLine,
    /// The kind of section that contains it.
    pub scope: Scope,
    /// The number of the pass in which fio reads the setting, from 1. One pass reads a section of a
    /// file, or one option of the command line.
    pub pass: usize,
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
    /// The number of its job file, from 0. The jobs of the command line belong to the first file.
    pub file: usize,
}

/// Text with jobs.
#[derive(Debug, Clone)]
pub enum JobText<'a> {
    /// A job file.
    File {
        /// The content of the file.
        text: Cow<'a, str>,
        /// The path of the file, which errors name and includes are relative to.
        path: &'a Path,
    },
    /// Options of the command line.
    Options {
        /// Those of every job, also of the first file after them.
        global: &'a [JobOption],
        /// The jobs of the command line, each with its options.
        jobs: &'a [OptionsJob],
    },
}

/// The name of the command line in errors.
const COMMAND_LINE: &str = "fio";

/// Sections, and the options of every job.
#[derive(Debug, Default)]
pub(crate) struct ReadSections {
    /// The sections of jobs, in order.
    pub sections: Vec<Section>,
    /// The options of all global sections of the last file.
    pub global: Vec<Rc<Setting>>,
    /// The error of the first environment variable that is not set.
    pub unset: Option<JobFileError>,
    /// The error of texts without any job.
    pub no_job: Option<JobFileError>,
    /// The errors of includes that name no file, each at the end of its section.
    pub missing_includes: Vec<JobFileError>,
}

/// Reads the sections of all `texts`. As in fio, global options of the command line apply to the
/// first file, and those of a file to no other.
pub(crate) fn read_sections(
    texts: &[JobText<'_>],
    environment: &dyn Environment,
) -> Translated<ReadSections> {
    let mut reader = Reader {
        environment,
        keywords: None,
        done: ReadSections::default(),
        open: None,
        passes: 0,
        bytes: 0,
        includes: 0,
        glued_section: None,
        lost_include: None,
        file: 0,
    };
    let mut is_behind_file = false;
    let mut last_file = Rc::from(COMMAND_LINE);
    for text in texts {
        match text {
            JobText::File { text, path } => {
                last_file = shown(path);
                if is_behind_file {
                    reader.begin_next_file();
                }
                is_behind_file = true;
                reader.lost_include = None;
                if let Err(error) = reader.read(text, path, 0) {
                    // What an unset variable stands for may be the cause of another error.
                    return Err(reader.done.unset.take().unwrap_or(error));
                }
                reader.open = None;
            }
            JobText::Options { global, jobs } => reader.add_jobs(global, jobs)?,
        }
    }
    if !reader.done.sections.is_empty() {
        return Ok(reader.done);
    }
    let first_line = SourceLine {
        file: last_file,
        line: 1,
        origin: TextOrigin::JobFile,
    };
    let missing =
        first_line.error("the file has no job; add a section such as [reads] with rw=randread");
    reader.done.no_job = Some(reader.glued_section.take().unwrap_or(missing));
    Ok(reader.done)
}

/// Reads texts line by line.
struct Reader<'a> {
    environment: &'a dyn Environment,
    /// fio's keywords, once one is needed.
    keywords: Option<Keywords>,
    done: ReadSections,
    /// The section that lines belong to: a global one, or that of the last job.
    open: Option<Scope>,
    /// Passes that have begun ([`Setting::pass`]).
    passes: usize,
    /// Bytes of text so far.
    bytes: usize,
    /// Includes so far.
    includes: usize,
    /// The error of the first section that begins after an option, on the same line.
    glued_section: Option<JobFileError>,
    /// The error of an include that names no file. As in fio, its section ends with it.
    lost_include: Option<JobFileError>,
    /// The number of the job file, from 0.
    file: usize,
}

impl Reader<'_> {
    /// Adds jobs of the command line. The shell has replaced its variables.
    fn add_jobs(&mut self, global: &[JobOption], jobs: &[OptionsJob]) -> Translated<()> {
        let source = SourceLine {
            file: Rc::from(COMMAND_LINE),
            line: 0,
            origin: TextOrigin::JobFile,
        };
        let most_options = jobs.iter().map(|job| job.options.len()).max().unwrap_or(0);
        if jobs.len() > WORKLOADS_MAX || global.len() + most_options > SETTINGS_MAX {
            return Err(source.error(format!(
                "the command line has more than {WORKLOADS_MAX} jobs or {SETTINGS_MAX} options"
            )));
        }
        for option in global {
            self.passes += 1;
            let setting = source.setting(option.clone(), Scope::Global, self.passes);
            self.done.global.push(setting);
        }
        for job in jobs {
            let name = JobOption {
                key: "name".to_owned(),
                value: Some(job.name.clone()),
            };
            let mut settings = self.done.global.clone();
            for option in std::iter::once(&name).chain(&job.options) {
                self.passes += 1;
                settings.push(source.setting(option.clone(), Scope::Own, self.passes));
            }
            self.done.sections.push(Section {
                source: source.clone(),
                name: job.name.clone(),
                settings,
                file: self.file,
            });
        }
        Ok(())
    }

    /// Begins a further job file, to which no global options apply but its own.
    fn begin_next_file(&mut self) {
        self.file += 1;
        self.done.global.clear();
    }

    /// Reads a file; `depth` is 0 for the job file itself.
    fn read(&mut self, text: &str, path: &Path, depth: usize) -> Translated<()> {
        let file = shown(path);
        let origin = if depth == 0 {
            TextOrigin::JobFile
        } else {
            TextOrigin::Include
        };
        for (index, line) in text.lines().enumerate() {
            let source = SourceLine {
                file: Rc::clone(&file),
                line: index + 1,
                origin,
            };
            if line.len() > LINE_BYTES_MAX {
                return Err(source.quoting(
                    line,
                    format!("this line has more than {LINE_BYTES_MAX} bytes; is this a job file?"),
                ));
            }
            let content = without_comment(line);
            if content.is_empty() {
                continue;
            }
            self.count_text(content.len(), &source)?;
            let begins_section = content.starts_with('[') && depth == 0;
            if let Some(lost) = self.lost_include.take()
                && !begins_section
            {
                return Err(lost);
            }
            if let Some(name) = included_name(content) {
                self.include(name, &source, path, depth)?;
            } else if !content.starts_with('[') {
                self.add_option(content, source)?;
            } else if depth == 0 {
                self.begin_section(content, source)?;
            } else {
                return Err(source.plain_error(
                    "an included file cannot start a section. Move the section into the job file",
                ));
            }
        }
        Ok(())
    }

    /// Adds to the bytes of text so far, and refuses too many.
    fn count_text(&mut self, bytes: usize, source: &SourceLine) -> Translated<()> {
        self.bytes += bytes;
        if self.bytes > TEXT_BYTES_MAX {
            Err(source.error("with its includes the file has more than 4 MiB of text; split it"))
        } else {
            Ok(())
        }
    }

    /// Begins the section that a line in brackets names.
    fn begin_section(&mut self, line: &str, source: SourceLine) -> Translated<()> {
        let name = match line[1..].strip_suffix(']').map(str::trim) {
            None | Some("") => {
                let why = "a section is a name in brackets, such as [reads]";
                return Err(source.quoting(line, why));
            }
            Some(name) => name,
        };
        self.passes += 1;
        // As in fio, every name that begins with "global".
        if name.starts_with("global") {
            self.open = Some(Scope::Global);
        } else if self.done.sections.len() == WORKLOADS_MAX {
            return Err(source.error(format!(
                "the file has more than {WORKLOADS_MAX} jobs, the limit of a plan"
            )));
        } else {
            let has_include = self
                .done
                .global
                .iter()
                .any(|setting| setting.source.origin == TextOrigin::Include);
            let origin = if has_include {
                TextOrigin::SectionWithInclude
            } else {
                TextOrigin::JobFile
            };
            self.open = Some(Scope::Own);
            self.done.sections.push(Section {
                source: SourceLine { origin, ..source },
                name: name.to_owned(),
                settings: self.done.global.clone(),
                file: self.file,
            });
        }
        Ok(())
    }

    /// Reads the file that an `include` of `includer` names.
    fn include(
        &mut self,
        name: &str,
        source: &SourceLine,
        includer: &Path,
        depth: usize,
    ) -> Translated<()> {
        self.includes += 1;
        if depth == INCLUDE_DEPTH_MAX || self.includes > INCLUDES_MAX {
            return Err(source.plain_error(
                "includes are circular, more than 8 levels deep, or more than 256 in number",
            ));
        }
        if self.open.is_none() {
            return Err(source.error("include before the first section; move it into [global]"));
        }
        // As in fio: first relative to the current directory, then to the including file.
        let mut path = PathBuf::from(name);
        if self.environment.path_kind(&path) == PathKind::Nothing {
            path = includer.parent().unwrap_or(Path::new("")).join(name);
        }
        if self.environment.path_kind(&path) == PathKind::Nothing {
            let missing = source.error(format!("include {}: no such file", quoted(name)));
            self.lost_include = Some(missing.clone());
            self.done.missing_includes.push(missing);
            return Ok(());
        }
        match self.environment.text(&path) {
            Ok(text) => self.read(&text, &path, depth + 1),
            Err(why) => Err(source.error(format!("include {}: {why}", quoted(name)))),
        }
    }

    /// Adds the option of a line to the section that is open.
    fn add_option(&mut self, line: &str, source: SourceLine) -> Translated<()> {
        let expanded = self.without_variables(line, &source)?;
        let line = self.without_keywords(&expanded, &source)?;
        if line.ends_with(']')
            && let Some((before, name)) = line.rsplit_once('[')
        {
            let why = format!(
                "a section begins on a line of its own; write [{} below {before}",
                quoted(name)
            );
            self.glued_section.get_or_insert(source.quoting(&line, why));
        }
        let Some(scope) = self.open else {
            let why = "an option before the first section; put [global] above it";
            return Err(source.quoting(&line, why));
        };
        let option = match line.split_once('=') {
            Some((key, value)) => JobOption {
                key: key.trim_end().to_owned(),
                value: Some(value.trim().to_owned()),
            },
            None => JobOption {
                key: line,
                value: None,
            },
        };
        let ReadSections {
            sections, global, ..
        } = &mut self.done;
        let settings = match sections.last_mut() {
            Some(section) if scope == Scope::Own => {
                if source.origin == TextOrigin::Include {
                    section.source.origin = TextOrigin::SectionWithInclude;
                }
                &mut section.settings
            }
            _ => global,
        };
        settings.push(source.setting(option, scope, self.passes));
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
        let mut expanded = String::new();
        let mut rest = line;
        while let Some(variable) = Variable::first_in(rest) {
            rest = variable.after;
            expanded.push_str(variable.before);
            let Some(value) = self.environment.variable(variable.name) else {
                expanded.push_str(&format!("${{{}}}", variable.name));
                let why = format!(
                    "the environment variable {} is not set; set it before the command",
                    quoted(variable.name)
                );
                self.done.unset.get_or_insert(source.quoting(line, why));
                continue;
            };
            expanded.push_str(&value);
            if expanded.len() > LINE_BYTES_MAX {
                let why =
                    format!("with its variables this line has more than {LINE_BYTES_MAX} bytes");
                return Err(source.quoting(line, why));
            }
        }
        self.count_text(expanded.len(), source)?;
        expanded.push_str(rest);
        Ok(expanded)
    }

    /// Replaces fio's keywords for the machine, and evaluates arithmetic with them.
    fn without_keywords(&mut self, line: &str, source: &SourceLine) -> Translated<String> {
        if !line.contains('$') {
            return Ok(line.to_owned());
        }
        let environment = self.environment;
        let keywords = self.keywords.get_or_insert_with(|| environment.keywords());
        let mut plain = line.to_owned();
        for (keyword, value) in keywords {
            plain = plain.replace(*keyword, &value.to_string());
        }
        match plain.split_once('=') {
            Some((key, sum)) if plain != line && sum.contains(['+', '-', '*', '/']) => {
                match arithmetic(sum.trim()) {
                    Ok(value) => Ok(format!("{key}={value}")),
                    Err(why) => Err(source.quoting(line, why)),
                }
            }
            _ => Ok(plain),
        }
    }
}

/// A variable `${NAME}` in a text.
struct Variable<'t> {
    /// The text before it.
    before: &'t str,
    name: &'t str,
    /// The text after it.
    after: &'t str,
}

impl<'t> Variable<'t> {
    /// The first variable of a text; `None` where it has none.
    fn first_in(text: &'t str) -> Option<Self> {
        let (before, rest) = text.split_once("${")?;
        let (name, after) = rest.split_once('}')?;
        Some(Self {
            before,
            name,
            after,
        })
    }
}

/// The name of the file that a line includes; `None` for other lines.
fn included_name(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("include")?;
    let name = rest.strip_prefix([' ', '\t', '='])?;
    Some(name.trim())
}

/// The line without its comment and surrounding blanks. fio has no quotes: every `#` or `;` begins
/// a comment.
fn without_comment(line: &str) -> &str {
    line.split([';', '#']).next().unwrap_or_default().trim()
}

/// A path as errors show it.
fn shown(path: &Path) -> Rc<str> {
    path.display().to_string().into()
}

/// The settings of a section by name; of several with one name, the last. (Several `filename` add
/// up; their reader goes through all settings.)
pub(crate) fn last_by_name(settings: &[Rc<Setting>]) -> BTreeMap<&'static str, &Setting> {
    let mut last: BTreeMap<&'static str, &Setting> = BTreeMap::new();
    for setting in settings {
        if let Some(option) = fio_option(&setting.option.key) {
            last.insert(option.name(), setting);
        }
    }
    last
}
