//! Paths in few bytes, because a page has thousands of points: relative, in tenths of a unit, which
//! are finer than any screen shows.

/// Draws a path from point to point.
#[derive(Default)]
pub(super) struct Pen {
    path: String,
    /// Where it is, in tenths.
    at: (i64, i64),
    /// Whether numbers alone continue the path as a line.
    is_line: bool,
}

impl Pen {
    /// Goes to a point without drawing.
    pub(super) fn move_to(&mut self, point: (f64, f64)) {
        self.path.push('m');
        self.step(point);
        self.is_line = true;
    }

    /// Draws a line to a point.
    pub(super) fn line_to(&mut self, point: (f64, f64)) {
        let (x, y) = (tenths(point.0) - self.at.0, tenths(point.1) - self.at.1);
        match (x, y) {
            (_, 0) => self.stamp(&format!("h{}", number(x))),
            (0, _) => self.stamp(&format!("v{}", number(y))),
            _ => {
                if !self.is_line {
                    self.path.push('l');
                }
                self.step(point);
                self.is_line = true;
            }
        }
        self.at = (tenths(point.0), tenths(point.1));
    }

    /// Draws a line between two points.
    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.move_to(from);
        self.line_to(to);
    }

    /// Draws something that ends where it begins.
    pub(super) fn stamp(&mut self, outline: &str) {
        self.path.push_str(outline);
        self.is_line = false;
    }

    /// The path.
    pub(super) fn path(self) -> String {
        self.path
    }

    /// Writes the way to a point.
    fn step(&mut self, (x, y): (f64, f64)) {
        // Rounded positions, so that errors do not add up.
        let to = (tenths(x), tenths(y));
        for by in [to.0 - self.at.0, to.1 - self.at.1] {
            if by >= 0 && self.path.ends_with(|c: char| c.is_ascii_digit()) {
                self.path.push(' ');
            }
            self.path.push_str(&number(by));
        }
        self.at = to;
    }
}

fn tenths(value: f64) -> i64 {
    (value * 10.0).round() as i64
}

fn number(tenths: i64) -> String {
    let sign = if tenths < 0 { "-" } else { "" };
    match (tenths.unsigned_abs() / 10, tenths.unsigned_abs() % 10) {
        (whole, 0) => format!("{sign}{whole}"),
        (0, tenth) => format!("{sign}.{tenth}"),
        (whole, tenth) => format!("{sign}{whole}.{tenth}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_errors_do_not_add_up() {
        let mut pen = Pen::default();
        pen.move_to((76.0, 381.24));
        for point in [(92.26, 378.0), (92.28, 378.04), (92.0, 377.14)] {
            pen.line_to(point);
        }
        pen.stamp("h0");
        pen.line_to((0.0, 377.14));
        assert_eq!(pen.path(), "m76 381.2 16.3-3.2h0l-.3-.9h0h-92");
    }
}
