//! Character vectors and matrices in one allocation.
//!
//! CRAN's index has about 23,000 rows of some 18 columns, most of them short or missing. One
//! string per cell would be 400,000 allocations; here all text lies in one buffer and a cell is a
//! place in it.

use std::fmt;

/// Where a cell's text lies; `start == MISSING` is R's `NA_character_`.
#[derive(Clone, Copy)]
struct Span {
    start: usize,
    len: usize,
}

const MISSING: usize = usize::MAX;
const NA: Span = Span { start: MISSING, len: 0 };

/// R's `character`: strings that may be missing (`NA`).
#[derive(Clone, Default)]
pub struct StringVector {
    text: String,
    spans: Vec<Span>,
}

impl StringVector {
    /// An empty vector with room for `cells` strings.
    #[must_use]
    pub fn with_capacity(cells: usize) -> Self {
        Self { text: String::new(), spans: Vec::with_capacity(cells) }
    }

    /// Appends a string, or `None` for `NA`.
    pub fn push(&mut self, cell: Option<&str>) {
        let span = self.store(cell);
        self.spans.push(span);
    }

    /// The string at `index`; `None` when it is `NA` or beyond the end.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&str> {
        self.spans.get(index).and_then(|&span| self.text_at(span))
    }

    /// How many cells there are, `NA` included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are no cells.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// All cells in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Option<&str>> {
        self.spans.iter().map(|&span| self.text_at(span))
    }

    fn store(&mut self, cell: Option<&str>) -> Span {
        let Some(cell) = cell else { return NA };
        let span = Span { start: self.text.len(), len: cell.len() };
        self.text.push_str(cell);
        span
    }

    fn text_at(&self, span: Span) -> Option<&str> {
        (span.start != MISSING).then(|| &self.text[span.start..span.start + span.len])
    }
}

impl<'a> FromIterator<Option<&'a str>> for StringVector {
    fn from_iter<I: IntoIterator<Item = Option<&'a str>>>(cells: I) -> Self {
        let mut vector = Self::default();
        cells.into_iter().for_each(|cell| vector.push(cell));
        vector
    }
}

impl<'a> FromIterator<&'a str> for StringVector {
    fn from_iter<I: IntoIterator<Item = &'a str>>(cells: I) -> Self {
        cells.into_iter().map(Some).collect()
    }
}

impl PartialEq for StringVector {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for StringVector {}

impl fmt::Debug for StringVector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// R's character matrix with column names: what `read.dcf()` and `available.packages()` return.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StringMatrix {
    columns: Vec<String>,
    rows: usize,
    /// Column after column, as R stores a matrix.
    cells: StringVector,
}

impl StringMatrix {
    /// A matrix from its columns' names and its cells, column after column.
    ///
    /// Returns `None` unless `cells` holds `rows` cells for every column.
    #[must_use]
    pub fn from_columns(columns: Vec<String>, rows: usize, cells: StringVector) -> Option<Self> {
        (columns.len().checked_mul(rows)? == cells.len()).then_some(Self { columns, rows, cells })
    }

    /// Column names, in the order of the file.
    #[must_use]
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The position of a column.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    /// One cell by position; `None` when it is `NA` or outside the matrix.
    #[must_use]
    pub fn get(&self, row: usize, column: usize) -> Option<&str> {
        if row >= self.rows || column >= self.columns.len() {
            return None;
        }
        self.cells.get(column * self.rows + row)
    }

    /// One cell by column name; `None` when it is `NA` or there is no such row or column.
    #[must_use]
    pub fn field(&self, row: usize, column: &str) -> Option<&str> {
        self.get(row, self.column(column)?)
    }

    /// All cells, column after column.
    #[must_use]
    pub fn cells(&self) -> &StringVector {
        &self.cells
    }
}

/// Most distinct tags in a file of records. CRAN's index has 18, a `DESCRIPTION` rarely 40.
pub(super) const COLUMNS_MAX: usize = 1024;

/// Collects records of `tag: value` pairs into a matrix whose columns are the tags in order of
/// first appearance.
#[derive(Default)]
pub(super) struct MatrixBuilder {
    columns: Vec<String>,
    text: StringVector,
    /// For every record, the columns it has and where their text lies.
    records: Vec<Vec<(usize, Span)>>,
}

impl MatrixBuilder {
    pub(super) fn begin_record(&mut self) {
        self.records.push(Vec::new());
    }

    /// Sets a field of the record begun last; a later value for the same tag wins.
    ///
    /// Returns `false` when the tag would be column number [`COLUMNS_MAX`] or beyond.
    #[must_use]
    pub(super) fn set(&mut self, tag: &str, value: &str) -> bool {
        let column = self.column(tag);
        if column >= COLUMNS_MAX {
            return false;
        }
        let span = self.text.store(Some(value));
        let record = self.records.last_mut().expect("a record was begun");
        match record.iter_mut().find(|(known, _)| *known == column) {
            Some((_, old)) => *old = span,
            None => record.push((column, span)),
        }
        true
    }

    fn column(&mut self, tag: &str) -> usize {
        // Records mostly repeat the tags of the one before, so a short scan beats hashing.
        self.columns.iter().position(|column| column == tag).unwrap_or_else(|| {
            self.columns.push(tag.to_owned());
            self.columns.len() - 1
        })
    }

    /// The matrix; `None` if it would have more than `cells_max` cells (a hostile file can make
    /// a sparse matrix of a size far beyond its own).
    pub(super) fn finish(self, cells_max: usize) -> Option<StringMatrix> {
        let rows = self.records.len();
        let cells = self.columns.len().checked_mul(rows).filter(|&cells| cells <= cells_max)?;
        let mut spans = vec![NA; cells];
        for (row, record) in self.records.iter().enumerate() {
            for &(column, span) in record {
                spans[column * rows + row] = span;
            }
        }
        let cells = StringVector { text: self.text.text, spans };
        Some(StringMatrix { columns: self.columns, rows, cells })
    }
}
