//! R lists as typed requests, and values as R lists.

use trunkline_proto::cran::{
    Error as FormatError, StringVector,
    rds::{self, Object, Value},
};

/// A request that the R side should not have made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum RequestError {
    /// Not a serialized R value.
    #[error("the request cannot be read: {0}")]
    Format(#[from] FormatError),
    /// A field is missing or of another type.
    #[error("the request's field `{0}` is missing or of another type")]
    Field(&'static str),
    /// No such operation.
    #[error("there is no operation `{0}`")]
    Operation(String),
    /// A setting that makes no sense.
    #[error("{0}")]
    Settings(#[from] crate::settings::SettingsError),
}

/// A request: an R list with names.
pub(crate) struct Request(Object);

impl Request {
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, RequestError> {
        Ok(Self(rds::read(bytes)?))
    }

    /// A part of the request that is a list of its own.
    pub(crate) fn part(&self, name: &'static str) -> Result<Self, RequestError> {
        self.0.element(name).cloned().map(Self).ok_or(RequestError::Field(name))
    }

    pub(crate) fn strings(&self, name: &'static str) -> Result<&StringVector, RequestError> {
        self.value(name).and_then(Value::as_strings).ok_or(RequestError::Field(name))
    }

    /// Strings none of which may be `NA`.
    pub(crate) fn texts(&self, name: &'static str) -> Result<Vec<String>, RequestError> {
        let strings = self.strings(name)?.iter();
        let texts: Option<Vec<_>> = strings.map(|text| text.map(str::to_owned)).collect();
        texts.ok_or(RequestError::Field(name))
    }

    pub(crate) fn text(&self, name: &'static str) -> Result<String, RequestError> {
        self.optional_text(name).ok_or(RequestError::Field(name))
    }

    /// A string; `None` when it is missing, `NULL`, `NA` or empty.
    pub(crate) fn optional_text(&self, name: &'static str) -> Option<String> {
        let text = self.value(name)?.as_strings()?.get(0)?;
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// A character vector with names, as pairs; an absent one is empty.
    pub(crate) fn pairs(&self, name: &'static str) -> Vec<(String, String)> {
        let Some(object) = self.0.element(name) else { return Vec::new() };
        let (Some(values), Some(names)) = (object.value.as_strings(), object.names()) else {
            return Vec::new();
        };
        let pairs = names.iter().zip(values.iter());
        pairs.filter_map(|(name, value)| Some((name?.to_owned(), value?.to_owned()))).collect()
    }

    pub(crate) fn flag(&self, name: &'static str) -> Result<bool, RequestError> {
        match self.value(name) {
            Some(Value::Logical(flags)) => flags.first().copied().flatten(),
            _ => None,
        }
        .ok_or(RequestError::Field(name))
    }

    /// A finite number; `None` when it is missing or `NA`.
    pub(crate) fn number(&self, name: &'static str) -> Option<f64> {
        match self.value(name)? {
            Value::Real(numbers) => numbers.first().copied().filter(|number| number.is_finite()),
            Value::Integer(numbers) => numbers.first().copied().flatten().map(f64::from),
            _ => None,
        }
    }

    fn value(&self, name: &str) -> Option<&Value> {
        self.0.element(name).map(|object| &object.value)
    }
}

/// An R list with names.
pub(crate) fn list(elements: impl IntoIterator<Item = (&'static str, Object)>) -> Object {
    let (names, values): (Vec<_>, Vec<_>) = elements.into_iter().unzip();
    let names = Object::strings(names.into_iter().map(Some));
    Object::from(Value::List(values)).with("names", names)
}

/// A character vector.
pub(crate) fn strings<T: AsRef<str>>(values: impl IntoIterator<Item = Option<T>>) -> Object {
    let mut vector = StringVector::default();
    for value in values {
        vector.push(value.as_ref().map(AsRef::as_ref));
    }
    Value::Strings(vector).into()
}

/// An integer vector.
pub(crate) fn integers(values: impl IntoIterator<Item = Option<i32>>) -> Object {
    Value::Integer(values.into_iter().collect()).into()
}

/// A double vector of counts, which may exceed R's integers.
#[expect(clippy::cast_precision_loss, reason = "counts beyond 2^53 do not occur")]
pub(crate) fn counts(values: impl IntoIterator<Item = u64>) -> Object {
    Value::Real(values.into_iter().map(|value| value as f64).collect()).into()
}
