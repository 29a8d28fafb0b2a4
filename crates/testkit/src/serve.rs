//! The right answer to GET and HEAD: conditions, ranges, sizes (RFC 9110, sections 13 and 14).

use crate::effect::Terms;
use crate::reply::Reply;
use crate::request::Received;
use crate::resource::Resource;
use std::ops::Range;

/// Answers `request` from `resource` as a correct origin does, on the given terms.
pub(crate) fn serve(request: &Received, resource: &Resource, terms: &Terms) -> Reply {
    let etag = terms.etag.as_ref().or(resource.etag.as_ref());
    let date = resource.last_modified.map(httpdate::fmt_http_date);
    let described = |status: u16| {
        let mut reply = Reply::new(status).header("accept-ranges", "bytes");
        if let Some(etag) = etag {
            reply = reply.header("etag", etag.clone());
        }
        if let Some(date) = &date {
            reply = reply.header("last-modified", date.clone());
        }
        reply
    };
    if precondition_failed(request, etag) {
        return described(412);
    }
    if not_modified(request, resource, etag) {
        return described(304);
    }
    let total = resource.body.len() as u64;
    let range = if terms.ignore_range || !if_range_holds(request, resource) {
        Asked::Whole
    } else {
        asked_range(request.header("range"), total)
    };
    match range {
        Asked::Whole => described(200)
            .header("content-type", resource.content_type.clone())
            .body(resource.body.clone()),
        Asked::Unsatisfiable => described(416).header("content-range", format!("bytes */{total}")),
        Asked::Part(mut part) => {
            if let Some(bytes_max) = terms.range_bytes_max {
                part.end = part.end.min(part.start + bytes_max.max(1));
            }
            let label = format!("bytes {}-{}/{total}", part.start, part.end - 1);
            // Both ends lie within the body, whose length is a usize.
            let body = resource.body.slice(part.start as usize..part.end as usize);
            described(206)
                .header("content-type", resource.content_type.clone())
                .header("content-range", label)
                .body(body)
        }
    }
}

fn precondition_failed(request: &Received, etag: Option<&String>) -> bool {
    request.header("if-match").is_some_and(|list| {
        let strong = etag.filter(|etag| !etag.starts_with("W/"));
        !strong.is_some_and(|etag| list.trim() == "*" || list.split(',').any(|e| e.trim() == etag))
    })
}

fn not_modified(request: &Received, resource: &Resource, etag: Option<&String>) -> bool {
    if let Some(list) = request.header("if-none-match") {
        let weak = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
        return list.trim() == "*"
            || etag.is_some_and(|etag| list.split(',').any(|tag| weak(tag) == weak(etag)));
    }
    let since =
        request.header("if-modified-since").and_then(|at| httpdate::parse_http_date(at).ok());
    matches!((since, resource.last_modified), (Some(since), Some(at)) if at <= since)
}

/// If-Range is compared with what the resource really has, never with what a fault makes the
/// origin say: a lying origin still sends the part.
fn if_range_holds(request: &Received, resource: &Resource) -> bool {
    let Some(value) = request.header("if-range") else { return true };
    if value.starts_with("W/") {
        return false;
    }
    if value.starts_with('"') {
        return resource.etag.as_deref() == Some(value);
    }
    let asked = httpdate::parse_http_date(value).ok();
    asked.is_some() && asked == resource.last_modified
}

#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Whole,
    Part(Range<u64>),
    Unsatisfiable,
}

/// One range is honoured; several, or none that can be read, mean the whole body.
fn asked_range(field: Option<&str>, total: u64) -> Asked {
    let Some(set) = field.and_then(|field| field.trim().strip_prefix("bytes=")) else {
        return Asked::Whole;
    };
    let Some((first, last)) = set.trim().split_once('-') else { return Asked::Whole };
    match (first.parse::<u64>(), last.parse::<u64>()) {
        (Ok(start), Ok(end)) if end < start => Asked::Whole,
        (Ok(start), _) if start >= total && (last.is_empty() || last.parse::<u64>().is_ok()) => {
            Asked::Unsatisfiable
        }
        (Ok(start), Ok(end)) => Asked::Part(start..end.saturating_add(1).min(total)),
        (Ok(start), Err(_)) if last.is_empty() => Asked::Part(start..total),
        (Err(_), Ok(suffix)) if first.is_empty() => {
            if suffix == 0 || total == 0 {
                Asked::Unsatisfiable
            } else {
                Asked::Part(total.saturating_sub(suffix)..total)
            }
        }
        _ => Asked::Whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_rfc_9110_section_14_says() {
        let cases = [
            (None, Asked::Whole),
            (Some("bytes=0-9"), Asked::Part(0..10)),
            (Some("bytes=90-200"), Asked::Part(90..100)),
            (Some("bytes=5-"), Asked::Part(5..100)),
            (Some("bytes=-7"), Asked::Part(93..100)),
            (Some("bytes=-700"), Asked::Part(0..100)),
            (Some("bytes=-0"), Asked::Unsatisfiable),
            (Some("bytes=100-"), Asked::Unsatisfiable),
            (Some("bytes=100-120"), Asked::Unsatisfiable),
            (Some("bytes=9-3"), Asked::Whole),
            (Some("bytes=0-1,5-6"), Asked::Whole),
            (Some("items=0-1"), Asked::Whole),
            (Some("bytes=x-"), Asked::Whole),
        ];
        for (field, expected) in cases {
            assert_eq!(asked_range(field, 100), expected, "{field:?}");
        }
    }

    fn get(headers: &[(&str, &str)]) -> Received {
        Received {
            method: "GET".into(),
            path: "/".into(),
            query: None,
            headers: headers.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect(),
            protocol: "HTTP/1.1",
            connection: 1,
        }
    }

    #[test]
    fn conditions_decide_between_200_206_304_and_412() {
        let resource = Resource::new("0123456789").etag("\"v1\"");
        let date = "Mon, 01 Jan 2024 00:00:00 GMT";
        let cases: &[(&[(&str, &str)], u16)] = &[
            (&[("if-none-match", "\"v1\"")], 304),
            (&[("if-none-match", "\"v0\", W/\"v1\"")], 304),
            (&[("if-none-match", "\"v2\"")], 200),
            (&[("if-modified-since", date)], 304),
            (&[("if-modified-since", "Sun, 31 Dec 2023 00:00:00 GMT")], 200),
            (&[("if-none-match", "\"v2\""), ("if-modified-since", date)], 200),
            (&[("if-match", "\"v2\"")], 412),
            (&[("if-match", "\"v1\"")], 200),
            (&[("range", "bytes=2-3"), ("if-range", "\"v1\"")], 206),
            (&[("range", "bytes=2-3"), ("if-range", "\"v2\"")], 200),
            (&[("range", "bytes=2-3"), ("if-range", "W/\"v1\"")], 200),
            (&[("range", "bytes=2-3"), ("if-range", date)], 206),
            (&[("range", "bytes=10-")], 416),
        ];
        for (headers, status) in cases {
            let reply = serve(&get(headers), &resource, &Terms::default());
            assert_eq!(reply.status, *status, "{headers:?}");
        }
    }
}
