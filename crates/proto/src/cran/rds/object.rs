//! R values that carry data.

use crate::cran::{Error, StringMatrix, StringVector};

/// An R value with its attributes.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// The data.
    pub value: Value,
    /// Attributes in the order written: `names`, `dim`, `dimnames`, `class`, `row.names`, ...
    pub attributes: Vec<(String, Self)>,
}

/// The vector types of R that repositories use.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// `NULL`.
    Null,
    /// `logical`; `None` is `NA`.
    Logical(Vec<Option<bool>>),
    /// `integer`; `None` is `NA`.
    Integer(Vec<Option<i32>>),
    /// `double`; `NA` is one of the NaNs.
    Real(Vec<f64>),
    /// `character`.
    Strings(StringVector),
    /// `raw`.
    Raw(Vec<u8>),
    /// `list`, and `pairlist` with its tags as `names`.
    List(Vec<Object>),
    /// A symbol; only ever inside descriptions of compact vectors and as a tag.
    Symbol(String),
}

impl From<Value> for Object {
    fn from(value: Value) -> Self {
        Self { value, attributes: Vec::new() }
    }
}

impl Object {
    /// `NULL`.
    #[must_use]
    pub fn null() -> Self {
        Value::Null.into()
    }

    /// A character vector.
    pub fn strings<'a>(cells: impl IntoIterator<Item = Option<&'a str>>) -> Self {
        Value::Strings(cells.into_iter().collect()).into()
    }

    /// The same value with one attribute more.
    #[must_use]
    pub fn with(mut self, name: &str, attribute: Self) -> Self {
        self.attributes.push((name.to_owned(), attribute));
        self
    }

    /// The attribute of that name.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&Value> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, object)| &object.value)
    }

    /// The `names` attribute.
    #[must_use]
    pub fn names(&self) -> Option<&StringVector> {
        self.attribute("names").and_then(Value::as_strings)
    }

    /// The element of a list that has this name.
    #[must_use]
    pub fn element(&self, name: &str) -> Option<&Self> {
        let Value::List(elements) = &self.value else { return None };
        let index = self.names()?.iter().position(|known| known == Some(name))?;
        elements.get(index)
    }

    /// A character matrix with column names, such as `PACKAGES.rds`; row names are dropped (R
    /// replaces them by the `Package` column on reading).
    ///
    /// # Errors
    /// [`Error::NotAMatrix`].
    pub fn into_string_matrix(self) -> Result<StringMatrix, Error> {
        let (rows, columns) = self.shape().ok_or(Error::NotAMatrix)?;
        let names = self.column_names();
        let Value::Strings(cells) = self.value else { return Err(Error::NotAMatrix) };
        // An empty matrix may lack column names, as read.dcf() of an empty file does.
        let names = match names {
            Some(names) if names.len() == columns => names,
            None if columns == 0 => Vec::new(),
            _ => return Err(Error::NotAMatrix),
        };
        StringMatrix::from_columns(names, rows, cells).ok_or(Error::NotAMatrix)
    }

    /// The `dim` attribute of a matrix: rows and columns.
    fn shape(&self) -> Option<(usize, usize)> {
        let Some(Value::Integer(dim)) = self.attribute("dim") else { return None };
        let &[Some(rows), Some(columns)] = dim.as_slice() else { return None };
        Some((usize::try_from(rows).ok()?, usize::try_from(columns).ok()?))
    }

    /// The second element of `dimnames`; `None` when it is missing or holds an `NA`.
    fn column_names(&self) -> Option<Vec<String>> {
        let Some(Value::List(names)) = self.attribute("dimnames") else { return None };
        let names = names.get(1)?.value.as_strings()?;
        names.iter().map(|name| name.map(str::to_owned)).collect()
    }
}

impl From<&StringMatrix> for Object {
    /// The matrix as R stores it, with the `Package` column as row names where there is one.
    fn from(matrix: &StringMatrix) -> Self {
        let int = |n: usize| Some(i32::try_from(n).unwrap_or(i32::MAX));
        let row_names = matrix.column("Package").map_or_else(Self::null, |column| {
            Self::strings((0..matrix.rows()).map(|row| matrix.get(row, column)))
        });
        let column_names = Self::strings(matrix.columns().iter().map(|name| Some(name.as_str())));
        let dim = Value::Integer(vec![int(matrix.rows()), int(matrix.columns().len())]);
        Self::from(Value::Strings(matrix.cells().clone()))
            .with("dim", dim.into())
            .with("dimnames", Value::List(vec![row_names, column_names]).into())
    }
}

impl Value {
    /// The character vector, if this is one.
    #[must_use]
    pub fn as_strings(&self) -> Option<&StringVector> {
        match self {
            Self::Strings(strings) => Some(strings),
            _ => None,
        }
    }
}
