//! `available.packages()`: the indexes of all repositories, read at once and merged.

use trunkline_cran::{
    Filter, Index, Platform,
    indexes::{IndexRequest, read_indexes},
};
use trunkline_proto::cran::{
    StringVector,
    rds::{Object, Value},
};
use trunkline_transfer::Engine;

use crate::message::{Request, RequestError, list, strings};

/// Reads `contrib_urls` and merges what could be had, with the fields asked for and `Repository`.
pub(crate) async fn perform(engine: &Engine, request: &Request) -> Result<Object, RequestError> {
    let contrib_urls = request.texts("contrib_urls")?;
    let fields = request.texts("fields")?;
    let filters: Vec<Filter> = request
        .texts("filters")?
        .iter()
        .map(|name| match name.as_str() {
            "R_version" => Ok(Filter::RVersion),
            "OS_type" => Ok(Filter::OsType),
            "subarch" => Ok(Filter::Subarch),
            "duplicates" => Ok(Filter::Duplicates),
            _ => Err(RequestError::Field("filters")),
        })
        .collect::<Result<_, _>>()?;
    let platform = Platform {
        r_version: request
            .text("r_version")?
            .parse()
            .map_err(|_| RequestError::Field("r_version"))?,
        os_type: request.text("os_type")?,
        subarch: request.optional_text("subarch").unwrap_or_default(),
    };
    let results = read_indexes(engine, &contrib_urls, &IndexRequest::default()).await;
    let errors: Vec<Option<String>> =
        results.iter().map(|result| result.as_ref().err().map(ToString::to_string)).collect();
    let index = Index::merge(results.into_iter().flatten(), &filters, &platform);
    Ok(list([("table", table(&index, &fields)), ("errors", strings(errors))]))
}

/// The character matrix R has: one column a field, then `Repository`; rows named by package.
fn table(index: &Index, fields: &[String]) -> Object {
    let int = |count: usize| Some(i32::try_from(count).unwrap_or(i32::MAX));
    let mut cells = StringVector::with_capacity(index.len() * (fields.len() + 1));
    for field in fields {
        for package in index.packages() {
            cells.push(package.field(field));
        }
    }
    for package in index.packages() {
        cells.push(Some(&package.repository()));
    }
    let rows = strings(index.packages().map(|package| Some(package.name())));
    let columns = fields.iter().map(String::as_str).chain(["Repository"]);
    let names = vec![rows, Object::strings(columns.map(Some))];
    Object::from(Value::Strings(cells))
        .with("dim", Value::Integer(vec![int(index.len()), int(fields.len() + 1)]).into())
        .with("dimnames", Value::List(names).into())
}
