//! Advice and grades in words.

use diskproof_model::record::Advice;
use diskproof_model::verdict::Grade;

/// The value of a setting: `= 32`, `= 1.6 (1.4 to 3.1)`, `1.4 to 3.1`, `leave unchanged`.
pub(crate) fn advised_text(advice: &Advice) -> String {
    match (&advice.value, advice.range) {
        (Some(value), None) => format!("= {value}"),
        (Some(value), Some([low, high])) => format!("= {value} ({low} to {high})"),
        (None, Some([low, high])) => format!("{low} to {high}"),
        (None, None) => "leave unchanged".to_owned(),
    }
}

/// The word for a grade in a table.
pub(crate) fn grade_text(grade: Option<Grade>) -> &'static str {
    grade.map_or("not graded", Grade::as_str)
}
