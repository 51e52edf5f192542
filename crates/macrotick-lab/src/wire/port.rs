//! A guest's end of a wire: it sends the frames of one network interface to the other guest.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::ffi::CString;
use std::io::Error;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use super::post::{Frame, Post, PAGE};

/// The time from one meeting to the next, in virtual time.
pub const TURN_NS: u64 = 2_000_000;
/// The delay of a frame, in virtual time: a turn, and the longest lateness of a guest at a meeting.
pub const DELAY_NS: u64 = 3_000_000;

/// The time by which sleeps end early: for the wake-up of the program, and for the rate of a wrong clock.
const EARLY_NS: u64 = 20_000;
/// A frame that is due within this time after a meeting is delivered before the meeting, or it would be late.
const MEETING_NS: u64 = 100_000;
/// The longest time of a look for a frame.
const LOOK_NS: u64 = 5_000;

/// Returns virtual time. Both guests count it from power-on, independent of their clocks.
pub fn virtual_ns() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads a counter, which in the lab is the virtual time.
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
    #[cfg(target_arch = "aarch64")]
    {
        let now: u64;
        // SAFETY: as above.
        unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) now, options(nomem, nostack)) };
        now
    }
}

/// Serves an interface for ever: the other guest receives the frames that are sent on it. The other guest must do the
/// same.
pub fn serve(interface: &str) -> Result<Infallible, String> {
    if cfg!(not(target_arch = "x86_64")) {
        return Err("only guests with x86-64 can be joined".to_owned());
    }
    let mut port = Port::open(interface).map_err(|error| format!("{interface}: {error}"))?;
    let began = port.meet().map_or(0, |post| post.now_ns).max(virtual_ns());
    let mut meeting = (began / TURN_NS + 2) * TURN_NS;
    loop {
        let due = port.inbox.front().map_or(u64::MAX, |frame| frame.sent_ns + DELAY_NS);
        if due < meeting + MEETING_NS {
            port.receive_until(due, EARLY_NS);
            port.deliver();
        } else {
            port.receive_until(meeting, 0);
            let arrived = port.meet().map(Post::into_frames).unwrap_or_default();
            ensure_in_time(&arrived)?;
            port.inbox.extend(arrived);
            meeting += TURN_NS;
        }
    }
}

/// Fails if a frame was due before it arrived: it cannot be delivered in time.
fn ensure_in_time(arrived: &[Frame]) -> Result<(), String> {
    let late = arrived.first().and_then(|frame| virtual_ns().checked_sub(frame.sent_ns + DELAY_NS));
    late.map_or(Ok(()), |late| Err(format!("a frame arrived {late} ns after it was due")))
}

struct Port {
    socket: OwnedFd,
    page: Page,
    outbox: Post,
    inbox: VecDeque<Frame>,
}

impl Port {
    fn open(interface: &str) -> Result<Port, Error> {
        Ok(Port {
            socket: socket(interface, libc::ETH_P_ALL)?,
            page: Page::new()?,
            outbox: Post::default(),
            inbox: VecDeque::new(),
        })
    }

    /// Hands over the sent frames. Returns the other guest's frames, or `None` if that guest has ended.
    fn meet(&mut self) -> Option<Post> {
        self.outbox.now_ns = virtual_ns();
        self.page.exchange(&std::mem::take(&mut self.outbox))
    }

    fn deliver(&mut self) {
        if let Some(frame) = self.inbox.pop_front() {
            // SAFETY: reads the frame. One that the interface does not take is lost.
            unsafe { libc::send(self.socket.as_raw_fd(), frame.bytes.as_ptr().cast(), frame.bytes.len(), 0) };
        }
    }

    /// Takes sent frames until an instant. It returns exactly then, if sleeps that end `early_ns` early are early
    /// enough.
    fn receive_until(&mut self, until_ns: u64, early_ns: u64) {
        loop {
            let left = until_ns.saturating_sub(virtual_ns());
            if left > LOOK_NS {
                self.sleep(left.saturating_sub(early_ns));
                while let Some(frame) = self.receive() {
                    self.outbox.push(frame);
                }
            } else if left == 0 {
                return;
            }
        }
    }

    /// Sleeps for a length, or until a frame is sent.
    fn sleep(&self, ns: u64) {
        let mut poll = libc::pollfd { fd: self.socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let length = libc::timespec { tv_sec: 0, tv_nsec: ns as _ };
        if ns > 0 {
            // SAFETY: one entry and a length; no signal mask.
            unsafe { libc::ppoll(&mut poll, 1, &length, ptr::null()) };
        }
    }

    /// Returns a sent frame, if there is one. Frames that this port delivered do not count.
    fn receive(&self) -> Option<Frame> {
        let sent_ns = virtual_ns();
        let mut bytes = vec![0; PAGE];
        // SAFETY: a structure of plain numbers.
        let mut from: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        let mut size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: writes at most the buffer's length and one address.
        let length = unsafe {
            let (buffer, address) = (bytes.as_mut_ptr().cast(), (&raw mut from).cast());
            libc::recvfrom(self.socket.as_raw_fd(), buffer, PAGE, libc::MSG_DONTWAIT, address, &mut size)
        };
        bytes.truncate(usize::try_from(length).ok()?);
        if from.sll_pkttype == libc::PACKET_OUTGOING {
            return self.receive();
        }
        Some(Frame { sent_ns, bytes })
    }
}

/// Opens a socket for the frames of an interface: all with `ETH_P_ALL`, or only arriving ones of one protocol.
pub fn socket(interface: &str, protocol: i32) -> Result<OwnedFd, Error> {
    let protocol = (protocol as u16).to_be();
    let name = CString::new(interface)?;
    // SAFETY: reads a terminated name.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: takes numbers; a descriptor that comes back is ours.
    let socket = unsafe {
        let socket = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol.into());
        if socket < 0 {
            return Err(Error::last_os_error());
        }
        OwnedFd::from_raw_fd(socket)
    };
    // SAFETY: a structure of plain numbers.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    (address.sll_family, address.sll_protocol) = (libc::AF_PACKET as u16, protocol);
    address.sll_ifindex = index as i32;
    // SAFETY: reads one address.
    let bound = unsafe {
        let size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size)
    };
    if bound == 0 {
        Ok(socket)
    } else {
        Err(Error::last_os_error())
    }
}

/// The page of memory that the guests exchange.
struct Page {
    bytes: *mut [u8; PAGE],
}

impl Page {
    /// Allocates a page that stays at its physical address.
    fn new() -> Result<Page, Error> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_LOCKED | libc::MAP_POPULATE;
        // SAFETY: a fresh mapping.
        let at = unsafe { libc::mmap(ptr::null_mut(), PAGE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        if at == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        Ok(Page { bytes: at.cast() })
    }

    /// Writes a message to the page, meets, and reads the answer.
    fn exchange(&mut self, post: &Post) -> Option<Post> {
        // SAFETY: the mapping is ours, a page long, and no one else uses it outside of the meeting.
        post.encode(unsafe { &mut *self.bytes });
        // SAFETY: writes the first word of the page. The plugin of QEMU, which knows these bytes, stops the guest here;
        // the host writes the page meanwhile. It knows them for this processor only.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            std::arch::asm!("mov qword ptr [rdi], {beginning}", beginning = const super::post::BEGINNING,
                            in("rdi") self.bytes, options(nostack, preserves_flags));
        }
        // SAFETY: as above.
        Post::decode(unsafe { &*self.bytes })
    }
}
