//! How much of an experiment runs: all that its page tells of, or a little of each part.

/// All of an experiment, or a quick look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// As it is published.
    Full,
    /// The same parts and tables in at most two minutes: fewer sizes and repetitions, shorter times.
    Quick,
}

impl Scale {
    /// A count, a time or a list: each of them is as large as the scale says.
    pub fn of<T>(self, full: T, quick: T) -> T {
        match self {
            Scale::Full => full,
            Scale::Quick => quick,
        }
    }

    /// What a table says of an aim. A quick run has too few samples to hold anything against it.
    pub fn verdict(self, is_met: bool) -> &'static str {
        match (self, is_met) {
            (Scale::Quick, _) => "not judged: quick run",
            (Scale::Full, true) => "met",
            (Scale::Full, false) => "**not met**",
        }
    }

    /// What stands below a table of aims.
    pub fn summary(self, met: usize, all: usize) -> String {
        match self {
            Scale::Full => format!("{met} of {all} aims are met."),
            Scale::Quick => format!("A quick run does not judge its {all} aims."),
        }
    }

    /// What stands above everything that a run says; `None` for a full one.
    pub fn note(self) -> Option<&'static str> {
        const NOTE: &str =
            "Quick run: fewer and shorter measurements than the experiment has. Its figures are not for \
                            publication, and its aims are not judged.";
        self.of(None, Some(NOTE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_full_run_is_judged() {
        assert_eq!([true, false].map(|met| Scale::Full.verdict(met)), ["met", "**not met**"]);
        assert_eq!([true, false].map(|met| Scale::Quick.verdict(met)), ["not judged: quick run"; 2]);
        assert_eq!(Scale::Full.summary(1, 2), "1 of 2 aims are met.");
        assert_eq!((Scale::Full.of(9, 1), Scale::Quick.of(9, 1)), (9, 1));
        assert!(Scale::Full.note().is_none() && Scale::Quick.note().is_some());
    }
}
