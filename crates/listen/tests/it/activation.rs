//! A process is started as a service manager would start it: this test binary again, by way of a
//! shell that puts the socket at descriptor 3 and, in one test, allows few descriptors.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use trunkline_listen::{Activation, Drain, Error, Server, Stream};

/// Says to the test below that it is the process that was started.
const CHILD: &str = "TRUNKLINE_TEST_ACTIVATED";

fn spawn(listener: TcpListener, preparation: &str) -> Child {
    let script = format!(
        "{preparation} LISTEN_PID=$$ LISTEN_FDS=1 {CHILD}=yes; \
         export LISTEN_PID LISTEN_FDS {CHILD}; exec \"$0\" \"$@\" 3<&0 </dev/null"
    );
    Command::new("sh")
        .args(["-c", &script])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "activation::the_process_that_was_started"])
        .stdin(Stdio::from(OwnedFd::from(listener)))
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Echoes single bytes on the socket passed in, until it gets a `q`. Does nothing when it is run
/// as an ordinary test.
#[tokio::test]
async fn the_process_that_was_started() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let value = |name| std::env::var(name).ok();
    let (fds, pid) = (value("LISTEN_FDS"), value("LISTEN_PID"));
    let activation =
        Activation::from_values(fds.as_deref(), pid.as_deref(), std::process::id()).unwrap();
    let activation = activation.expect("meant for this process");
    let mut listeners = activation.listeners().unwrap();
    assert!(matches!(activation.listeners(), Err(Error::ActivationTaken)));
    let drain = Drain::new(Duration::from_secs(20));
    let watched = drain.clone();
    let session = move |mut stream: Stream| {
        let drain = watched.clone();
        async move {
            while let Ok(byte) = stream.read_u8().await {
                if byte == b'q' {
                    drain.start();
                    return;
                }
                let _ = stream.write_u8(byte).await;
            }
        }
    };
    Server::new(listeners.remove(0)).serve_streams(&drain, session).await;
}

fn echo(tcp: &mut TcpStream) -> bool {
    tcp.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut byte = [0];
    tcp.write_all(b"e").is_ok() && tcp.read_exact(&mut byte).is_ok() && byte == *b"e"
}

#[test]
fn a_socket_passed_by_the_service_manager_is_served() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut child = spawn(listener, "");
    let mut tcp = TcpStream::connect(address).unwrap();
    assert!(echo(&mut tcp));
    tcp.write_all(b"q").unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn lack_of_descriptors_is_survived() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut child = spawn(listener, "ulimit -n 24;");
    // More than it can hold: those it cannot accept wait in the queue.
    let mut clients: Vec<_> = (0..40).map(|_| TcpStream::connect(address).unwrap()).collect();
    assert!(echo(&mut clients[0]));
    let mut last = clients.pop().unwrap();
    // Places come free, the rest get their turn.
    drop(clients);
    assert!(echo(&mut last));
    last.write_all(b"q").unwrap();
    assert!(child.wait().unwrap().success());
}
