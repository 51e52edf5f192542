//! Requests to the qdisc taprio and its interface by netlink: any attribute can have any value. See
//! `include/uapi/linux/pkt_sched.h`.

use crate::sys::{self, done};

/// Opens the gates on the instant (`TCA_TAPRIO_ATTR_FLAG_EXACT`).
pub const EXACT: u32 = 1 << 2;
/// `TCA_TAPRIO_ATTR_FLAG_TXTIME_ASSIST` and `TCA_TAPRIO_ATTR_FLAG_FULL_OFFLOAD`.
pub const OTHERS: [u32; 2] = [1, 2];

const KIND: u16 = 1;
const OPTIONS: u16 = 2;
const PRIOMAP: u16 = 1;
const ENTRY_LIST: u16 = 2;
const BASE_TIME: u16 = 3;
const CLOCK: u16 = 5;
const CYCLE_TIME: u16 = 8;
const FLAGS: u16 = 10;
const LEAD: u16 = 13;
const ENTRY: u16 = 1;
const ENTRY_CMD: u16 = 2;
const ENTRY_MASK: u16 = 3;
const ENTRY_INTERVAL: u16 = 4;

const HANDLE: u32 = 0x0100_0000;

/// A gate list with its options. Two traffic classes have one queue each; frames of priority 6 are in class 1.
#[derive(Clone, Debug)]
pub struct Taprio {
    /// The mask of open gates and the length in ns of each entry.
    pub entries: Vec<(u32, u32)>,
    /// The instant at which the list takes effect.
    pub base: i64,
    /// The length of a cycle; none: the sum of the entries.
    pub cycle: Option<i64>,
    /// The flags of the qdisc; none: no attribute.
    pub flags: Option<u32>,
    /// The lead in ns; none: no attribute.
    pub lead: Option<u32>,
    /// The clock.
    pub clock: i32,
}

impl Taprio {
    /// Makes a list of exact gates that begins at once.
    pub fn exact(entries: &[(u32, u32)]) -> Taprio {
        Taprio {
            entries: entries.to_vec(),
            base: 0,
            cycle: None,
            flags: Some(EXACT),
            lead: None,
            clock: libc::CLOCK_TAI,
        }
    }

    fn options(&self) -> Vec<u8> {
        let mut map = [0u8; 82];
        map[0] = 2;
        map[1 + 6] = 1;
        // One queue for each class: counts, then offsets.
        map[18] = 1;
        map[20] = 1;
        map[50 + 2] = 1;
        let entries: Vec<u8> = self
            .entries
            .iter()
            .flat_map(|(mask, interval)| {
                let fields = [
                    attribute(ENTRY_CMD, &[0]),
                    attribute(ENTRY_MASK, &mask.to_ne_bytes()),
                    attribute(ENTRY_INTERVAL, &interval.to_ne_bytes()),
                ];
                attribute(ENTRY, &fields.concat())
            })
            .collect();
        let mut options = attribute(PRIOMAP, &map);
        options.extend(attribute(ENTRY_LIST, &entries));
        options.extend(attribute(BASE_TIME, &self.base.to_ne_bytes()));
        options.extend(attribute(CLOCK, &self.clock.to_ne_bytes()));
        let number = |kind, value: Option<u32>| value.map_or(Vec::new(), |value| attribute(kind, &value.to_ne_bytes()));
        options.extend(self.cycle.map_or(Vec::new(), |cycle| attribute(CYCLE_TIME, &cycle.to_ne_bytes())));
        options.extend(number(FLAGS, self.flags));
        options.extend(number(LEAD, self.lead));
        options
    }

    /// Makes it the root qdisc of an interface of the caller's namespace, or changes the qdisc that an earlier call
    /// made.
    pub fn set(&self, interface: u32) -> Result<(), i32> {
        let flags = (libc::NLM_F_CREATE | libc::NLM_F_REPLACE) as u16;
        let attributes = [attribute(KIND, b"taprio\0"), attribute(OPTIONS, &self.options())].concat();
        request(libc::RTM_NEWQDISC, flags, interface, HANDLE, &attributes)
    }
}

/// Removes the root qdisc of an interface.
pub fn remove(interface: u32) -> Result<(), i32> {
    request(libc::RTM_DELQDISC, 0, interface, 0, &[])
}

/// Asks for the qdiscs of an interface, and leaves the answer unread.
pub fn dump(interface: u32) -> Result<(), i32> {
    send(libc::RTM_GETQDISC, libc::NLM_F_DUMP as u16, &header(interface, 0), &mut [0; 8192])
}

/// Takes an interface down, or up.
pub fn switch(interface: u32, up: bool) -> Result<(), i32> {
    let flag = libc::IFF_UP as u32;
    let body = [0, interface, if up { flag } else { 0 }, flag].map(u32::to_ne_bytes).concat();
    verdict(libc::RTM_NEWLINK, 0, &body)
}

/// Returns the number of an interface of the caller's namespace.
pub fn index(name: &str) -> u32 {
    let name = std::ffi::CString::new(name).unwrap_or_default();
    // SAFETY: reads a string.
    unsafe { libc::if_nametoindex(name.as_ptr()) }
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = [(value.len() as u16 + 4).to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Returns the header of a request about the root qdisc.
fn header(interface: u32, handle: u32) -> Vec<u8> {
    const ROOT: u32 = 0xffff_ffff;
    [0, interface, handle, ROOT, 0].map(u32::to_ne_bytes).concat()
}

/// Sends a request about the root qdisc, and returns the kernel's verdict.
fn request(kind: u16, flags: u16, interface: u32, handle: u32, attributes: &[u8]) -> Result<(), i32> {
    verdict(kind, flags, &[header(interface, handle), attributes.to_vec()].concat())
}

/// Sends a request, and returns the kernel's verdict.
fn verdict(kind: u16, flags: u16, body: &[u8]) -> Result<(), i32> {
    let mut answer = [0u8; 8192];
    send(kind, flags | libc::NLM_F_ACK as u16, body, &mut answer)?;
    match i32::from_ne_bytes([answer[16], answer[17], answer[18], answer[19]]) {
        0 => Ok(()),
        error => Err(-error),
    }
}

/// Sends a request, and receives the first part of its answer.
fn send(kind: u16, flags: u16, body: &[u8], answer: &mut [u8; 8192]) -> Result<(), i32> {
    let flags = flags | libc::NLM_F_REQUEST as u16;
    let mut bytes = (16 + body.len() as u32).to_ne_bytes().to_vec();
    bytes.extend([kind.to_ne_bytes(), flags.to_ne_bytes()].concat());
    bytes.extend([1u32, 0].map(u32::to_ne_bytes).concat());
    bytes.extend(body);

    // SAFETY: plain calls on a socket of our own.
    let socket = done(unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) })? as i32;
    // SAFETY: reads and writes the buffers' lengths.
    unsafe {
        let sent = done(libc::send(socket, bytes.as_ptr().cast(), bytes.len(), 0) as i64);
        let received = sent.and_then(|_| done(libc::recv(socket, answer.as_mut_ptr().cast(), answer.len(), 0) as i64));
        libc::close(socket);
        received.map(drop)
    }
}

/// Returns the clock's time.
pub fn now(clock: i32) -> i64 {
    sys::read_clock(clock) as i64
}
