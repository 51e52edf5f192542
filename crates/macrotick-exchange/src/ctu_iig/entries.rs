//! The grammar of an instance: entries `name = value;` with whole numbers and nested lists.

use crate::findings::cut;
use crate::scan::{Fault, Scanner};

/// The most lists within each other. An instance needs two.
const MOST_LEVELS: usize = 4;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Number(i64),
    /// A list.
    List(Vec<Value>),
}

/// An entry of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The name as written. The files of the repository differ in upper and lower case.
    pub name: String,
    /// The value.
    pub value: Value,
}

/// Reads all entries.
pub fn read(text: &str) -> Result<Vec<Entry>, Fault> {
    let mut scanner = Scanner::new(text);
    let mut entries: Vec<Entry> = Vec::new();
    loop {
        scanner.skip()?;
        if scanner.peek().is_none() {
            return Ok(entries);
        }
        let name = scanner.take_while(|c| c.is_ascii_alphanumeric() || c == '_').to_owned();
        if name.is_empty() {
            return Err(scanner.unexpected("the name of an entry"));
        }
        if entries.len() == MOST_ENTRIES {
            return Err(scanner.fault(format!("the file has more than {MOST_ENTRIES} entries")));
        }
        if entries.iter().any(|entry| entry.name.eq_ignore_ascii_case(&name)) {
            return Err(scanner.fault(format!("`{}` is given twice", cut(&name))));
        }
        scanner.skip()?;
        scanner.expect('=')?;
        let value = value(&mut scanner, 0)?;
        scanner.skip()?;
        scanner.expect(';')?;
        entries.push(Entry { name, value });
    }
}

/// The most entries. An instance has 15.
const MOST_ENTRIES: usize = 256;

fn value(scanner: &mut Scanner, level: usize) -> Result<Value, Fault> {
    scanner.skip()?;
    if level > MOST_LEVELS {
        return Err(scanner.fault(format!("more than {MOST_LEVELS} lists within each other")));
    }
    if scanner.eat('[') {
        return list(scanner, level);
    }
    let place = scanner.place();
    let digits = scanner.take_while(|c| c.is_ascii_digit() || c == '-');
    let is_number = digits.bytes().last().is_some_and(|byte| byte.is_ascii_digit());
    match digits.parse() {
        Ok(number) => Ok(Value::Number(number)),
        Err(_) if is_number && !digits[1..].contains('-') => Err(scanner.fault_at(place, "the number is too large")),
        Err(_) => Err(scanner.unexpected_at(place, "a whole number or `[`")),
    }
}

/// Reads the items after the opening bracket.
fn list(scanner: &mut Scanner, level: usize) -> Result<Value, Fault> {
    let mut items = Vec::new();
    loop {
        scanner.skip()?;
        if scanner.eat(']') {
            return Ok(Value::List(items));
        }
        items.push(value(scanner, level + 1)?);
        scanner.skip()?;
        if !scanner.eat(',') && scanner.peek() != Some(']') {
            return Err(scanner.unexpected("`,` or `]`"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        read(text).unwrap_err().within("f").to_string()
    }

    #[test]
    fn values_are_numbers_and_nested_lists() {
        let entries = read("a = 1;\n\n B=[[1, -2],[] , ];").unwrap();
        let numbers = |numbers: &[i64]| Value::List(numbers.iter().copied().map(Value::Number).collect());
        assert_eq!(entries[0], Entry { name: "a".into(), value: Value::Number(1) });
        assert_eq!(entries[1].value, Value::List(vec![numbers(&[1, -2]), numbers(&[])]));
        assert_eq!(read("").unwrap(), []);
    }

    #[test]
    fn places_are_named() {
        assert_eq!(refused("a = 1"), "f:1:6: expected `;`, found the end of the file");
        assert_eq!(refused("a = 1;\nA = 2;"), "f:2:2: `A` is given twice");
        assert_eq!(refused("a = x;"), "f:1:5: expected a whole number or `[`, found `x`");
        assert_eq!(refused("a = 1-2;"), "f:1:5: expected a whole number or `[`, found `1`");
        assert_eq!(refused("a = 99999999999999999999;"), "f:1:5: the number is too large");
        assert_eq!(refused("a = [1 2];"), "f:1:8: expected `,` or `]`, found `2`");
        assert_eq!(refused("{}"), "f:1:1: expected the name of an entry, found `{`");
        assert_eq!(refused(&("a=".to_owned() + &"[".repeat(1 << 20))), "f:1:8: more than 4 lists within each other");
    }
}
