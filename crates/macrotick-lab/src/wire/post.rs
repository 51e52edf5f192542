//! The message of a guest from one meeting to the next: one page of its memory.

/// The length of a page.
pub const PAGE: usize = 4096;
/// The first word of a page, which the instruction of the meeting writes.
pub const BEGINNING: u64 = 0x6b63_6974;
/// The beginning, the instant of the meeting, the number of frames.
const HEAD: usize = 24;
/// The instant and the length of each frame.
const FRAME_HEAD: usize = 16;

/// A frame and the instant at which it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub sent_ns: u64,
    pub bytes: Vec<u8>,
}

/// The message of a meeting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Post {
    /// The instant of the meeting.
    pub now_ns: u64,
    frames: Vec<Frame>,
    length: usize,
}

impl Post {
    /// Adds a frame. A frame that does not fit is lost, as on a busy wire.
    pub fn push(&mut self, frame: Frame) {
        let length = self.length + FRAME_HEAD + frame.bytes.len();
        if HEAD + length <= PAGE {
            self.length = length;
            self.frames.push(frame);
        }
    }

    /// Returns the frames in the order of their instants.
    pub fn into_frames(self) -> Vec<Frame> {
        self.frames
    }

    /// Writes all of the page except its first word.
    pub fn encode(&self, page: &mut [u8; PAGE]) {
        let mut put = Writer { page, at: 8 };
        put.word(self.now_ns);
        put.word(self.frames.len() as u64);
        for frame in &self.frames {
            put.word(frame.sent_ns);
            put.word(frame.bytes.len() as u64);
            put.bytes(&frame.bytes);
        }
    }

    /// Reads the other guest's message; `None` if that guest has ended.
    pub fn decode(page: &[u8; PAGE]) -> Option<Post> {
        let mut rest = &page[..];
        if word(&mut rest)? != BEGINNING {
            return None;
        }
        let (now_ns, count) = (word(&mut rest)?, word(&mut rest)?);
        let mut post = Post { now_ns, ..Post::default() };
        for _ in 0..count {
            let (sent_ns, length) = (word(&mut rest)?, word(&mut rest)?);
            let (bytes, after) = rest.split_at_checked(length as usize)?;
            post.push(Frame { sent_ns, bytes: bytes.to_vec() });
            rest = after;
        }
        Some(post)
    }
}

struct Writer<'a> {
    page: &'a mut [u8; PAGE],
    at: usize,
}

impl Writer<'_> {
    fn word(&mut self, word: u64) {
        self.bytes(&word.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.page[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }
}

fn word(rest: &mut &[u8]) -> Option<u64> {
    let (word, after) = rest.split_first_chunk::<8>()?;
    *rest = after;
    Some(u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(post: &Post) -> [u8; PAGE] {
        let mut page = [0xff; PAGE];
        page[..8].copy_from_slice(&BEGINNING.to_le_bytes());
        post.encode(&mut page);
        page
    }

    #[test]
    fn what_fits_arrives() {
        let frame = |number: u8| Frame { sent_ns: number.into(), bytes: vec![number; 1000] };
        let mut post = Post { now_ns: 7, ..Post::default() };
        (0..4).for_each(|number| post.push(frame(number)));
        post.push(Frame { sent_ns: 9, bytes: vec![9; 1008] });
        let arrived = Post::decode(&page(&post)).unwrap();
        assert_eq!(arrived, post);
        assert_eq!(arrived.into_frames(), [frame(0), frame(1), frame(2), frame(3)]);
    }

    #[test]
    fn a_page_is_used_to_its_end() {
        let mut post = Post::default();
        post.push(Frame { sent_ns: 1, bytes: vec![1; PAGE - HEAD - FRAME_HEAD] });
        assert_eq!(Post::decode(&page(&post)), Some(post));
    }

    #[test]
    fn nobody_sends_nothing() {
        assert_eq!(Post::decode(&[0; PAGE]), None);
    }
}
