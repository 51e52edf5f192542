//! The kernel's configuration: joins fragments into one request, and checks that the request holds.

use std::collections::BTreeMap;

/// Joins fragments; of two lines for one option, the later one counts.
pub fn join(fragments: &[String]) -> String {
    let mut values = BTreeMap::new();
    for line in fragments.iter().flat_map(|text| text.lines()) {
        if let Some((symbol, value)) = parse_line(line) {
            values.insert(symbol, value);
        }
    }
    values.iter().map(|(symbol, value)| render(symbol, value.as_deref())).collect()
}

/// Returns the requested lines that do not hold in a `.config`.
pub fn missing(request: &str, config: &str) -> Vec<String> {
    let actual: BTreeMap<String, Option<String>> = config.lines().filter_map(parse_line).collect();
    request
        .lines()
        .filter_map(parse_line)
        .filter(|(symbol, wanted)| actual.get(symbol).cloned().flatten() != *wanted)
        .map(|(symbol, wanted)| render(&symbol, wanted.as_deref()).trim_end().to_owned())
        .collect()
}

/// Returns the value of an option in a `.config`, without the quotes of a text; `None` if it is not set.
pub fn value(config: &str, symbol: &str) -> Option<String> {
    let value = config.lines().filter_map(parse_line).find(|(found, _)| found == symbol)?.1?;
    Some(value.trim_matches('"').to_owned())
}

/// Returns the options that are set, with their values as they stand there.
pub fn all(config: &str) -> impl Iterator<Item = (String, String)> + '_ {
    config.lines().filter_map(parse_line).filter_map(|(symbol, value)| Some((symbol, value?)))
}

/// Returns the options that a configuration says something about, also that they are not set.
pub fn mentioned(config: &str) -> impl Iterator<Item = String> + '_ {
    config.lines().filter_map(parse_line).map(|(symbol, _)| symbol)
}

/// Whether a configuration says something about an option, also that it is not set.
pub fn mentions(config: &str, symbol: &str) -> bool {
    mentioned(config).any(|found| found == symbol)
}

/// Parses `CONFIG_X=value` or `# CONFIG_X is not set`; any other line is a comment.
fn parse_line(line: &str) -> Option<(String, Option<String>)> {
    let line = line.trim();
    if let Some(symbol) = line.strip_prefix("# ").and_then(|rest| rest.strip_suffix(" is not set")) {
        return symbol.starts_with("CONFIG_").then(|| (symbol.to_owned(), None));
    }
    let (symbol, value) = line.split_once('=')?;
    symbol.starts_with("CONFIG_").then(|| (symbol.to_owned(), Some(value.to_owned())))
}

/// Returns the line of an option; `None`: it is not set.
pub fn render(symbol: &str, value: Option<&str>) -> String {
    match value {
        Some(value) => format!("{symbol}={value}\n"),
        None => format!("# {symbol} is not set\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_fragments_win_and_comments_vanish() {
        let joined = join(&[
            "# words\nCONFIG_RT=y\nCONFIG_B=3\n".to_owned(),
            "# CONFIG_RT is not set\nCONFIG_A=\"x=y\"\n".to_owned(),
        ]);
        assert_eq!(joined, "CONFIG_A=\"x=y\"\nCONFIG_B=3\n# CONFIG_RT is not set\n");
    }

    #[test]
    fn every_request_that_does_not_hold_is_named() {
        let request = "CONFIG_A=y\nCONFIG_GONE=y\n# CONFIG_OFF is not set\n# CONFIG_ABSENT is not set\nCONFIG_N=2\n";
        let config = "CONFIG_A=y\nCONFIG_OFF=y\nCONFIG_N=16\n# CONFIG_GONE is not set\n";
        assert_eq!(missing(request, config), ["CONFIG_GONE=y", "# CONFIG_OFF is not set", "CONFIG_N=2"]);
        assert!(missing("CONFIG_A=y\n", "CONFIG_A=y\n").is_empty());
    }

    #[test]
    fn values_come_without_their_quotes() {
        let config = "CONFIG_CC_VERSION_TEXT=\"gcc (Debian 12.2.0-14) 12.2.0\"\nCONFIG_N=16\n# CONFIG_OFF is not set\n";
        assert_eq!(value(config, "CONFIG_CC_VERSION_TEXT").as_deref(), Some("gcc (Debian 12.2.0-14) 12.2.0"));
        assert_eq!(value(config, "CONFIG_N").as_deref(), Some("16"));
        assert_eq!((value(config, "CONFIG_OFF"), value(config, "CONFIG_ABSENT")), (None, None));
    }
}
