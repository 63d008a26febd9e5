//! The few statistics that a handful of runs supports: the median and the middle half.

/// The value below which the share `q` (0 to 1) of the values lies, interpolated between neighbours.
///
/// # Panics
/// Without values.
///
/// ```
/// use millstream_bench::statistics::quantile;
/// assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.25), 1.5);
/// ```
pub fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = q * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    low + (high - low) * at.fract()
}

/// The middle value.
///
/// # Panics
/// Without values.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_the_values() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.25), 2.0);
        assert_eq!(quantile(&[7.0], 0.75), 7.0);
    }
}
