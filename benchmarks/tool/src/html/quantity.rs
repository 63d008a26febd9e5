//! The format of numbers: one unit for a whole column, four significant digits for the smallest value, commas between
//! thousands.

/// A unit, and the number of decimals that are shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// The symbol of the unit.
    pub sign: &'static str,
    scale: f64,
    decimals: usize,
}

impl Unit {
    /// The unit for a column of times in seconds, from the shortest time.
    ///
    /// ```
    /// use millstream_bench::html::quantity::Unit;
    /// let unit = Unit::time(0.2826);
    /// assert_eq!((unit.show(0.2826), unit.show(9.0741), unit.sign), ("282.6".into(), "9,074.1".into(), "ms"));
    /// ```
    pub fn time(shortest: f64) -> Unit {
        Unit::fitting(shortest, &[("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)])
    }

    /// The unit for a column of sizes in bytes, from the smallest size.
    pub fn size(smallest: f64) -> Unit {
        Unit::fitting(smallest, &[("GiB", 1073741824.0), ("MiB", 1048576.0), ("KiB", 1024.0), ("B", 1.0)])
    }

    /// The unit for a column of rates per second, of bytes or of other items, from the lowest rate.
    pub fn rate(lowest: f64, of_bytes: bool) -> Unit {
        let units = [("billions", 1e9), ("millions", 1e6), ("thousands", 1e3), ("", 1.0)];
        let bytes = [("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)];
        Unit::fitting(lowest, if of_bytes { &bytes } else { &units })
    }

    /// The unit for plain numbers.
    pub fn plain(smallest: f64) -> Unit {
        Unit::fitting(smallest, &[("", 1.0)])
    }

    /// The largest unit that is not greater than the value, or the last unit.
    fn fitting(value: f64, units: &[(&'static str, f64)]) -> Unit {
        let last = *units.last().expect("there is a unit");
        let (sign, scale) = units.iter().copied().find(|&(_, scale)| value >= scale).unwrap_or(last);
        Unit { sign, scale, decimals: decimals(value / scale) }
    }

    /// Formats the value without the symbol.
    pub fn show(&self, value: f64) -> String {
        grouped(value / self.scale, self.decimals)
    }
}

/// Formats one value with its unit, such as `282.6 ms`.
pub fn time(seconds: f64) -> String {
    with_sign(Unit::time(seconds), seconds)
}

/// Formats one size with its unit, such as `2.844 MiB`.
pub fn size(bytes: f64) -> String {
    with_sign(Unit::size(bytes), bytes)
}

fn with_sign(unit: Unit, value: f64) -> String {
    format!("{}\u{a0}{}", unit.show(value), unit.sign)
}

/// Formats a ratio with three significant digits, such as `2.22` or `37.4`.
pub fn ratio(value: f64) -> String {
    grouped(value, decimals(value).saturating_sub(1))
}

/// The number of decimals that gives four significant digits.
fn decimals(value: f64) -> usize {
    match value.abs() {
        v if v >= 1000.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        _ => 3,
    }
}

/// Formats a number with this many decimals and with commas between thousands.
///
/// ```
/// use millstream_bench::html::quantity::grouped;
/// assert_eq!([grouped(-203471.2, 0), grouped(718964.3951, 3), grouped(-0.4, 0)], ["-203,471", "718,964.395", "0"]);
/// ```
pub fn grouped(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let groups: Vec<&str> =
        whole.as_bytes().rchunks(3).rev().map(|group| str::from_utf8(group).expect("digits are ASCII")).collect();
    let is_zero = text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let sign = if value < 0.0 && !is_zero { "-" } else { "" };
    format!("{sign}{}{fraction}", groups.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_fits_the_smallest() {
        assert_eq!(time(1.2734), "1.273\u{a0}s");
        assert_eq!(time(2.58e-9), "2.580\u{a0}ns");
        assert_eq!(time(3e-10), "0.300\u{a0}ns");
        assert_eq!(size(2_981_888.0), "2.844\u{a0}MiB");
        assert_eq!(Unit::rate(1.4e9, true).show(5.6e9), "5.600");
        assert_eq!([ratio(2.2168), ratio(37.42), ratio(1234.5)], ["2.22", "37.4", "1,234"]);
    }
}
