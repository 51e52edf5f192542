//! Work with a fixed number of instructions: multiplications of small matrices, as in the paper.

const N: usize = 3;

/// What is multiplied. Integers, which wrap: floating point is slow to interpret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matrix([[u64; N]; N]);

impl Default for Matrix {
    fn default() -> Matrix {
        Matrix([[1, 2, 3], [4, 5, 6], [7, 8, 10]])
    }
}

impl Matrix {
    fn times(&self, other: &Matrix) -> Matrix {
        let cell =
            |i: usize, j: usize| (0..N).fold(0u64, |sum, k| sum.wrapping_add(self.0[i][k].wrapping_mul(other.0[k][j])));
        Matrix([0, 1, 2].map(|i| [0, 1, 2].map(|j| cell(i, j))))
    }
}

/// So many multiplications.
#[inline(never)]
pub fn work(matrix: &mut Matrix, multiplications: u32) {
    let factor = Matrix::default();
    for _ in 0..multiplications {
        *matrix = std::hint::black_box(matrix.times(std::hint::black_box(&factor)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_are_multiplied() {
        let mut matrix = Matrix([[1, 0, 0], [0, 1, 0], [0, 0, 1]]);
        work(&mut matrix, 1);
        assert_eq!(matrix, Matrix::default());
        work(&mut matrix, 1);
        assert_eq!(matrix.0[0], [30, 36, 45]);
    }
}
