//! Corrects the p-values of many comparisons that are looked at together.

/// The adjusted p-values of Holm (1979), in the order of `p_values`. If those below a threshold are
/// called significant, the probability that any of them is so by chance alone stays below that
/// threshold, whatever the dependence among them (rates and latencies depend on each other).
pub(crate) fn adjusted_for_family(p_values: &[f64]) -> Vec<f64> {
    let mut ascending: Vec<usize> = (0..p_values.len()).collect();
    ascending.sort_by(|one, other| p_values[*one].total_cmp(&p_values[*other]));
    let mut adjusted = vec![1.0; p_values.len()];
    // An adjusted value is never below that of a smaller p-value.
    let mut largest: f64 = 0.0;
    for (smaller, index) in ascending.into_iter().enumerate() {
        let p_value = p_values[index] * (p_values.len() - smaller) as f64;
        largest = largest.max(p_value).min(1.0);
        adjusted[index] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_adjusted_in_their_order() {
        let adjusted = adjusted_for_family(&[0.03, 0.01, 0.5, 0.02]);
        for (found, truth) in adjusted.into_iter().zip([0.06_f64, 0.04, 0.5, 0.06]) {
            assert!((found - truth).abs() <= 1e-7 * truth, "{found} {truth}");
        }
        assert_eq!(adjusted_for_family(&[0.9, 0.8]), [1.0, 1.0]);
    }
}
