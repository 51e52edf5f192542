//! A file for the collector `textfile` of the node exporter.

use std::io;
use std::path::Path;

use macrotick_model::whole;

/// Replaces a file as a whole: a reader sees the old text or the new one. The collector reads version 0.0.4 of the text
/// format, in which a counter and its samples have the same name.
///
/// # Errors
///
/// Those of the file.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    whole::write(path, plain(text).as_bytes())
}

/// Returns a text of OpenMetrics in the older format.
fn plain(text: &str) -> String {
    let counters: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter")).collect();
    let line = |line: &str| {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some(key @ ("TYPE" | "HELP")), Some(name), Some(rest)) if counters.contains(&name) => {
                format!("# {key} {name}_total {rest}\n")
            }
            _ => format!("{line}\n"),
        }
    };
    text.lines().filter(|line| *line != "# EOF").map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_have_the_name_of_their_samples() {
        let text = "# HELP a Jobs, all\n# TYPE a counter\na_total{b=\"c\"} 1\n# HELP g G\n# TYPE g gauge\ng 2\n# EOF\n";
        let wanted =
            "# HELP a_total Jobs, all\n# TYPE a_total counter\na_total{b=\"c\"} 1\n# HELP g G\n# TYPE g gauge\ng 2\n";
        assert_eq!(plain(text), wanted);
    }
}
