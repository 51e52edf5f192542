//! Text from others as a terminal may show it: nothing in it moves the cursor, colours what follows or turns its direction.

/// Whether a terminal does something with a character other than showing it. Those of Unicode's categories Cc, and of Cf
/// what turns the direction of text.
fn steers(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text with such characters as escapes, but for the ends of lines.
pub fn visible(text: &str) -> String {
    let show = |character: char| match character {
        '\n' => "\n".to_owned(),
        character if steers(character) => character.escape_unicode().to_string(),
        character => character.to_string(),
    };
    text.chars().map(show).collect()
}

/// The text with one character for each such one: columns stay.
pub fn visible_in_place(text: &str) -> String {
    let show = |character| match character {
        '\t' => ' ',
        character if steers(character) => char::REPLACEMENT_CHARACTER,
        character => character,
    };
    text.chars().map(show).collect()
}

/// Characters of a message.
const MOST_TOLD: usize = 800;

/// A message that quotes something huge, without the middle.
pub fn shortened(message: &str) -> String {
    let characters = message.chars().count();
    if characters <= MOST_TOLD {
        return message.into();
    }
    let part = |from, count| message.chars().skip(from).take(count).collect::<String>();
    format!("{}...{}", part(0, MOST_TOLD * 3 / 4), part(characters - MOST_TOLD / 4, MOST_TOLD / 4))
}
