//! The answers over HTTP: `GET /metrics`.
//!
//! A request is one line that counts; headers and a body are not read to their end. Each client has a thread and little
//! time, so none keeps another one waiting.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The type of the text.
const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The time after which a server looks whether it must end, or for another client.
const TURN: Duration = Duration::from_millis(50);
/// The time for a request and its answer.
const TIME: Duration = Duration::from_secs(2);
/// The most bytes of a request that are read.
const MOST: usize = 8 * 1024;
/// The most clients at the same time. Others are sent away.
const CLIENTS: usize = 16;

/// The reason why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be used.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The reason.
        source: io::Error,
    },
}

/// Answers until `is_over`. `read` returns the present metrics; `ready` gets the address.
///
/// # Errors
///
/// [`ServeError`]
pub fn serve(
    address: SocketAddr,
    read: impl Fn() -> String + Send + Sync + 'static,
    ready: impl FnOnce(SocketAddr),
    is_over: impl Fn() -> bool,
) -> Result<(), ServeError> {
    let failed = |source| ServeError::Listen { address, source };
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    ready(listener.local_addr().map_err(failed)?);
    let (read, clients) = (Arc::new(read), Arc::new(AtomicUsize::new(0)));
    while !is_over() {
        let Ok((stream, _)) = listener.accept() else {
            thread::sleep(TURN);
            continue;
        };
        if clients.fetch_add(1, Ordering::Relaxed) >= CLIENTS {
            clients.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (read, clients) = (read.clone(), clients.clone());
        thread::spawn(move || {
            // A client that has gone away, or that is slow, gets no answer.
            let _ = answer(stream, &*read);
            clients.fetch_sub(1, Ordering::Relaxed);
        });
    }
    Ok(())
}

/// Reads the head of a request, and answers it.
fn answer(mut stream: TcpStream, read: &dyn Fn() -> String) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(TIME))?;
    let (head, end) = (head(&mut stream)?, Instant::now() + TIME);
    let mut words = head.split_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (status, kind, text) = match (method, path.split('?').next().unwrap_or_default()) {
        ("GET" | "HEAD", "/metrics") => ("200 OK", TYPE, read()),
        ("GET" | "HEAD", _) => ("404 Not Found", "text/plain", "the metrics are at /metrics\n".into()),
        _ => ("405 Method Not Allowed", "text/plain", "only GET\n".into()),
    };
    let length = text.len();
    let text = if method == "HEAD" { String::new() } else { text };
    let headers = format!("Content-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close");
    let whole = format!("HTTP/1.1 {status}\r\n{headers}\r\n\r\n{text}");
    for part in whole.as_bytes().chunks(64 * 1024) {
        if Instant::now() > end {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.write_all(part)?;
    }
    stream.flush()
}

/// Reads until the empty line after the headers, until the most bytes, or until the time is over.
fn head(stream: &mut TcpStream) -> io::Result<String> {
    let end = Instant::now() + TIME;
    let mut bytes = Vec::new();
    let mut part = [0; 1024];
    while bytes.len() < MOST && !bytes.windows(4).any(|four| four == b"\r\n\r\n") {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part)? {
            0 => break,
            count => bytes.extend(&part[..count]),
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    /// Serves one metric until the client's work is done.
    fn with_server<T: Send + 'static>(client: impl FnOnce(SocketAddr) -> T + Send + 'static) -> T {
        let asked = Cell::new(None);
        let ready = |address| asked.set(Some(thread::spawn(move || client(address))));
        let is_over = || {
            let handle: Option<thread::JoinHandle<T>> = asked.take();
            let is_over = handle.as_ref().is_some_and(thread::JoinHandle::is_finished);
            asked.set(handle);
            is_over
        };
        serve(([127, 0, 0, 1], 0).into(), || "a 1\n".into(), ready, is_over).unwrap();
        asked.take().unwrap().join().unwrap()
    }

    #[test]
    fn the_metrics_are_at_their_path() {
        let requests = ["GET /metrics", "GET /", "POST /metrics", "HEAD /metrics?x=1"];
        let [metrics, other, post, head] = with_server(move |address| {
            requests.map(|request| ask(address, &format!("{request} HTTP/1.1\r\nHost: x\r\n\r\n")))
        });
        assert!(
            metrics.starts_with("HTTP/1.1 200") && metrics.contains("openmetrics") && metrics.ends_with("\n\r\na 1\n")
        );
        assert!(other.starts_with("HTTP/1.1 404") && post.starts_with("HTTP/1.1 405"), "{other} {post}");
        assert!(head.starts_with("HTTP/1.1 200") && head.contains("Content-Length: 4") && head.ends_with("\r\n\r\n"));
    }

    /// Clients that announce much and send nothing keep no other client from the metrics.
    #[test]
    fn a_bad_client_harms_no_other() {
        let answer = with_server(|address| {
            let bad =
                ["POST / HTTP/1.1\r\nContent-Length: 18446744073709551615\r\n\r\n", "GET", "\r\n\r\n", "\u{0}\u{1}"];
            let open: Vec<TcpStream> = (0..8)
                .map(|number| {
                    let mut stream = TcpStream::connect(address).unwrap();
                    stream.write_all(bad[number % bad.len()].as_bytes()).unwrap();
                    stream
                })
                .collect();
            let answer = ask(address, "GET /metrics HTTP/1.1\r\n\r\n");
            drop(open);
            ask(address, &format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000)));
            answer + &ask(address, "GET /metrics HTTP/1.1\r\n\r\n")
        });
        assert_eq!(answer.matches("a 1\n").count(), 2, "{answer}");
    }
}
