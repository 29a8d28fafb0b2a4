//! The field `file` of a form (RFC 7578), taken out as it streams by.

use crate::reply::Failure;

/// Longest head of a part in bytes.
const HEAD_BYTES_MAX: usize = 8 * 1024;

/// The boundary of a form; `None` when this is another type, an error when it has no usable one.
pub(crate) fn boundary(content_type: &str) -> Option<Result<String, &'static str>> {
    let (kind, parameters) = content_type.split_once(';').unwrap_or((content_type, ""));
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let boundary = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches('"');
        name.trim().eq_ignore_ascii_case("boundary").then(|| value.to_owned())
    });
    // RFC 2046, section 5.1.1: 1 to 70 characters.
    let usable = boundary.filter(|boundary| (1..=70).contains(&boundary.len()));
    Some(usable.ok_or("a form needs a boundary of 1 to 70 characters"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first boundary, inside a part that is not asked for, or inside the one that is.
    Data {
        wanted: bool,
    },
    /// Just after a boundary: `--` ends the form, a line end starts a part.
    AfterBoundary,
    Head,
    End,
}

/// Reads a form piece by piece.
#[derive(Debug)]
pub(crate) struct Multipart {
    /// Line end, two dashes, boundary.
    delimiter: Vec<u8>,
    held: Vec<u8>,
    state: State,
    seen: bool,
}

impl Multipart {
    pub(crate) fn new(boundary: &str) -> Self {
        // The first boundary may stand at the very start, without a line end before it.
        let held = b"\r\n".to_vec();
        let delimiter = format!("\r\n--{boundary}").into_bytes();
        Self { delimiter, held, state: State::Data { wanted: false }, seen: false }
    }

    /// Whether the form ended and had the field.
    pub(crate) fn is_complete(&self) -> bool {
        self.state == State::End && self.seen
    }

    /// Takes a piece; the field's bytes go to `sink`, whose first error ends it.
    pub(crate) fn push<E>(
        &mut self,
        piece: &[u8],
        sink: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<Result<(), E>, Failure> {
        self.held.extend_from_slice(piece);
        loop {
            match self.state {
                State::Data { wanted } => {
                    let at = find(&self.held, &self.delimiter);
                    // What could be the beginning of a boundary waits for the next piece.
                    let keep = self.delimiter.len() - 1;
                    let end = at.unwrap_or_else(|| self.held.len().saturating_sub(keep));
                    if wanted
                        && end > 0
                        && let Err(error) = sink(&self.held[..end])
                    {
                        return Ok(Err(error));
                    }
                    self.held.drain(..end + at.map_or(0, |_| self.delimiter.len()));
                    if at.is_none() {
                        return Ok(Ok(()));
                    }
                    self.state = State::AfterBoundary;
                }
                State::AfterBoundary => match self.held.get(..2) {
                    None => return Ok(Ok(())),
                    Some(b"--") => self.state = State::End,
                    Some(b"\r\n") => self.state = State::Head,
                    Some(_) => return Err(Failure::bad_request("the form's boundary is broken")),
                },
                State::Head => {
                    // The line end before the head is kept, so that an empty head is found too.
                    let Some(end) = find(&self.held, b"\r\n\r\n") else {
                        if self.held.len() > HEAD_BYTES_MAX {
                            return Err(Failure::bad_request("the head of a part is too long"));
                        }
                        return Ok(Ok(()));
                    };
                    let wanted = is_file(&String::from_utf8_lossy(&self.held[..end]));
                    self.held.drain(..end + 4);
                    self.seen |= wanted;
                    self.state = State::Data { wanted };
                }
                State::End => {
                    self.held.clear();
                    return Ok(Ok(()));
                }
            }
        }
    }
}

fn is_file(head: &str) -> bool {
    head.lines().any(|line| {
        let Some((name, value)) = line.split_once(':') else { return false };
        name.eq_ignore_ascii_case("content-disposition")
            && value.split(';').any(|part| matches!(part.trim(), "name=\"file\"" | "name=file"))
    })
}

fn find(data: &[u8], pattern: &[u8]) -> Option<usize> {
    data.windows(pattern.len()).position(|window| window == pattern)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn read(form: &[u8], step: usize) -> (Vec<u8>, bool) {
        let mut data = Vec::new();
        let mut multipart = Multipart::new("XX");
        for piece in form.chunks(step) {
            let mut sink = |bytes: &[u8]| {
                data.extend_from_slice(bytes);
                Ok::<(), Infallible>(())
            };
            let Ok(()) = multipart.push(piece, &mut sink).unwrap();
        }
        (data, multipart.is_complete())
    }

    #[test]
    fn takes_the_field_in_any_pieces() {
        let form = b"--XX\r\nContent-Disposition: form-data; name=\"other\"\r\n\r\nno\r\n--XX\r\n\
            Content-Disposition: form-data; name=\"file\"; filename=\"x\"\r\n\
            Content-Type: application/octet-stream\r\n\r\n\r\n--X\r\n\r\nbody\r\n--XX--\r\n";
        for step in 1..form.len() {
            assert_eq!(read(form, step), (b"\r\n--X\r\n\r\nbody".to_vec(), true), "{step}");
        }
        for end in 0..form.len() - 4 {
            assert!(!read(&form[..end], 5).1, "{end}");
        }
    }

    #[test]
    fn finds_boundaries() {
        assert_eq!(boundary("application/octet-stream"), None);
        assert_eq!(boundary("multipart/form-data; boundary=\"a b\""), Some(Ok("a b".to_owned())));
        assert!(boundary("multipart/form-data").unwrap().is_err());
    }
}
