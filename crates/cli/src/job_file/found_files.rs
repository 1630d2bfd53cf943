//! Finds the files of a job in a directory (`opendir`): as in fio, each is one more name of the
//! job. Opens none of them.

use super::sections::{Scope, Section, Setting};
use super::translation::{Translated, Translation};
use diskproof_compat::JobOption;
use std::borrow::Cow;
use std::path::Path;
use std::rc::Rc;

/// The section with the names of the files that its `opendir` finds, in place of that. One without
/// the option stays as it is.
pub(crate) fn with_found_files<'a>(
    section: &'a Section,
    translation: &Translation<'_>,
) -> Translated<Cow<'a, Section>> {
    if !section.settings.iter().any(|setting| is_opendir(setting)) {
        return Ok(Cow::Borrowed(section));
    }
    let mut expanded = section.clone();
    expanded.settings.clear();
    for setting in &section.settings {
        if !is_opendir(setting) {
            expanded.settings.push(Rc::clone(setting));
        } else if let Some(names) = found_names(setting, section, translation)? {
            expanded.settings.push(Rc::new(Setting {
                option: JobOption {
                    key: "filename".to_owned(),
                    value: Some(names),
                },
                ..Setting::clone(setting)
            }));
        }
    }
    Ok(Cow::Owned(expanded))
}

/// True if the section has `opendir`, and no file was found for it: fio moves nothing then.
pub(crate) fn finds_no_file(section: &Section, with_found_files: &Section) -> bool {
    section.settings.iter().any(|setting| is_opendir(setting))
        && !with_found_files
            .settings
            .iter()
            .any(|setting| setting.option.key == "filename")
}

/// The files of a section with the names that its own `opendir` finds; `None` without the option.
/// As in fio, those of `filename` before it count.
pub(crate) fn opendir_files(section: &Section, with_found_files: &Section) -> Option<u64> {
    let mut own = section
        .settings
        .iter()
        .filter(|setting| setting.scope == Scope::Own);
    if !own.any(|setting| is_opendir(setting)) {
        return None;
    }
    let mut files = 0;
    for setting in &with_found_files.settings {
        if setting.option.key == "filename"
            && let Some(names) = &setting.option.value
        {
            files += names.replace("\\:", "").split(':').count() as u64;
        }
    }
    Some(files)
}

fn is_opendir(setting: &Setting) -> bool {
    setting.option.key == "opendir"
}

/// The names of the files in a directory, with colons between them; `None` without any.
fn found_names(
    setting: &Setting,
    section: &Section,
    translation: &Translation<'_>,
) -> Translated<Option<String>> {
    let directory = match setting.option.value.as_deref() {
        None | Some("") => return Err(setting.error("the value is missing")),
        Some(directory) => directory,
    };
    let found = translation.environment.files_below(Path::new(directory));
    let files = found.map_err(|why| setting.error(why))?;
    if files.is_empty() {
        return Ok(None);
    }
    if section
        .settings
        .iter()
        .any(|other| other.option.key == "directory")
    {
        return Err(setting.error(
            "fio puts the directory of the job before the names that opendir finds; remove one of \
             the two",
        ));
    }
    let mut names = Vec::new();
    for file in &files {
        let Some(name) = file.to_str() else {
            return Err(setting.error(format!("the name of {} is no text", file.display())));
        };
        if name.ends_with('\\') {
            let why = format!("the name of {} ends with a backslash", file.display());
            return Err(setting.error(why));
        }
        names.push(name.replace(':', "\\:"));
    }
    translation.add_found_files(files);
    Ok(Some(names.join(":")))
}
