//! Ticks for each kind of CPU. A number that a kind does not have is a refusal, which counts only for tasks of this kind.

use std::rc::Rc;

use super::element::Refusal;

/// Ticks of one kind of CPU.
pub type Ticks = Result<i64, Rc<Refusal>>;

/// Ticks of each kind of CPU, in the order of the kinds.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost(Vec<Ticks>);

impl Cost {
    /// No ticks.
    pub fn none(kinds: usize) -> Cost {
        Cost(vec![Ok(0); kinds])
    }

    /// The same refusal for each kind.
    pub fn refused(kinds: usize, refusal: Rc<Refusal>) -> Cost {
        Cost(vec![Err(refusal); kinds])
    }

    /// The number of each kind.
    pub fn each(ticks: impl IntoIterator<Item = Ticks>) -> Cost {
        Cost(ticks.into_iter().collect())
    }

    /// Returns the ticks of one kind.
    pub fn of(&self, kind: usize) -> &Ticks {
        &self.0[kind]
    }

    /// Adds what follows. `beyond` is the refusal of a sum beyond all numbers.
    pub fn add(&mut self, other: &Cost, beyond: impl Fn() -> Rc<Refusal>) {
        self.join(other, |one, other| one.checked_add(other).ok_or_else(&beyond));
    }

    /// Takes the longer one of two paths.
    pub fn or(&mut self, other: &Cost) {
        self.join(other, |one, other| Ok(one.max(other)));
    }

    /// Repeats the whole.
    pub fn repeat(&mut self, times: i64, beyond: impl Fn() -> Rc<Refusal>) {
        for ticks in &mut self.0 {
            if let Ok(number) = ticks {
                *ticks = number.checked_mul(times).ok_or_else(&beyond);
            }
        }
    }

    fn join(&mut self, other: &Cost, join: impl Fn(i64, i64) -> Ticks) {
        for (one, other) in self.0.iter_mut().zip(&other.0) {
            match (&one, other) {
                (Ok(number), Ok(more)) => *one = join(*number, *more),
                (Ok(_), Err(refusal)) => *one = Err(refusal.clone()),
                (Err(_), _) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(reason: &str) -> Rc<Refusal> {
        Rc::new(Refusal { place: "f".into(), reason: reason.into() })
    }

    #[test]
    fn kinds_are_apart() {
        let mut cost = Cost::each([Ok(1), Ok(5), Ok(i64::MAX)]);
        cost.add(&Cost::each([Ok(2), Err(refusal("none")), Ok(1)]), || refusal("beyond"));
        assert_eq!(cost, Cost::each([Ok(3), Err(refusal("none")), Err(refusal("beyond"))]));
        cost.or(&Cost::each([Ok(7), Ok(9), Ok(9)]));
        cost.repeat(2, || refusal("beyond"));
        assert_eq!(cost, Cost::each([Ok(14), Err(refusal("none")), Err(refusal("beyond"))]));
    }
}
