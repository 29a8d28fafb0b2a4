//! Compact vectors (ALTREP), which `saveRDS()` writes as a class, a state and attributes since
//! format version 3.
//!
//! The classes of base R that can turn up in data: compact sequences (`1:n`), numbers not yet
//! turned into strings (`as.character(1:n)`), and wrappers that only remember whether a vector is
//! sorted. (R: `src/main/altclasses.c`.)

use super::{Object, Value, read::Reader};
use crate::cran::{Error, StringVector};

/// Reads a compact vector after its flag word and returns the vector it stands for.
pub(super) fn unfold(reader: &mut Reader<'_>) -> Result<Object, Error> {
    let description = reader.item()?;
    let state = reader.item()?;
    let attributes = named_elements(reader.item()?);
    let class = class_name(&description);
    let value = match class.as_str() {
        "compact_intseq" => integer_sequence(&state.value, reader),
        "compact_realseq" => real_sequence(&state.value, reader),
        "deferred_string" => deferred_strings(state.value),
        // A wrapper's state is the vector itself and two words about it.
        wrapper if wrapper.starts_with("wrap_") => first(state.value).map(|object| object.value),
        _ => None,
    };
    Ok(Object { value: value.ok_or(Error::BadCompactVector { class })?, attributes })
}

/// The class is the first element of the description, a symbol.
fn class_name(description: &Object) -> String {
    match &description.value {
        Value::List(elements) => match elements.first().map(|element| &element.value) {
            Some(Value::Symbol(name)) => name.clone(),
            _ => String::new(),
        },
        _ => String::new(),
    }
}

fn named_elements(list: Object) -> Vec<(String, Object)> {
    let names: Vec<String> = list
        .names()
        .map(|names| names.iter().map(|name| name.unwrap_or_default().to_owned()).collect())
        .unwrap_or_default();
    match list.value {
        Value::List(elements) => names.into_iter().zip(elements).collect(),
        _ => Vec::new(),
    }
}

fn first(list: Value) -> Option<Object> {
    match list {
        Value::List(elements) => elements.into_iter().next(),
        _ => None,
    }
}

/// A sequence's state: length, first value, increment.
fn sequence(state: &Value, reader: &mut Reader<'_>) -> Option<impl Iterator<Item = f64> + use<>> {
    let Value::Real(state) = state else { return None };
    let &[length, start, step] = state.as_slice() else { return None };
    let sane = length.fract() == 0.0 && length >= 0.0 && start.is_finite() && step.is_finite();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
    let length = reader.grant_elements(sane.then_some(length as usize)?)?;
    #[expect(clippy::cast_precision_loss, reason = "a length is far below 2^53")]
    Some((0..length).map(move |index| start + step * index as f64))
}

fn integer_sequence(state: &Value, reader: &mut Reader<'_>) -> Option<Value> {
    let values = sequence(state, reader)?.map(|value| {
        let in_range = value.fract() == 0.0 && value.abs() <= f64::from(i32::MAX);
        #[expect(clippy::cast_possible_truncation, reason = "checked above")]
        in_range.then_some(Some(value as i32))
    });
    Some(Value::Integer(values.collect::<Option<_>>()?))
}

fn real_sequence(state: &Value, reader: &mut Reader<'_>) -> Option<Value> {
    Some(Value::Real(sequence(state, reader)?.collect()))
}

/// `as.character()` not yet carried out; its state is the numbers and `options(scipen)`.
///
/// Only integers and whole numbers below 100,000 are turned into strings here: beyond that R
/// chooses between two notations, and nothing in a repository's files needs it.
fn deferred_strings(state: Value) -> Option<Value> {
    let numbers = first(state)?.value;
    let mut strings = StringVector::default();
    match numbers {
        Value::Integer(values) => {
            for value in values {
                strings.push(value.map(|value| value.to_string()).as_deref());
            }
        }
        Value::Real(values) => {
            for value in values {
                if value.fract() != 0.0 || value.abs() >= 100_000.0 {
                    return None;
                }
                // Adding zero turns -0 into 0, as R prints it.
                strings.push(Some(&(value + 0.0).to_string()));
            }
        }
        _ => return None,
    }
    Some(Value::Strings(strings))
}
