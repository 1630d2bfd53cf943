//! JSON laid out as fio does it: keys in order, floats with six digits.

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Json {
    Whole(u64),
    Float(f64),
    Text(String),
    Object(JsonObject),
    Array(Vec<Json>),
}

/// Keys and values in order.
pub(super) type JsonObject = Vec<(String, Json)>;

impl From<u64> for Json {
    fn from(value: u64) -> Self {
        Self::Whole(value)
    }
}

impl From<f64> for Json {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<&str> for Json {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

/// An object of these pairs.
pub(super) fn object<'a>(pairs: impl IntoIterator<Item = (&'a str, Json)>) -> Json {
    let owned = |(key, value): (&str, Json)| (key.to_owned(), value);
    Json::Object(pairs.into_iter().map(owned).collect())
}

impl Json {
    /// The text, without a line break at its end.
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, 0);
        out
    }

    fn write(&self, out: &mut String, depth: usize) {
        let inner = "  ".repeat(depth + 1);
        let outer = "  ".repeat(depth);
        match self {
            Self::Whole(value) => out.push_str(&value.to_string()),
            Self::Float(value) => {
                let value = if value.is_finite() { *value } else { 0.0 };
                out.push_str(&format!("{value:.6}"));
            }
            Self::Text(text) => out.push_str(&quoted(text)),
            Self::Object(pairs) => {
                out.push_str("{\n");
                for (index, (key, value)) in pairs.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ",\n" };
                    out.push_str(&format!("{comma}{inner}{} : ", quoted(key)));
                    value.write(out, depth + 1);
                }
                out.push_str(&format!("\n{outer}}}"));
            }
            Self::Array(values) => {
                out.push_str("[\n");
                for (index, value) in values.iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { ",\n" });
                    out.push_str(&inner);
                    value.write(out, depth + 1);
                }
                out.push_str(&format!("\n{outer}]"));
            }
        }
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            letter if u32::from(letter) < 32 => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(letter)));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}
