//! The helper: one connection, from the request to the end of the reservation.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

use macrotick_host::grants::{Grant, Grants};
use macrotick_host::proc;
use macrotick_host::sys::{self, Peer};
use macrotick_model::Duration;
use macrotick_reserve::{prepare, Prepared, Report, Request, Target};

use crate::error::GrantError;
use crate::limits::{Limit, Limits};
use crate::message::{write, Answer, Ask, Reader, PATIENCE};

/// The most reservations of one user: each has two processes of root.
const MOST: usize = 16;

/// Serves a connection: reads one request, reserves, and keeps the reservation until the peer sends anything more or closes
/// the connection, or the thread ends. `say` gets a line for the log.
///
/// The calling process must have one thread.
///
/// # Errors
///
/// The reason of a refusal. The peer has got it, too, if there is one.
pub fn serve(socket: &UnixStream, limits: &Path, folder: &Path, say: &dyn Fn(String)) -> Result<(), GrantError> {
    let peer = sys::peer(socket).map_err(GrantError::NoConnection)?;
    let served = one(socket, &peer, limits, folder, say);
    let last = match &served {
        Ok(()) => Answer::Ended,
        Err(error) => Answer::Refused { text: error.to_string(), code: error.exit_code() },
    };
    // The peer may be gone.
    let _ = write(socket, &last);
    served
}

fn one(socket: &UnixStream, peer: &Peer, limits: &Path, folder: &Path, say: &dyn Fn(String)) -> Result<(), GrantError> {
    let user = peer.user;
    // A peer that waits, or does not read, must not keep a process of root.
    let patience = socket.set_read_timeout(Some(PATIENCE)).and_then(|()| socket.set_write_timeout(Some(PATIENCE)));
    patience.map_err(GrantError::NoConnection)?;
    let all = Limits::read(limits)?;
    let limit = all.of(peer).ok_or_else(|| GrantError::NoLimits { user, path: limits.into() })?;
    if !proc::shares_namespace(peer.process) {
        return Err(GrantError::Namespace);
    }
    let mut reader = Reader::new(socket).map_err(GrantError::NoConnection)?;
    let wrong = |error: io::Error| GrantError::Request(error.to_string());
    let ask: Ask = reader.read().map_err(wrong)?.ok_or_else(|| GrantError::Request("there is none".into()))?;
    if reader.has_more() {
        return Err(GrantError::Request("more follows its line".into()));
    }
    let request = ask.request().map_err(GrantError::Request)?;
    // Before anything is read of it: the answers would tell of processes of other users.
    owns(peer, ask.thread)?;
    let (prepared, _grant) = admit(&request, peer, limit, folder)?;
    prepared.commit_until(socket, |report| {
        say(format!("user {user}, thread {}: {}", ask.thread, report.to_string().lines().next().unwrap_or_default()));
        let report_of = serde_json::to_value(report).expect("a report is always JSON");
        // If it cannot be written, the connection is closed, which ends the reservation.
        let _ = write(socket, &Answer::Made { text: report.to_string(), report: report_of });
    })?;
    Ok(())
}

/// Compares the request with the limits, and adds it to the account of the user.
fn admit(request: &Request, peer: &Peer, limit: &Limit, folder: &Path) -> Result<(Prepared, Grant), GrantError> {
    let Target::Process(thread) = request.target else { unreachable!("a request of a peer names a thread") };
    limit.allows(request, peer.user)?;
    // No other helper changes the account until the request is in it.
    let grants = Grants::open(folder)?;
    let taken = grants.of(peer.user)?;
    let need = limit.room(request, peer.user, &taken)?;
    let prepared = prepare(request)?;
    limit.covers(prepared.report(), peer.user)?;
    // Between the first look and prepare(), the id can have got to a thread of another user. From prepare() on, the
    // begin of the thread is known, and the reservation is refused to a later one.
    owns(peer, thread)?;
    Ok((prepared, grants.add(peer.user, need)?))
}

/// Checks that a thread is the peer's: by all its users, so it is no program with the rights of another one.
fn owns(peer: &Peer, thread: sys::Tid) -> Result<(), GrantError> {
    match proc::users_of(thread) {
        Some(users) if users.iter().all(|user| *user == peer.user) => Ok(()),
        // The same answer for a thread that is not there: it tells nothing.
        _ => Err(GrantError::Foreign { thread, user: peer.user }),
    }
}

