//! The scale of an experiment: everything that its page describes, or a little of each part.

/// A whole experiment, or a quick look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// A published run.
    Full,
    /// The same parts and tables in at most two minutes: fewer sizes and repetitions, shorter times.
    Quick,
}

impl Scale {
    /// Returns the value of this scale: a count, a time or a list.
    pub fn of<T>(self, full: T, quick: T) -> T {
        match self {
            Scale::Full => full,
            Scale::Quick => quick,
        }
    }

    /// Returns the verdict of an aim in tables. A quick run has too few samples to judge.
    pub fn verdict(self, is_met: bool) -> &'static str {
        match (self, is_met) {
            (Scale::Quick, _) => "not judged: quick run",
            (Scale::Full, true) => "met",
            (Scale::Full, false) => "**not met**",
        }
    }

    /// Returns the line below a table of aims.
    pub fn summary(self, met: usize, all: usize) -> String {
        match self {
            Scale::Full => format!("{met} of {all} aims are met."),
            Scale::Quick => format!("A quick run does not judge its {all} aims."),
        }
    }

    /// Returns the note above all output of a run; `None` for a full run.
    pub fn note(self) -> Option<&'static str> {
        const NOTE: &str =
            "Quick run: fewer and shorter measurements than a full run. Its figures cannot be published, and its aims \
             are not judged.";
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
