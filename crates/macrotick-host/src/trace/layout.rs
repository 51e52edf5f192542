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
}

/// Finds a field in the text: `field:pid_t prev_pid; offset:24; size:4; signed:1;`
fn field(format: &str, name: &str) -> Option<Field> {
    let is_line = |line: &&str| {
        let declared = line.trim().strip_prefix("field:").and_then(|rest| rest.split(';').next());
        declared.and_then(|declared| declared.rsplit(' ').next()) == Some(name)
    };
    let line = format.lines().find(is_line)?;
    let number = |key: &str| -> Option<usize> {
        let value = line.split(';').find_map(|part| part.trim().strip_prefix(key)?.strip_prefix(':'));
        value?.parse().ok()
    };
    let (offset, size) = (number("offset")?, number("size")?);
    [4, 8].contains(&size).then_some(Field { offset, size })
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
}
