//! The sums that a choice of lengths can reach.

/// The length that reached a sum last, by index. Two values are none.
const UNREACHED: u32 = u32::MAX;
const EMPTY: u32 = u32::MAX - 1;

/// All sums of some lengths up to a limit. The memory is used again.
#[derive(Default)]
pub(super) struct Sums {
    last: Vec<u32>,
}

impl Sums {
    /// Computes the sums of `lengths` up to `limit`. A sum has the lengths that come first.
    pub fn compute(&mut self, lengths: impl Iterator<Item = usize>, limit: usize) {
        self.last.clear();
        self.last.resize(limit + 1, UNREACHED);
        self.last[0] = EMPTY;
        let mut top = 0;
        for (index, length) in lengths.enumerate().filter(|&(_, length)| length <= limit) {
            top = (top + length).min(limit);
            for sum in (length..=top).rev() {
                if self.last[sum] == UNREACHED && self.last[sum - length] != UNREACHED {
                    self.last[sum] = index as u32;
                }
            }
        }
    }

    /// Returns the sums, from the least.
    pub fn all(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.last.len()).filter(|&sum| self.last[sum] != UNREACHED)
    }

    /// Returns the indices of the lengths of a sum, from the last.
    pub fn parts(&self, mut sum: usize, length: impl Fn(usize) -> usize) -> Vec<usize> {
        let mut parts = Vec::new();
        while sum > 0 {
            let index = self.last[sum] as usize;
            parts.push(index);
            sum -= length(index);
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_have_their_parts() {
        let lengths = [5, 3, 3, 9];
        let mut sums = Sums::default();
        sums.compute(lengths.into_iter(), 12);
        assert_eq!(sums.all().collect::<Vec<_>>(), [0, 3, 5, 6, 8, 9, 11, 12]);
        for sum in [3, 5, 6, 8, 9, 11, 12] {
            let mut parts = sums.parts(sum, |index| lengths[index]);
            assert_eq!(parts.iter().map(|&index| lengths[index]).sum::<usize>(), sum);
            parts.dedup();
            assert!(parts.is_sorted_by(|before, then| before > then), "no length twice: {parts:?}");
        }
    }
}
