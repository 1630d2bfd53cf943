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

    /// The columns between two of them.
    pub(crate) fn gap(&self) -> usize {
        self.gap
    }

    /// The cells of a row, each as wide as its column and the gap behind it.
    pub(crate) fn cells(&self, row: &[String]) -> Vec<String> {
        let cells = row.iter().zip(&self.widths).zip(&self.aligns);
        let padded = cells.map(|((cell, width), align)| {
            let cell = clean(cell);
            let pad = " ".repeat(width.saturating_sub(columns(&cell)));
            let gap = " ".repeat(self.gap);
            match align {
                Align::Left => [cell, pad, gap].concat(),
                Align::Right => [pad, cell, gap].concat(),
            }
        });
        padded.collect()
    }

    /// One row as a line.
    pub(crate) fn line(&self, row: &[String]) -> String {
        let mut line = self.cells(row).concat();
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
