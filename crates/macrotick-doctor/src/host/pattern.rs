//! Patterns of paths and names: `*` stands for any characters, none of them a slash.

/// A pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    pieces: Vec<String>,
    /// Whether a `*` may stand for a slash, as in the name of a thread.
    slashes: bool,
}

impl Pattern {
    /// Makes the pattern of a path.
    pub fn new(pattern: &str) -> Pattern {
        Pattern { pieces: pattern.split('*').map(str::to_owned).collect(), slashes: false }
    }

    /// Makes the pattern of a name.
    pub fn name(pattern: &str) -> Pattern {
        Pattern { slashes: true, ..Pattern::new(pattern) }
    }

    /// Returns the characters before the first `*`.
    pub fn fixed(&self) -> &str {
        &self.pieces[0]
    }

    /// Whether a text has this form.
    pub fn is(&self, text: &str) -> bool {
        self.parts(text).is_some()
    }

    /// Returns the shortest texts in the place of each `*`; `None`: the text has another form.
    pub fn parts<'a>(&self, text: &'a str) -> Option<Vec<&'a str>> {
        let mut rest = text.strip_prefix(self.fixed())?;
        let mut parts = Vec::new();
        for (index, piece) in self.pieces.iter().enumerate().skip(1) {
            let is_last = index + 1 == self.pieces.len();
            let end = if is_last { rest.strip_suffix(piece.as_str())?.len() } else { rest.find(piece.as_str())? };
            let part = &rest[..end];
            if part.contains('/') && !self.slashes {
                return None;
            }
            parts.push(part);
            rest = &rest[end + piece.len()..];
        }
        rest.is_empty().then_some(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_ends_at_a_slash() {
        let pattern = Pattern::new("/proc/irq/*/smp_affinity_list");
        assert_eq!(pattern.parts("/proc/irq/30/smp_affinity_list"), Some(vec!["30"]));
        for other in ["/proc/irq/30/x/smp_affinity_list", "/proc/irq/30/smp_affinity", "/proc/irq", ""] {
            assert!(!pattern.is(other), "{other}");
        }
    }

    #[test]
    fn a_name_has_slashes() {
        assert!(Pattern::name("irq/*").is("irq/30-eth0/1") && Pattern::name("ksoftirqd/*").is("ksoftirqd/0"));
        assert!(!Pattern::name("ksoftirqd/*").is("ksoftirqd"));
        assert_eq!(Pattern::name("napi/*-*").parts("napi/eth0-8193"), Some(vec!["eth0", "8193"]));
        assert!(Pattern::name("a").is("a") && !Pattern::name("a").is("ab"));
    }
}
