//! Where the fields of the kernel's trace points are.

use super::Instance;
use crate::error::HostFailure;

/// A trace point: its number, and the text that describes its fields.
pub struct Point {
    name: String,
    /// The number, which is in each of its events.
    pub id: u16,
    format: String,
}

/// A field of an event, of 4 or 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    offset: usize,
    size: usize,
}

impl Point {
    /// Reads the description of a trace point.
    ///
    /// # Errors
    ///
    /// The kernel has no such trace point.
    pub fn read(of: &Instance, name: &str) -> Result<Point, HostFailure> {
        let format = of.format_of(name)?;
        let id = format.lines().find_map(|line| line.strip_prefix("ID:")?.trim().parse().ok());
        Ok(Point { name: name.to_owned(), id: id.ok_or_else(|| HostFailure::TracePoint(name.to_owned()))?, format })
    }

    /// Returns a field.
    ///
    /// # Errors
    ///
    /// The event of this kernel has no such field.
    pub fn field(&self, name: &str) -> Result<Field, HostFailure> {
        field(&self.format, name).ok_or_else(|| HostFailure::TracePoint(self.name.clone()))
    }

    /// Returns a field with text.
    ///
    /// # Errors
    ///
    /// The event of this kernel has no such field.
    pub fn text(&self, name: &str) -> Result<Text, HostFailure> {
        text(&self.format, name).ok_or_else(|| HostFailure::TracePoint(self.name.clone()))
    }
}

/// A field of an event with text, which a zero ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text {
    offset: usize,
    size: usize,
    /// Whether the field has the place of the text in the event: the offset in the lower half, the size in the upper one.
    is_elsewhere: bool,
}

impl Text {
    /// Returns the text of an event. Empty if the event is too short.
    pub fn of(self, event: &[u8]) -> String {
        let (offset, size) = match self.is_elsewhere {
            true => {
                let place = Field { offset: self.offset, size: 4 }.of(event) as u32;
                ((place & 0xffff) as usize, (place >> 16) as usize)
            }
            false => (self.offset, self.size),
        };
        let bytes = event.get(offset..offset + size).unwrap_or(&[]);
        String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or(&[])).into_owned()
    }
}

/// Finds a field in the text: `field:pid_t prev_pid; offset:24; size:4; signed:1;`
fn field(format: &str, name: &str) -> Option<Field> {
    let (_, offset, size) = find(format, |declared| declared == name)?;
    [4, 8].contains(&size).then_some(Field { offset, size })
}

/// Finds a field with text: `field:char comm[16]; offset:8; size:16; ...` or `field:__data_loc char[] name; ...`.
fn text(format: &str, name: &str) -> Option<Text> {
    let (declared, offset, size) = find(format, |declared| declared.split('[').next() == Some(name))?;
    Some(Text { offset, size, is_elsewhere: declared.starts_with("__data_loc ") })
}

/// Finds a field by the last word of its declaration. Returns the declaration, the offset and the size.
fn find<'a>(format: &'a str, is_it: impl Fn(&str) -> bool) -> Option<(&'a str, usize, usize)> {
    let declared_in = |line: &'a str| line.trim().strip_prefix("field:")?.split(';').next();
    let is_line =
        |line: &&'a str| declared_in(line).and_then(|declared| declared.rsplit(' ').next()).is_some_and(&is_it);
    let line = format.lines().find(is_line)?;
    let number = |key: &str| -> Option<usize> {
        let value = line.split(';').find_map(|part| part.trim().strip_prefix(key)?.strip_prefix(':'));
        value?.parse().ok()
    };
    Some((declared_in(line)?, number("offset")?, number("size")?))
}

impl Field {
    /// Returns its value in an event. Zero if the event is too short.
    pub fn of(self, event: &[u8]) -> i64 {
        let bytes = event.get(self.offset..self.offset + self.size).unwrap_or(&[]);
        match self.size {
            4 => bytes.try_into().map_or(0, |bytes| i64::from(i32::from_ne_bytes(bytes))),
            _ => bytes.try_into().map_or(0, i64::from_ne_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &str = "name: sched_switch\nID: 316\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n";

    #[test]
    fn fields_are_where_the_kernel_says() {
        let pid = field(FORMAT, "prev_pid").unwrap();
        assert_eq!(pid, Field { offset: 24, size: 4 });
        assert_eq!(field(FORMAT, "prev_state"), Some(Field { offset: 32, size: 8 }));
        assert_eq!((field(FORMAT, "pid"), field(FORMAT, "prev_comm[16]")), (None, None));
        let mut event = vec![0; 40];
        event[24..28].copy_from_slice(&(-7i32).to_ne_bytes());
        assert_eq!((pid.of(&event), pid.of(&event[..26])), (-7, 0));
    }

    #[test]
    fn texts_are_in_their_field_or_elsewhere() {
        let format = "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
            \tfield:__data_loc char[] name;\toffset:4;\tsize:4;\tsigned:0;\n";
        let (comm, name) = (text(format, "comm").unwrap(), text(format, "name").unwrap());
        let mut event = vec![0; 30];
        event[4..8].copy_from_slice(&(24u32 | 5 << 16).to_ne_bytes());
        event[8..11].copy_from_slice(b"abc");
        event[24..28].copy_from_slice(b"eth0");
        assert_eq!((comm.of(&event), name.of(&event)), ("abc".to_owned(), "eth0".to_owned()));
        assert_eq!((comm.of(&event[..20]), name.of(&event[..26]), name.of(&[])), Default::default());
        assert_eq!(text(format, "com"), None);
    }
}
