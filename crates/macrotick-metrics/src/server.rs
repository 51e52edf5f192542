//! The answers over HTTP: `GET /metrics`.

use std::net::SocketAddr;
use std::time::Duration;

use tiny_http::{Header, Method, Response, Server};

/// The type of the text.
const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The time after which a server looks whether it must end.
const TURN: Duration = Duration::from_millis(200);

/// The reason why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be used.
    #[error("cannot listen at {address}: {reason}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The reason.
        reason: String,
    },
}

/// Answers until `is_over`. `read` returns the present metrics; `ready` gets the address.
///
/// # Errors
///
/// [`ServeError`]
pub fn serve(
    address: SocketAddr,
    read: impl Fn() -> String,
    ready: impl FnOnce(SocketAddr),
    is_over: impl Fn() -> bool,
) -> Result<(), ServeError> {
    let failed = |reason: String| ServeError::Listen { address, reason };
    let server = Server::http(address).map_err(|error| failed(error.to_string()))?;
    ready(server.server_addr().to_ip().unwrap_or(address));
    while !is_over() {
        let request = match server.recv_timeout(TURN) {
            Ok(Some(request)) => request,
            Ok(None) => continue,
            Err(error) => return Err(failed(error.to_string())),
        };
        let is_get = matches!(request.method(), Method::Get | Method::Head);
        let is_metrics = request.url().split('?').next() == Some("/metrics");
        let (code, text, kind) = match (is_get, is_metrics) {
            (true, true) => (200, read(), TYPE),
            (true, false) => (404, "the metrics are at /metrics\n".to_owned(), "text/plain"),
            (false, _) => (405, "only GET\n".to_owned(), "text/plain"),
        };
        let header = Header::from_bytes("Content-Type", kind).expect("a valid header");
        // A reader that has gone away needs no answer.
        let _ = request.respond(Response::from_string(text).with_status_code(code).with_header(header));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::thread;

    use super::*;

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(format!("{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn the_metrics_are_at_their_path() {
        let asked = Cell::new(None);
        let ready = |address| {
            let ask = move || ["GET /metrics", "GET /", "POST /metrics"].map(|request| ask(address, request));
            asked.set(Some(thread::spawn(ask)));
        };
        let is_over = || {
            let handle = asked.take();
            let is_over = handle.as_ref().is_some_and(|handle| handle.is_finished());
            asked.set(handle);
            is_over
        };
        serve(([127, 0, 0, 1], 0).into(), || "a 1\n".into(), ready, is_over).unwrap();
        let [metrics, other, post] = asked.take().unwrap().join().unwrap();
        assert!(metrics.starts_with("HTTP/1.1 200") && metrics.contains("openmetrics") && metrics.ends_with("a 1\n"));
        assert!(other.starts_with("HTTP/1.1 404") && post.starts_with("HTTP/1.1 405"), "{other} {post}");
    }
}
