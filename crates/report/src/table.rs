//! Tables of a terminal page: columns as wide as their widest cell, as far apart as the page
//! allows.

use crate::text::{clean, columns};

pub(crate) use diskproof_model::block::Align;

/// The largest and the smallest gap between two columns of a table.
const GAPS: [usize; 2] = [2, 1];

/// The columns of a table that fits its page.
pub(crate) struct Columns {
    aligns: Vec<Align>,
    widths: Vec<usize>,
    gap: usize,
}

impl Columns {
    /// Columns for these rows, heading included, within `width`; `None` if they do not fit.
    /// Every row has a cell per column.
    pub(crate) fn fit<'a>(
        aligns: &[Align],
        rows: impl IntoIterator<Item = &'a Vec<String>>,
        width: usize,
    ) -> Option<Self> {
        let mut widths = vec![0; aligns.len()];
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = columns(&clean(cell)).max(*width);
            }
        }
        let mut fitted = Self {
            aligns: aligns.to_vec(),
            widths,
            gap: 0,
        };
        for gap in GAPS {
            fitted.gap = gap;
            if fitted.total() <= width {
                return Some(fitted);
            }
        }
        None
    }

    /// The width of a row.
    pub(crate) fn total(&self) -> usize {
        self.widths.iter().sum::<usize>() + self.gap * self.widths.len().saturating_sub(1)
    }

    /// One row as a line.
    pub(crate) fn line(&self, row: &[String]) -> String {
        let mut line = String::new();
        for ((cell, width), align) in row.iter().zip(&self.widths).zip(&self.aligns) {
            let cell = clean(cell);
            let pad = " ".repeat(width.saturating_sub(columns(&cell)));
            match align {
                Align::Left => line.extend([cell.as_str(), &pad]),
                Align::Right => line.extend([pad.as_str(), &cell]),
            }
            line.push_str(&" ".repeat(self.gap));
        }
        line.truncate(line.trim_end().len());
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_by_visible_width() {
        let rows = [
            vec!["硬盘".to_owned(), "1".to_owned()],
            vec!["a".to_owned(), "1234".to_owned()],
        ];
        let lines = |width| {
            let table = Columns::fit(&[Align::Left, Align::Right], &rows, width)?;
            Some([table.line(&rows[0]), table.line(&rows[1])])
        };
        let [first, second] = lines(10).unwrap();
        assert_eq!((&*first, &*second), ("硬盘     1", "a     1234"));
        let [first, second] = lines(9).unwrap();
        assert_eq!((&*first, &*second), ("硬盘    1", "a    1234"));
        assert_eq!(lines(8), None);
    }
}