impl Limit {
    /// Checks the times and options.
    fn allows(&self, request: &Request, user: u32) -> Result<(), GrantError> {
        let (period, least) = (request.times.period, self.least_period);
        if period < least {
            return Err(GrantError::Period { user, period, least });
        }
        match request.options.reclaim && !self.reclaim {
            true => Err(GrantError::Reclaim { user }),
            false => Ok(()),
        }
    }

    /// Returns the bandwidth of a request, in millionths of a CPU, if the user has it.
    fn room(&self, request: &Request, user: u32, taken: &[u64]) -> Result<u64, GrantError> {
        if taken.len() >= MOST {
            return Err(GrantError::Many { user, count: taken.len() });
        }
        let need = share(request.times.runtime, request.times.deadline);
        let (most, taken) = (self.bandwidth_ppm, taken.iter().fold(0, |sum: u64, one| sum.saturating_add(*one)));
        match taken.saturating_add(need) <= most {
            true => Ok(need),
            false => Err(GrantError::Bandwidth { user, need, most, taken }),
        }
    }

    /// Checks the CPUs.
    fn covers(&self, report: &Report, user: u32) -> Result<(), GrantError> {
        let Some(allowed) = &self.cpus else { return Ok(()) };
        match report.cpus.as_slice().iter().all(|&cpu| allowed.contains(cpu)) {
            true => Ok(()),
            false => Err(GrantError::Cpus { user, cpus: report.cpus.clone(), allowed: allowed.clone() }),
        }
    }
}

/// Returns a part of a whole in millionths, rounded up.
fn share(part: Duration, whole: Duration) -> u64 {
    let (part, whole) = (part.as_nanos() as u128, whole.as_nanos().max(1) as u128);
    u64::try_from((part * 1_000_000).div_ceil(whole)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use macrotick_fixtures::us;

    use super::*;

    fn request(runtime: i64, deadline: i64, period: i64) -> Request {
        let ask = Ask {
            version: crate::message::VERSION,
            thread: 1,
            runtime: us(runtime),
            period: us(period),
            deadline: us(deadline),
            reclaim: false,
            overrun_signal: false,
            cpus: None,
        };
        ask.request().unwrap()
    }

    fn limit() -> Limit {
        Limit { bandwidth_ppm: 300_000, least_period: us(1000), cpus: None, reclaim: false }
    }

    #[test]
    fn a_user_has_its_bandwidth_and_no_more() {
        let room =
            |request: &Request, taken: &[u64]| limit().room(request, 7, taken).map_err(|error| error.to_string());
        assert_eq!(room(&request(300, 1000, 1000), &[]), Ok(300_000));
        assert_eq!(room(&request(100, 1000, 1000), &[200_000]), Ok(100_000));
        // A short deadline takes more, because the thread comes before others for it.
        assert_eq!(room(&request(100, 500, 1000), &[100_000]), Ok(200_000));
        assert_eq!(room(&request(1, 3, 1000), &[]).unwrap_err().split(" %").next().unwrap(), "it would take 33.3");
        let told = room(&request(200, 1000, 1000), &[50_000, 60_000]).unwrap_err();
        assert_eq!(
            told,
            "it would take 20.0 % of a CPU by its deadline, and the limit of user 7 is 30.0 %, of which 11.0 % are taken"
        );
        assert!(room(&request(1, 1000, 1000), &[u64::MAX, 1]).is_err(), "the sum does not wrap");
        assert!(room(&request(1, 1000, 1000), &[0; MOST]).unwrap_err().contains("has 16 reservations already"));
    }

    #[test]
    fn periods_and_options_have_limits() {
        assert!(limit().allows(&request(1, 1000, 1000), 7).is_ok());
        let told = limit().allows(&request(1, 999, 999), 7).unwrap_err().to_string();
        assert_eq!(told, "--period 999us is shorter than 1ms, the limit of user 7");
        let mut reclaims = request(1, 1000, 1000);
        reclaims.options.reclaim = true;
        assert!(limit().allows(&reclaims, 7).is_err());
        assert!(Limit { reclaim: true, ..limit() }.allows(&reclaims, 7).is_ok());
    }

    #[test]
    fn a_thread_of_another_user_is_not_the_peers() {
        let user = sys::user();
        let peer = |user| Peer { process: sys::own_tid(), user, groups: Vec::new() };
        assert!(owns(&peer(user), sys::own_tid()).is_ok());
        assert!(owns(&peer(user + 1), sys::own_tid()).is_err() && owns(&peer(user), i32::MAX).is_err());
    }
}
