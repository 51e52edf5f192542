//! The comparison of an output with that of a page.
//!
//! Measured times may differ a little, because they depend on the build. All other text must be equal.

/// Returns the first line of an output that is not as the page has it, and the line of the page. A line `...` of the
/// page stands for any number of lines. Numbers may be others if `are_numbers_same` is false.
pub fn difference<'a>(seen: &'a str, page: &'a str, are_numbers_same: bool) -> Option<(&'a str, &'a str)> {
    let seen: Vec<&str> = seen.trim_end().lines().collect();
    let page: Vec<&str> = page.trim_end().lines().collect();
    let mut at = 0;
    let mut parts = page.split(|line| line.trim() == "...").peekable();
    let mut is_first = true;
    while let Some(part) = parts.next() {
        let rest = &seen[at..];
        let is_last = parts.peek().is_none();
        let start = match (is_first, is_last) {
            (true, _) => 0,
            (false, true) => rest.len().saturating_sub(part.len()),
            (false, false) => (0..rest.len()).find(|&start| is_at(&rest[start..], part, are_numbers_same)).unwrap_or(0),
        };
        for (number, line) in part.iter().enumerate() {
            let of_seen = rest.get(start + number).copied().unwrap_or("(no line)");
            if !is_same_line(of_seen, line, are_numbers_same) {
                return Some((of_seen, line));
            }
        }
        at += start + part.len();
        is_first = false;
        if is_last && at < seen.len() {
            return Some((seen[at], "(no line)"));
        }
    }
    None
}

/// Whether the lines begin with those of the page.
fn is_at(seen: &[&str], page: &[&str], are_numbers_same: bool) -> bool {
    let mut lines = seen.iter().zip(page);
    seen.len() >= page.len() && lines.all(|(seen, page)| is_same_line(seen, page, are_numbers_same))
}

fn is_same_line(seen: &str, page: &str, are_numbers_same: bool) -> bool {
    let (seen, page) = (words(seen), words(page));
    seen.len() == page.len()
        && seen.iter().zip(&page).all(|(seen, page)| {
            let may_differ = |of: fn(&str) -> bool| !are_numbers_same && of(seen) && of(page);
            is_same_word(seen, page) || may_differ(is_number) || may_differ(is_unit)
        })
}

/// Whether a word is the unit of a time: other numbers may have others.
fn is_unit(word: &str) -> bool {
    ["ns", "us", "ms", "s"].contains(&word.trim_end_matches([',', ';', '.', ')', ':']))
}

/// Whether a word is a number, perhaps in parentheses.
fn is_number(word: &str) -> bool {
    word.trim_matches(|letter: char| "():,".contains(letter)).parse::<f64>().is_ok()
}

/// The words of a line. Measured bars depend on the build; planned ones do not.
fn words(line: &str) -> Vec<&str> {
    let is_bar = |c: char| ('▁'..='█').contains(&c);
    let keeps_bars = line.split_whitespace().any(|word| word == "planned");
    line.split(|c: char| c.is_whitespace() || (is_bar(c) && !keeps_bars)).filter(|word| !word.is_empty()).collect()
}

/// Whether a word of an output is the word of the page. A decimal fraction depends a little on the compiler of the
/// kernel: it may differ by 0.5, or by 5 %.
fn is_same_word(seen: &str, page: &str) -> bool {
    let fraction = |word: &str| word.contains('.').then(|| word.parse::<f64>().ok()).flatten();
    match (fraction(seen), fraction(page)) {
        (Some(seen), Some(page)) => (seen - page).abs() <= f64::max(0.5, page.abs() / 20.0),
        _ => seen == page,
    }
}

#[test]
fn outputs_differ_in_words_counts_and_times() {
    let is_same = |seen, page| difference(seen, page, true).is_none();
    assert!(is_same("a  ▇▆ 1.25\n b 2 \n", "a ▁ 0.9\nb 2"));
    assert!(is_same("planner 9116.3", "planner 9200.1"));
    assert!(!is_same("planner 9116.3", "planner 10004.2"));
    assert!(!is_same("sensor 2.5", "sensor 3.1"));
    assert!(!is_same("500 misses", "501 misses"));
    assert!(!is_same("a\nb", "a"));
    assert!(!is_same("a", "a\nb"));
    assert!(!is_same("planned ▇▆", "planned ▇▁"));
    let is_like = |seen, page| difference(seen, page, false).is_none();
    assert!(is_like("camera (5): 4 jobs, 2.5 %", "camera (54): 40 jobs, 12.5 %"));
    assert!(is_like("at most 763 us, of", "at most 1.17 ms, of") && !is_same("763 us", "763 ms"));
    assert!(!is_like("camera (5): 4 jobs", "camera (5): 4 misses") && !is_like("4", "all"));
}

#[test]
fn lines_may_be_left_out() {
    let is_same = |seen, page| difference(seen, page, true).is_none();
    assert!(is_same("a\nb\nc\nd", "a\n...\nc\n..."));
    assert!(is_same("a\nb\nc\nd", "...\nd"));
    assert!(is_same("a\nb\nc\nd\n", "a\n...\n"));
    assert!(is_same("a\n", "a\n...\n"));
    assert!(!is_same("a\nb\nc\nd", "a\n...\nc"));
    assert!(!is_same("a\nb\nc\nd", "a\n...\nx\n..."));
    assert!(!is_same("a\nb", "b\n..."));
}
