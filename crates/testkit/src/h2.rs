//! HTTP/2 over the `h2` crate, with a tap on its frames for what that crate would not do.

use crate::connection::Attended;
use crate::fault::{ConnectionFault, Fault, StreamReset};
use crate::frame_tap::{EndBy, FrameTap, TapOrders, When};
use crate::log::{ConnectionEntry, RequestEntry};
use crate::reply::{Ending, Opening, Reply};
use crate::request::Received;
use crate::site::Site;
use crate::upload::{Cut, Intake, UploadBody};
use crate::wire::Duplex;
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::time::SystemTime;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// Windows large enough that uploads are not held up.
const WINDOW_BYTES: u32 = 1 << 20;
/// The largest list of request header fields.
const HEADER_LIST_BYTES_MAX: u32 = 256 << 10;

/// Serves streams until either side ends the connection.
pub(crate) async fn serve(io: impl Duplex + 'static, streams_max: u32, attended: Attended) {
    let orders = TapOrders::default();
    match attended.fault {
        ConnectionFault::GoAwayAfter(n) | ConnectionFault::LastResponse(n) => {
            orders.go_away_after(n);
        }
        ConnectionFault::CloseAfterResponses(n) => orders.close_after(n),
        _ => {}
    }
    let tap = FrameTap::new(io, orders.clone(), attended.reset.clone());
    let handshake = h2::server::Builder::new()
        .max_concurrent_streams(streams_max)
        .initial_window_size(WINDOW_BYTES)
        .initial_connection_window_size(4 * WINDOW_BYTES)
        .max_header_list_size(HEADER_LIST_BYTES_MAX)
        .handshake::<_, Bytes>(tap);
    let Ok(mut connection) = handshake.await else { return };
    let mut streams = JoinSet::new();
    while let Some(Ok((request, respond))) = connection.accept().await {
        let stream = Stream {
            site: attended.site.clone(),
            connection: attended.entry.clone(),
            orders: orders.clone(),
        };
        streams.spawn(stream.exchange(request, respond));
        while streams.try_join_next().is_some() {}
    }
}

struct Stream {
    site: Site,
    connection: Arc<ConnectionEntry>,
    orders: TapOrders,
}

impl Stream {
    async fn exchange(self, request: http::Request<RecvStream>, respond: SendResponse<Bytes>) {
        let (parts, body) = request.into_parts();
        let received = received(&parts, self.connection.id);
        let entry = self.connection.request(received.clone());
        let faults = self.site.scripts.faults_for(&received);
        let early = faults.iter().any(Fault::answers_early)
            || (received.expects_continue() && self.site.refusal(&received, &faults).is_some());
        let mut respond = respond;
        let body = if body.is_end_stream() || early {
            None
        } else {
            if received.expects_continue() && !faults.iter().any(Fault::ignores_expect) {
                let go_on = Response::builder().status(100).body(()).expect("a valid head");
                let _ = respond.send_informational(go_on);
            }
            match read_body(body, &faults).await {
                Ok(body) => {
                    entry.body_received(body.len, body.sha256.clone());
                    Some(body)
                }
                Err(BodyEnd::Client) => return,
                Err(BodyEnd::Script) => {
                    let id = respond.stream_id().as_u32();
                    self.orders.cut(id, When::StreamEnds, EndBy::Close);
                    return respond.send_reset(Reason::INTERNAL_ERROR);
                }
            }
        };
        let reply = self.site.answer(&received, &faults, body);
        // A stream or connection error has been seen by the client already.
        let _ = self.send(&received, &reply, respond, &entry).await;
    }

    async fn send(
        &self,
        request: &Received,
        reply: &Reply,
        mut respond: SendResponse<Bytes>,
        entry: &RequestEntry,
    ) -> Result<(), h2::Error> {
        if let Some(gate) = &reply.head_gate {
            gate.passed().await;
        }
        if !reply.head_delay.is_zero() {
            tokio::time::sleep(reply.head_delay).await;
        }
        let id = respond.stream_id().as_u32();
        if !self.open(reply, &mut respond).await {
            return Ok(());
        }
        let cut = self.order_ending(id, reply);
        for _ in 0..reply.interim {
            let hint = Response::builder().status(103).header("x-interim", "yes").body(());
            respond.send_informational(hint.expect("a valid head"))?;
        }
        let bodiless = request.is_head() || !reply.may_have_body();
        let stop = reply.bytes_before_ending();
        let whole = matches!(reply.ending, Ending::Whole | Ending::Close { .. });
        let ends_with_head = bodiless || (reply.body.is_empty() && whole);
        let mut stream = respond.send_response(head(reply), ends_with_head)?;
        entry.answered(reply.status);
        if ends_with_head {
            return Ok(());
        }
        match &reply.ending {
            Ending::Whole => send_part(&mut stream, reply, 0..stop, true, entry).await,
            // The tap ends the connection once these bytes are on the wire.
            Ending::Close { .. } | Ending::Reset { .. } => {
                send_part(&mut stream, reply, 0..stop, false, entry).await?;
                pending().await
            }
            Ending::Stall { .. } => {
                send_part(&mut stream, reply, 0..stop, false, entry).await?;
                until_reset(&mut stream).await;
                Ok(())
            }
            Ending::Hold { gate, .. } => {
                send_part(&mut stream, reply, 0..stop, false, entry).await?;
                gate.passed().await;
                send_part(&mut stream, reply, stop..reply.body.len(), true, entry).await
            }
            Ending::ResetStream { .. }
            | Ending::BadChunkSize { .. }
            | Ending::NoFinalChunk
            | Ending::DataAfterFinalChunk => {
                send_part(&mut stream, reply, 0..stop, false, entry).await?;
                if let Some(done) = cut {
                    let _ = done.await;
                }
                Ok(())
            }
        }
    }

