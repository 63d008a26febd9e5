//! Medians and quantiles of a few values.

/// Returns the value below which the fraction `q` (0 to 1) of the values is, interpolated between neighbours.
///
/// # Panics
/// Panics if there are no values.
///
/// ```
/// assert_eq!(millstream_rounds::quantile(&[1.0, 2.0, 4.0], 0.25), 1.5);
/// ```
pub fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let at = q * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    low + (high - low) * at.fract()
}

/// Returns the middle value.
///
/// # Panics
/// Panics if there are no values.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}
