//! The statistics that a handful of runs supports: medians, how far from them is far, and how sure a comparison is.
//!
//! Run times have no known distribution, and a busy moment makes some of them far too long. So everything here goes by
//! ranks or by resampling, nothing by means.

pub use millstream_rounds::{median, quantile};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// The smallest and the largest of some positive values.
pub fn range(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, 0.0), |(low, high), &value| (value.min(low), value.max(high)))
}

/// What the standard deviation of the undisturbed values would be: 1.4826 times the median of the distances to their
/// median. Half of the values may be anything.
///
/// # Panics
/// Without values.
pub fn deviation(values: &[f64]) -> f64 {
    let middle = median(values);
    let distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    1.4826 * median(&distances)
}

/// Fewer runs than these support no interval of 95 %: the median of five is outside all of them one time in sixteen.
pub const FEWEST: usize = 6;

const RESAMPLES: usize = 2000;

/// The 95 % interval of `compare(median(ours), median(rival))`; none with fewer than [`FEWEST`] runs of either.
///
/// It is the percentile bootstrap, whose percentiles are moved outwards as Student's distribution asks for (T. Hesterberg,
/// "What Teachers Should Know About the Bootstrap", 2015): without that, seven runs give intervals that are too narrow.
/// As many runs of one as of the other are runs of the same rounds and stay pairs, so that a slow moment that hit both
/// does not count. The random numbers start from a fixed seed: the same runs have the same interval.
///
/// ```
/// use millstream_bench::statistics::interval;
/// let (ours, rival) = ([1.0, 1.1, 1.0, 0.9, 1.0, 1.0], [2.0, 2.2, 2.0, 1.8, 2.1, 2.0]);
/// let (low, high) = interval(&ours, &rival, |ours, rival| rival / ours).unwrap();
/// assert!(low <= 2.0 && 2.0 <= high);
/// assert_eq!(interval(&ours[..5], &rival, |ours, rival| rival / ours), None);
/// ```
pub fn interval(ours: &[f64], rival: &[f64], compare: impl Fn(f64, f64) -> f64) -> Option<(f64, f64)> {
    let fewest = ours.len().min(rival.len());
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
        let of_ours = draw(ours.len());
        let of_rival = if ours.len() == rival.len() { of_ours.clone() } else { draw(rival.len()) };
        compare(middle(ours, &of_ours), middle(rival, &of_rival))
    };
    let values: Vec<f64> = (0..RESAMPLES).map(|_| resample()).collect();
    let tail = tail(fewest);
    Some((quantile(&values, tail), quantile(&values, 1.0 - tail)))
}

/// The share of resamples outside on one side: 2.5 % of infinitely many runs, less of few.
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

    /// Numbers of known distributions.
    struct Random(SplitMix64);

    impl Random {
        /// Of the standard normal distribution, by the quantile of a uniform number.
        fn normal(&mut self) -> f64 {
            let uniform = ((self.0.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
            Normal::standard().inverse_cdf(uniform)
        }
    }

    /// In how many of 250 experiments the interval holds the true ratio, which is 2.
    fn covered(rounds: [usize; 2], noise: impl Fn(&mut Random) -> f64, together: f64) -> usize {
        let mut random = Random(SplitMix64::seed_from_u64(42));
        let mut experiment = || {
            let longest = rounds[0].max(rounds[1]);
            let moments: Vec<f64> = (0..longest).map(|_| (together * random.normal()).exp()).collect();
            let mut runs = |count: usize, median: f64| -> Vec<f64> {
                moments[..count].iter().map(|moment| median * moment * noise(&mut random)).collect()
            };
            let (ours, rival) = (runs(rounds[0], 1.0), runs(rounds[1], 2.0));
            let (low, high) = interval(&ours, &rival, |ours, rival| rival / ours).unwrap();
            low <= 2.0 && 2.0 <= high
        };
        (0..250).filter(|_| experiment()).count()
    }

    /// 95 % of 250 is 237.5, and a standard deviation of that 3.4: below, three of them; above, everything but an interval
    /// that is always right because it is useless.
    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        let normal = |random: &mut Random| 1.0 + 0.02 * random.normal();
        let skewed = |random: &mut Random| (0.3 * random.normal()).exp();
        for rounds in [[6, 6], [7, 7], [7, 6], [20, 20]] {
            let found = [covered(rounds, normal, 0.0), covered(rounds, skewed, 0.0)];
            assert!(found.iter().all(|found| (228..250).contains(found)), "{rounds:?}: {found:?}");
        }
        // Where slow moments of both are far longer than what differs between the two, they promise less than they keep.
        assert!(covered([7, 7], normal, 0.2) >= 228);
    }

    /// What is paired is far surer than what is not, if moments differ more than runs do.
    #[test]
    fn a_slow_moment_of_both_does_not_count() {
        let moments = [1.0, 1.5, 1.1, 1.9, 1.3, 1.0, 1.2];
        let rival: Vec<f64> = moments.iter().map(|moment| 3.0 * moment).collect();
        let ratio = |ours: f64, rival: f64| rival / ours;
        let (low, high) = interval(&moments, &rival, ratio).unwrap();
        assert!((low - 3.0).abs() < 1e-9 && (high - 3.0).abs() < 1e-9, "{low} {high}");
        let (low, high) = interval(&moments, &rival[..6], ratio).unwrap();
        assert!(high - low > 0.5, "{low} {high}");
    }
}
