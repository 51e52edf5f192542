//! The grammar of rt-app's files: JSON as json-c and workgen read it.
//!
//! Beyond JSON it has comments of C, repeated keys, commas before a closing bracket, and keys without a value
//! (`"suspend",`).

use crate::scan::{Fault, Scanner};

/// The most objects and lists within each other. A file of rt-app needs five.
const MOST_LEVELS: usize = 32;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null`, or no value at all.
    Null,
    /// `true` or `false`.
    Flag(bool),
    /// A whole number.
    Whole(i64),
    /// Another number.
    Number,
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Value>),
    /// An object: its keys in their order, which may be repeated.
    Object(Vec<(String, Value)>),
}

impl Value {
    /// Returns the kind of value, in words.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "no value",
            Value::Flag(_) => "`true` or `false`",
            Value::Whole(_) => "a whole number",
            Value::Number => "a number that is not whole, or too large",
            Value::Text(_) => "a text",
            Value::List(_) => "a list",
            Value::Object(_) => "an object",
        }
    }
}

/// Reads a file: one value, with white space and comments around it.
pub fn read(text: &str) -> Result<Value, Fault> {
    let mut scanner = Scanner::new(text);
    let value = value(&mut scanner, 0)?;
    scanner.skip()?;
    match scanner.peek() {
        None => Ok(value),
        Some(_) => Err(scanner.unexpected("the end of the file")),
    }
}

fn value(scanner: &mut Scanner, level: usize) -> Result<Value, Fault> {
    scanner.skip()?;
    if level > MOST_LEVELS {
        return Err(scanner.fault(format!("more than {MOST_LEVELS} objects and lists within each other")));
    }
    match scanner.peek() {
        Some('{') => object(scanner, level),
        Some('[') => list(scanner, level),
        Some('"') => text(scanner).map(Value::Text),
        Some(c) if c == '-' || c.is_ascii_digit() => number(scanner),
        _ => word(scanner),
    }
}

fn object(scanner: &mut Scanner, level: usize) -> Result<Value, Fault> {
    scanner.expect('{')?;
    let mut entries = Vec::new();
    loop {
        scanner.skip()?;
        if scanner.eat('}') {
            return Ok(Value::Object(entries));
        }
        if scanner.peek() != Some('"') {
            return Err(scanner.unexpected("a key in double quotes or `}`"));
        }
        let key = text(scanner)?;
        scanner.skip()?;
        let value = if scanner.eat(':') { value(scanner, level + 1)? } else { Value::Null };
        entries.push((key, value));
        separator(scanner, '}')?;
    }
}

fn list(scanner: &mut Scanner, level: usize) -> Result<Value, Fault> {
    scanner.expect('[')?;
    let mut items = Vec::new();
    loop {
        scanner.skip()?;
        if scanner.eat(']') {
            return Ok(Value::List(items));
        }
        items.push(value(scanner, level + 1)?);
        separator(scanner, ']')?;
    }
}

/// Takes a comma, unless the closing bracket follows.
fn separator(scanner: &mut Scanner, closing: char) -> Result<(), Fault> {
    scanner.skip()?;
    match scanner.eat(',') || scanner.peek() == Some(closing) {
        true => Ok(()),
        false => Err(scanner.unexpected(&format!("`,` or `{closing}`"))),
    }
}

fn number(scanner: &mut Scanner) -> Result<Value, Fault> {
    let place = scanner.place();
    let digits = scanner.take_while(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    match (digits.parse::<i64>(), digits.parse::<f64>()) {
        (Ok(whole), _) => Ok(Value::Whole(whole)),
        (Err(_), Ok(_)) => Ok(Value::Number),
        (Err(_), Err(_)) => Err(scanner.fault_at(place, "this is no number")),
    }
}

fn word(scanner: &mut Scanner) -> Result<Value, Fault> {
    let place = scanner.place();
    match scanner.take_while(|c| c.is_ascii_alphanumeric()) {
        "null" => Ok(Value::Null),
        "true" => Ok(Value::Flag(true)),
        "false" => Ok(Value::Flag(false)),
        _ => Err(scanner.unexpected_at(place, "a value")),
    }
}

fn text(scanner: &mut Scanner) -> Result<String, Fault> {
    let open = scanner.place();
    scanner.expect('"')?;
    let mut text = String::new();
    loop {
        text += scanner.take_while(|c| !matches!(c, '"' | '\\' | '\n'));
        match scanner.peek() {
            Some('"') => {
                scanner.next();
                return Ok(text);
            }
            Some('\\') => text.push(escape(scanner)?),
            _ => return Err(scanner.fault_at(open, "the text has no end in its line")),
        }
    }
}

fn escape(scanner: &mut Scanner) -> Result<char, Fault> {
    let place = scanner.place();
    scanner.next();
    let escaped = match scanner.next() {
        Some('u') => unicode(scanner),
        Some('n') => Some('\n'),
        Some('t') => Some('\t'),
        Some('r') => Some('\r'),
        Some('b') => Some('\u{8}'),
        Some('f') => Some('\u{c}'),
        Some(same @ ('"' | '\\' | '/')) => Some(same),
        _ => None,
    };
    escaped.ok_or_else(|| scanner.fault_at(place, "the text has an escape that JSON does not know"))
}

/// Reads one character after `\u`: one unit, or two that are a surrogate pair. A half without its partner becomes the
/// replacement character.
fn unicode(scanner: &mut Scanner) -> Option<char> {
    let first = unit(scanner)?;
    let is_half = (0xd800..0xdc00).contains(&first) && scanner.rest().starts_with("\\u");
    if !is_half {
        return Some(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    scanner.next();
    scanner.next();
    let low = unit(scanner)?.checked_sub(0xdc00).filter(|low| *low < 0x400);
    let both = low.and_then(|low| char::from_u32(0x10000 + ((first - 0xd800) << 10) + low));
    Some(both.unwrap_or(char::REPLACEMENT_CHARACTER))
}

/// Reads four hexadecimal digits.
fn unit(scanner: &mut Scanner) -> Option<u32> {
    let digits = scanner.rest().get(..4)?;
    let is_hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let unit = u32::from_str_radix(digits, 16).ok().filter(|_| is_hexadecimal)?;
    (0..4).for_each(|_| _ = scanner.next());
    Some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        read(text).unwrap_err().within("f").to_string()
    }

    #[test]
    fn the_grammar_is_wider_than_json() {
        let text = "{ /* c */ \"run\": 1, \"run\": 2, // d\n \"suspend\", \"list\": [1, 2.5, true,], }";
        let Value::Object(entries) = read(text).unwrap() else { panic!("no object") };
        let keys: Vec<&str> = entries.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["run", "run", "suspend", "list"]);
        assert_eq!(entries[2].1, Value::Null);
        assert_eq!(entries[3].1, Value::List(vec![Value::Whole(1), Value::Number, Value::Flag(true)]));
    }

    #[test]
    fn escapes_are_those_of_json() {
        let of = |text: &str| read(text).unwrap();
        assert_eq!(of(r#""a\u0041\n\/""#), Value::Text("aA\n/".into()));
        assert_eq!(of(r#""\ud83d\ude00""#), Value::Text("\u{1f600}".into()));
        assert_eq!(of(r#""\ud83d\u0041x""#), Value::Text("\u{fffd}x".into()));
        assert_eq!(of(r#""\ud83d""#), Value::Text("\u{fffd}".into()));
        assert_eq!(refused(r#""\u12g4""#), "f:1:2: the text has an escape that JSON does not know");
        assert_eq!(refused("\"\\u\u{e9}\u{e9}"), "f:1:2: the text has an escape that JSON does not know");
    }

    #[test]
    fn places_are_named() {
        assert_eq!(refused(""), "f:1:1: expected a value, found the end of the file");
        assert_eq!(refused("{\n  \"a\": 1\n  \"b\": 2\n}"), "f:3:3: expected `,` or `}`, found `\"`");
        assert_eq!(refused("{a: 1}"), "f:1:2: expected a key in double quotes or `}`, found `a`");
        assert_eq!(refused("{\"a\": 1} x"), "f:1:10: expected the end of the file, found `x`");
        assert_eq!(refused("{\"a\": \"b\n\"}"), "f:1:7: the text has no end in its line");
        assert_eq!(refused("{\"a\": 1-2}"), "f:1:7: this is no number");
        assert_eq!(refused("{ /* "), "f:1:3: the comment has no end");
        assert_eq!(refused(&"[".repeat(1 << 20)), "f:1:34: more than 32 objects and lists within each other");
    }
}
