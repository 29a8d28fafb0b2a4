//! A round trip where there is none: a relay that holds every byte for half of it.
//!
//! A chunk that arrives now is passed on half a round trip later, in both directions, so that an
//! exchange of any protocol above costs a full one. A TCP connection on loopback is made in no
//! time; on a link the exchange of SYN costs a round trip before the first byte can leave, so the
//! relay takes the first bytes as if they had arrived that much later.
//!
//! Bandwidth, loss and TCP's slow start are not simulated.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, sleep_until};

/// The most bytes read at once.
const CHUNK_BYTES_MAX: usize = 64 << 10;

/// Bytes on their way in one direction of one connection; the sender waits beyond that, as it
/// would for a full TCP window. At 20 ms this lets 400 MB/s pass.
const IN_TRANSIT_BYTES_MAX: usize = 4 << 20;

/// Chunks on their way in one direction of one connection, however small they are.
const IN_TRANSIT_CHUNKS_MAX: usize = 1024;

/// Carries bytes between both ends of a connection made just now, until both directions have
/// ended or one has failed. Dropping the future cuts the connection.
///
/// # Errors
/// What either end says when it is cut.
pub(super) async fn relay<C, S>(client: C, server: S, round_trip: Duration) -> io::Result<()>
where
    C: AsyncRead + AsyncWrite,
    S: AsyncRead + AsyncWrite,
{
    let link = Link { one_way: round_trip / 2, established_at: Instant::now() + round_trip };
    let (from_client, to_client) = tokio::io::split(client);
    let (from_server, to_server) = tokio::io::split(server);
    tokio::try_join!(link.carry(from_client, to_server), link.carry(from_server, to_client))?;
    Ok(())
}

#[derive(Clone, Copy)]
struct Link {
    one_way: Duration,
    established_at: Instant,
}

/// A chunk on its way; an empty one is the end of the stream.
struct InTransit {
    bytes: Bytes,
    due: Instant,
    _room: OwnedSemaphorePermit,
}

impl Link {
    /// Carries one direction: one half takes bytes in as they come and stamps them, the other
    /// hands them out when they are due, so that a slow receiver does not falsify the stamps.
    async fn carry<R, W>(self, from: R, to: W) -> io::Result<()>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let (sender, receiver) = mpsc::channel(IN_TRANSIT_CHUNKS_MAX);
        tokio::try_join!(self.take_in(from, sender), hand_out(receiver, to))?;
        Ok(())
    }

    async fn take_in<R>(self, mut from: R, sender: mpsc::Sender<InTransit>) -> io::Result<()>
    where
        R: AsyncRead + Unpin,
    {
        let window = Arc::new(Semaphore::new(IN_TRANSIT_BYTES_MAX));
        let mut buffer = BytesMut::new();
        loop {
            buffer.reserve(CHUNK_BYTES_MAX);
            (&mut from).take(CHUNK_BYTES_MAX as u64).read_buf(&mut buffer).await?;
            let due = Instant::now().max(self.established_at) + self.one_way;
            let bytes = buffer.split().freeze();
            let is_end = bytes.is_empty();
            let taken = u32::try_from(bytes.len()).expect("a chunk is small");
            let room = Arc::clone(&window).acquire_many_owned(taken).await;
            let room = room.expect("the semaphore is never closed");
            let sent = sender.send(InTransit { bytes, due, _room: room }).await;
            if is_end || sent.is_err() {
                return Ok(());
            }
        }
    }
}

async fn hand_out<W>(mut receiver: mpsc::Receiver<InTransit>, mut to: W) -> io::Result<()>
where
    W: AsyncWrite + Unpin,
{
    while let Some(chunk) = receiver.recv().await {
        if chunk.due > Instant::now() {
            sleep_until(chunk.due).await;
        }
        if chunk.bytes.is_empty() {
            break;
        }
        to.write_all(&chunk.bytes).await?;
    }
    to.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{DuplexStream, duplex};

    const ROUND_TRIP: Duration = Duration::from_millis(20);
    /// tokio's timers have a granularity of one millisecond, and a round trip passes two.
    const TICKS: Duration = Duration::from_millis(2);

    /// Both ends of a relayed connection whose pipes hold `pipe_bytes`.
    fn connected(pipe_bytes: usize) -> (DuplexStream, DuplexStream) {
        let (client, near) = duplex(pipe_bytes);
        let (far, server) = duplex(pipe_bytes);
        tokio::spawn(relay(near, far, ROUND_TRIP));
        (client, server)
    }

    async fn echo(mut server: DuplexStream) {
        let mut byte = [0];
        while server.read_exact(&mut byte).await.is_ok() {
            server.write_all(&byte).await.unwrap();
        }
    }

    async fn ping(client: &mut DuplexStream) -> Duration {
        let started = Instant::now();
        client.write_all(b"x").await.unwrap();
        client.read_exact(&mut [0]).await.unwrap();
        started.elapsed()
    }

    // The clock stands still while anything can run and jumps to the next timer otherwise, so
    // these times do not depend on the machine.
    #[tokio::test(start_paused = true)]
    async fn a_turn_costs_a_round_trip_and_the_first_one_a_connection_besides() {
        let (mut client, server) = connected(1024);
        tokio::spawn(echo(server));
        let first = ping(&mut client).await;
        assert!((2 * ROUND_TRIP..=2 * ROUND_TRIP + TICKS).contains(&first), "{first:?}");
        for _ in 0..5 {
            let turn = ping(&mut client).await;
            assert!((ROUND_TRIP..=ROUND_TRIP + TICKS).contains(&turn), "{turn:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_in_flight_share_the_round_trip() {
        let (mut client, mut server) = connected(64 << 10);
        let sent = vec![7; 1 << 20];
        let expected = sent.clone();
        let started = Instant::now();
        tokio::spawn(async move {
            server.write_all(&sent).await.unwrap();
        });
        let mut received = Vec::new();
        client.read_to_end(&mut received).await.unwrap();
        assert!(received == expected, "the bytes differ");
        // The connection's round trip and half of another, not one for each chunk.
        assert!(started.elapsed() < 2 * ROUND_TRIP, "{:?}", started.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_receiver_that_does_not_read_stops_the_sender() {
        let pipe_bytes = 64 << 10;
        let (mut client, _server) = connected(pipe_bytes);
        let chunk = vec![0; CHUNK_BYTES_MAX];
        let mut accepted = 0;
        let flood = async {
            loop {
                client.write_all(&chunk).await.unwrap();
                accepted += chunk.len();
            }
        };
        assert!(tokio::time::timeout(Duration::from_secs(60), flood).await.is_err());
        let most = IN_TRANSIT_BYTES_MAX + 2 * pipe_bytes + 2 * CHUNK_BYTES_MAX;
        assert!((IN_TRANSIT_BYTES_MAX..=most).contains(&accepted), "{accepted}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_one_direction_leaves_the_other_open() {
        let (mut client, mut server) = connected(1024);
        client.write_all(b"question").await.unwrap();
        client.shutdown().await.unwrap();
        let mut question = String::new();
        server.read_to_string(&mut question).await.unwrap();
        server.write_all(b"answer").await.unwrap();
        drop(server);
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert_eq!((question.as_str(), answer.as_str()), ("question", "answer"));
    }
}
