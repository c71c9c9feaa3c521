//! Singular values, by Hestenes' one-sided Jacobi rotations: a few lines, and exact to the last digits also where the
//! smallest value is tiny, which eigenvalues of PᵀP would lose.

use super::bandit::Matrix;

/// Sweeps over all pairs of columns; tables of this size need fewer than ten.
const SWEEPS: usize = 60;

/// The singular values of a table, one per column, largest first. A table with more columns than rows has zeros among
/// them: the least is then 0, as the paper's ‖Ax‖₂ ≥ σ_min ‖x‖₂ for every x asks.
pub fn singular_values(matrix: &Matrix) -> Vec<f64> {
    let mut columns: Vec<Vec<f64>> =
        (0..matrix.columns()).map(|a| (0..matrix.rows()).map(|d| matrix.at(d, a)).collect()).collect();
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    for _ in 0..SWEEPS {
        let mut turned = false;
        for p in 0..columns.len() {
            for q in p + 1..columns.len() {
                let (pp, qq) = (dot(&columns[p], &columns[p]), dot(&columns[q], &columns[q]));
                let pq = dot(&columns[p], &columns[q]);
                if pq == 0.0 || pq.abs() <= 1e-15 * (pp * qq).sqrt() {
                    continue;
                }
                turned = true;
                // The rotation that makes the two columns orthogonal.
                let zeta = (qq - pp) / (2.0 * pq);
                let t = zeta.signum() / (zeta.abs() + zeta.hypot(1.0));
                let c = 1.0 / t.hypot(1.0);
                let s = c * t;
                let (before, after) = columns.split_at_mut(q);
                for (x, y) in before[p].iter_mut().zip(&mut after[0]) {
                    (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
                }
            }
        }
        if !turned {
            break;
        }
    }
    let mut values: Vec<f64> = columns.iter().map(|c| dot(c, c).sqrt()).collect();
    values.sort_by(|a, b| b.total_cmp(a));
    values
}

/// σ_min: the least singular value; what rounding leaves of a zero is 0.
pub fn smallest(matrix: &Matrix) -> f64 {
    let values = singular_values(matrix);
    let (Some(&largest), Some(&least)) = (values.first(), values.last()) else { return 0.0 };
    if matrix.columns() > matrix.rows() || least <= 1e-13 * largest { 0.0 } else { least }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::theory::bandit::{Bandit, Sizes};
    use proptest::prelude::*;

    #[test]
    fn known_values() {
        let diagonal = Matrix::new(3, 2, |d, a| if d == a { [3.0, 0.5][a] } else { 0.0 });
        assert_eq!(singular_values(&diagonal), [3.0, 0.5]);
        // [[1, 1], [0, 1]] has the golden ratio and its inverse.
        let shear = Matrix::new(2, 2, |d, a| if d <= a { 1.0 } else { 0.0 });
        let golden = (1.0 + 5f64.sqrt()) / 2.0;
        let found = singular_values(&shear);
        assert!((found[0] - golden).abs() < 1e-14 && (found[1] - 1.0 / golden).abs() < 1e-14, "{found:?}");
        assert_eq!(smallest(&Matrix::new(2, 3, |d, a| (d + 2 * a) as f64)), 0.0, "fewer descriptions than actions");
        assert_eq!(smallest(&Matrix::new(3, 2, |d, _| d as f64)), 0.0, "two actions described alike");
    }

    proptest! {
        #[test]
        fn no_vector_is_shortened_more_than_the_least_value(seed in 0..500u64, x in prop::collection::vec(-1.0..1.0f64, 4)) {
            let p = Bandit::random(Sizes { actions: 4, descriptions: 6, starts: 1 }, seed).descriptions.remove(0);
            let length = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
            prop_assert!(length(&p.times(&x)) >= smallest(&p) * length(&x) * (1.0 - 1e-12));
            let squares: f64 = singular_values(&p).iter().map(|v| v * v).sum();
            let entries: f64 = (0..6).map(|d| p.row(d).iter().map(|v| v * v).sum::<f64>()).sum();
            prop_assert!((squares - entries).abs() < 1e-12);
        }
    }
}
