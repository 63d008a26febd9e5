//! Statistics for a small number of runs: medians, outliers, and the uncertainty of comparisons.
//!
//! Run times have no known distribution, and a disturbance makes some of them far too long. Therefore everything here
//! is based on ranks or resampling, and nothing on means.

pub use millstream_rounds::{median, quantile};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Returns the smallest and the largest of some positive values.
pub fn range(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, 0.0), |(low, high), &value| (value.min(low), value.max(high)))
}

/// Estimates the standard deviation of the undisturbed values: 1.4826 times the median of the distances to the median.
/// Up to half of the values may be arbitrary.
///
/// # Panics
/// Panics if there are no values.
pub fn deviation(values: &[f64]) -> f64 {
    let middle = median(values);
    let distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    1.4826 * median(&distances)
}

/// Fewer runs than this give no 95 % interval: the probability that all of five runs are on the same side of the true
/// median is one in sixteen.
pub const FEWEST: usize = 6;

const RESAMPLES: usize = 2000;

/// Returns the 95 % interval of `compare(median(millstream), median(competitor))`; none if either has fewer than
/// [`FEWEST`] runs.
///
/// This is the percentile bootstrap with percentiles that are widened according to Student's distribution (T.
/// Hesterberg, "What Teachers Should Know About the Bootstrap", 2015); without this correction, seven runs give
/// intervals that are too narrow. If both have the same number of runs, the runs belong to the same rounds and are
/// resampled in pairs, so that a slow period that affected both has no influence. The random numbers start from a fixed
/// seed, so the same runs always have the same interval.
///
/// ```
/// use millstream_bench::statistics::interval;
/// let (millstream, competitor) = ([1.0, 1.1, 1.0, 0.9, 1.0, 1.0], [2.0, 2.2, 2.0, 1.8, 2.1, 2.0]);
/// let (low, high) = interval(&millstream, &competitor, |millstream, competitor| competitor / millstream).unwrap();
/// assert!(low <= 2.0 && 2.0 <= high);
/// assert_eq!(interval(&millstream[..5], &competitor, |millstream, competitor| competitor / millstream), None);
/// ```
pub fn interval(millstream: &[f64], competitor: &[f64], compare: impl Fn(f64, f64) -> f64) -> Option<(f64, f64)> {
    let fewest = millstream.len().min(competitor.len());
    if fewest < FEWEST {
        return None;
    }
    let mut random = SplitMix64::seed_from_u64(fewest as u64);
    let mut draw = |count: usize| -> Vec<usize> { (0..count).map(|_| random.next_u64() as usize % count).collect() };
    let middle = |values: &[f64], drawn: &[usize]| {
        let values: Vec<f64> = drawn.iter().map(|&at| values[at]).collect();
        median(&values)
    };
    let mut resample = || {
        let of_millstream = draw(millstream.len());
        let of_competitor =
            if millstream.len() == competitor.len() { of_millstream.clone() } else { draw(competitor.len()) };
        compare(middle(millstream, &of_millstream), middle(competitor, &of_competitor))
    };
    let values: Vec<f64> = (0..RESAMPLES).map(|_| resample()).collect();
    let tail = tail(fewest);
    Some((quantile(&values, tail), quantile(&values, 1.0 - tail)))
}

/// The share of resamples that lie outside on each side: 2.5 % for infinitely many runs, less for few.
fn tail(count: usize) -> f64 {
    let count = count as f64;
    let student = StudentsT::new(0.0, 1.0, count - 1.0).expect("there is more than one run");
    Normal::standard().cdf((count / (count - 1.0)).sqrt() * student.inverse_cdf(0.025))
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

    #[test]
    fn the_deviation_is_that_of_the_undisturbed() {
        let mut random = Random(SplitMix64::seed_from_u64(1));
        let mut values: Vec<f64> = (0..9_000).map(|_| 10.0 + 2.0 * random.normal()).collect();
        assert!((deviation(&values) - 2.0).abs() < 0.1, "{}", deviation(&values));
        values.extend([1e9; 500]);
        assert!((deviation(&values) - 2.0).abs() < 0.3, "{}", deviation(&values));
    }

    /// Random numbers with known distributions.
    struct Random(SplitMix64);

    impl Random {
        /// A number of the standard normal distribution, from the quantile of a uniform number.
        fn normal(&mut self) -> f64 {
            let uniform = ((self.0.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
            Normal::standard().inverse_cdf(uniform)
        }
    }

    /// Returns the number of experiments, of 250, in which the interval contains the true ratio, which is 2.
    fn covered(rounds: [usize; 2], noise: impl Fn(&mut Random) -> f64, together: f64) -> usize {
        let mut random = Random(SplitMix64::seed_from_u64(42));
        let mut experiment = || {
            let longest = rounds[0].max(rounds[1]);
            let moments: Vec<f64> = (0..longest).map(|_| (together * random.normal()).exp()).collect();
            let mut runs = |count: usize, median: f64| -> Vec<f64> {
                moments[..count].iter().map(|moment| median * moment * noise(&mut random)).collect()
            };
            let (millstream, competitor) = (runs(rounds[0], 1.0), runs(rounds[1], 2.0));
            let (low, high) =
                interval(&millstream, &competitor, |millstream, competitor| competitor / millstream).unwrap();
            low <= 2.0 && 2.0 <= high
        };
        (0..250).filter(|_| experiment()).count()
    }

    /// 95 % of 250 is 237.5, with a standard deviation of 3.4. The lower bound is three deviations below that; the
    /// upper bound only excludes intervals so wide that they always contain the ratio.
    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        let normal = |random: &mut Random| 1.0 + 0.02 * random.normal();
        let skewed = |random: &mut Random| (0.3 * random.normal()).exp();
        for rounds in [[6, 6], [7, 7], [7, 6], [20, 20]] {
            let found = [covered(rounds, normal, 0.0), covered(rounds, skewed, 0.0)];
            assert!(found.iter().all(|found| (228..250).contains(found)), "{rounds:?}: {found:?}");
        }
        // If slow periods that affect both are far longer than the difference between the two, the intervals are wider
        // than necessary.
        assert!(covered([7, 7], normal, 0.2) >= 228);
    }

    /// Paired intervals are far narrower than unpaired ones if the speed of the machine varies more than the runners do.
    #[test]
    fn a_slow_moment_of_both_does_not_count() {
        let moments = [1.0, 1.5, 1.1, 1.9, 1.3, 1.0, 1.2];
        let competitor: Vec<f64> = moments.iter().map(|moment| 3.0 * moment).collect();
        let ratio = |millstream: f64, competitor: f64| competitor / millstream;
        let (low, high) = interval(&moments, &competitor, ratio).unwrap();
        assert!((low - 3.0).abs() < 1e-9 && (high - 3.0).abs() < 1e-9, "{low} {high}");
        let (low, high) = interval(&moments, &competitor[..6], ratio).unwrap();
        assert!(high - low > 0.5, "{low} {high}");
    }
}
