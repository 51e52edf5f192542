//! Foreign text in a form that is safe in a terminal: it cannot move the cursor, change colours or reverse the
//! direction.

/// Whether a character does more in a terminal than show itself, or has no fixed appearance: Unicode's categories Cc,
/// Cf, Zl, Zp and Co.
fn steers(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}'
            | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{e000}'..='\u{f8ff}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0001}'..='\u{e007f}' | '\u{f0000}'..='\u{10ffff}')
}

/// Replaces such characters by escapes, except the ends of lines.
pub fn visible(text: &str) -> String {
    let show = |character: char| match character {
        '\n' => "\n".to_owned(),
        character if steers(character) => character.escape_unicode().to_string(),
        character => character.to_string(),
    };
    text.chars().map(show).collect()
}

/// Replaces each such character by one other character, so columns stay the same.
pub fn visible_in_place(text: &str) -> String {
    let show = |character| match character {
        '\t' => ' ',
        character if steers(character) => char::REPLACEMENT_CHARACTER,
        character => character,
    };
    text.chars().map(show).collect()
}

/// The largest number of characters of a message.
const MOST_TOLD: usize = 800;

/// Cuts the middle out of a message that is too long.
pub fn shortened(message: &str) -> String {
    let characters = message.chars().count();
    if characters <= MOST_TOLD {
        return message.into();
    }
    let part = |from, count| message.chars().skip(from).take(count).collect::<String>();
    format!("{}...{}", part(0, MOST_TOLD * 3 / 4), part(characters - MOST_TOLD / 4, MOST_TOLD / 4))
}