    /// Whether a head is sent at all; if not, does what is done instead.
    async fn open(&self, reply: &Reply, respond: &mut SendResponse<Bytes>) -> bool {
        let id = respond.stream_id().as_u32();
        match reply.opening {
            Opening::Head => return true,
            Opening::BadStatusLine => respond.send_reset(Reason::PROTOCOL_ERROR),
            Opening::ResetStream(reason) => respond.send_reset(reason.into()),
            // The tap ends the connection in place of the frame that would reset the stream.
            Opening::Close => {
                self.orders.cut(id, When::StreamEnds, EndBy::Close);
                respond.send_reset(Reason::INTERNAL_ERROR);
            }
            Opening::Reset => {
                self.orders.cut(id, When::StreamEnds, EndBy::Reset);
                respond.send_reset(Reason::INTERNAL_ERROR);
            }
            Opening::Never => {
                let _ = poll_fn(|cx| respond.poll_reset(cx)).await;
            }
        }
        false
    }

    /// Tells the tap where this answer ends, if it does not end well.
    fn order_ending(&self, id: u32, reply: &Reply) -> Option<oneshot::Receiver<()>> {
        let stop = reply.bytes_before_ending() as u64;
        let (when, by) = match reply.ending {
            Ending::Close { .. } => (When::Sent(stop), EndBy::Close),
            Ending::Reset { .. } => (When::Sent(stop), EndBy::Reset),
            Ending::ResetStream { reason, .. } => {
                (When::Sent(stop), EndBy::ResetStream(Reason::from(reason).into()))
            }
            Ending::BadChunkSize { .. } | Ending::NoFinalChunk | Ending::DataAfterFinalChunk => {
                (When::Sent(stop), EndBy::ResetStream(Reason::PROTOCOL_ERROR.into()))
            }
            Ending::Whole | Ending::Stall { .. } | Ending::Hold { .. } => {
                if !reply.close_quietly {
                    return None;
                }
                (When::StreamEnds, EndBy::Close)
            }
        };
        Some(self.orders.cut(id, when, by))
    }
}

enum BodyEnd {
    Client,
    Script,
}

async fn read_body(mut body: RecvStream, faults: &[Fault]) -> Result<UploadBody, BodyEnd> {
    let mut intake = Intake::new(faults.iter().find_map(Fault::upload_cut));
    while let Some(piece) = body.data().await {
        let piece = piece.map_err(|_| BodyEnd::Client)?;
        let _ = body.flow_control().release_capacity(piece.len());
        intake.take(&piece).map_err(|Cut| BodyEnd::Script)?;
    }
    Ok(intake.finish())
}

async fn send_part(
    stream: &mut SendStream<Bytes>,
    reply: &Reply,
    part: std::ops::Range<usize>,
    last: bool,
    entry: &RequestEntry,
) -> Result<(), h2::Error> {
    let step = reply.drip.map_or(usize::MAX, |drip| drip.bytes);
    let mut rest = reply.body.slice(part);
    while !rest.is_empty() {
        if let Some(drip) = reply.drip {
            tokio::time::sleep(drip.every).await;
        }
        let mut step_left = rest.split_to(step.min(rest.len()));
        while !step_left.is_empty() {
            stream.reserve_capacity(step_left.len());
            let Some(capacity) = poll_fn(|cx| stream.poll_capacity(cx)).await else {
                return Ok(());
            };
            let piece = step_left.split_to(capacity?.min(step_left.len()));
            entry.sent(piece.len());
            let ends = last && rest.is_empty() && step_left.is_empty();
            stream.send_data(piece, ends)?;
        }
    }
    Ok(())
}

async fn until_reset(stream: &mut SendStream<Bytes>) {
    let _ = poll_fn(|cx| stream.poll_reset(cx)).await;
}

fn head(reply: &Reply) -> Response<()> {
    let mut head = Response::new(());
    *head.status_mut() =
        StatusCode::from_u16(reply.status).expect("a script names a status from 100 to 999");
    for (name, value) in &reply.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a script names valid fields");
        let value = HeaderValue::from_str(value).expect("a script gives valid values");
        head.headers_mut().append(name, value);
    }
    if let Some(length) = reply.announced_length()
        && !matches!(reply.status, 204 | 304)
    {
        head.headers_mut().insert("content-length", HeaderValue::from(length));
    }
    let date = httpdate::fmt_http_date(SystemTime::now());
    head.headers_mut().insert("date", HeaderValue::try_from(date).expect("a date is ASCII"));
    head
}

fn received(parts: &http::request::Parts, connection: u64) -> Received {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let mut headers: Vec<(String, String)> =
        parts.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
    if let Some(authority) = parts.uri.authority() {
        // What HTTP/1.1 calls Host, so that tests read one log.
        headers.push(("host".to_owned(), authority.to_string()));
    }
    Received {
        method: parts.method.as_str().to_owned(),
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().map(ToOwned::to_owned),
        headers,
        protocol: "HTTP/2",
        connection,
    }
}

impl From<StreamReset> for Reason {
    fn from(reset: StreamReset) -> Self {
        match reset {
            StreamReset::Refused => Self::REFUSED_STREAM,
            StreamReset::Internal => Self::INTERNAL_ERROR,
            StreamReset::Cancel => Self::CANCEL,
            StreamReset::EnhanceYourCalm => Self::ENHANCE_YOUR_CALM,
            StreamReset::Protocol => Self::PROTOCOL_ERROR,
        }
    }
}
