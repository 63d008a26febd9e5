//! Formatting doubles as MongoDB's tools do.

use millstream_core::put::Spare;

/// The longest text: `-2.2250738585072014E-308`.
const LONGEST: usize = 24;

/// Appends a double as `bsondump` writes it: the shortest digits that read back as the same number. Numbers below
/// 0.0001 and from a million on have an exponent of at least two digits; other numbers have a decimal point. Numbers
/// that are not finite are written as `Infinity`, `-Infinity` and `NaN`.
pub(super) fn append_double(out: &mut Vec<u8>, number: f64) {
    let mut text = [0; LONGEST];
    let mut spare = Spare::over(&mut text);
    match number.abs() {
        magnitude if magnitude == 0.0 || (1e-4..1e6).contains(&magnitude) => spare.put(number),
        f64::INFINITY => spare.put(if number > 0.0 { "Infinity" } else { "-Infinity" }),
        magnitude if magnitude.is_nan() => spare.put("NaN"),
        magnitude => {
            if number < 0.0 {
                spare.put('-');
            }
            put_with_exponent(&mut spare, magnitude);
        }
    }
    out.extend_from_slice(spare.as_bytes());
}

/// Writes a positive number with an exponent, even if its shortest text has none.
fn put_with_exponent(spare: &mut Spare<'_>, number: f64) {
    let mut shortest = [0; LONGEST];
    let mut text = Spare::over(&mut shortest);
    text.put(number);
    let text = std::str::from_utf8(text.as_bytes()).expect("digits are ASCII");
    let (mantissa, exponent) = match text.split_once('e') {
        Some((mantissa, exponent)) => (mantissa, exponent.parse().expect("an exponent")),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    // The digits without zeros at either end, and the power of ten of the first digit.
    let mut buffer = [0; LONGEST];
    let mut joined = Spare::over(&mut buffer);
    joined.put(whole);
    joined.put(fraction);
    let all = joined.as_bytes();
    let zeros = all.iter().take_while(|&&digit| digit == b'0').count();
    let end = all.iter().rposition(|&digit| digit != b'0').map_or(zeros, |last| last + 1);
    let digits = &all[zeros..end];
    let power = exponent + whole.len() as i32 - 1 - zeros as i32;
    spare.put(&digits[..1]);
    if digits.len() > 1 {
        spare.put('.');
        spare.put(&digits[1..]);
    }
    spare.put(if power < 0 { "E-" } else { "E+" });
    if power.abs() < 10 {
        spare.put('0');
    }
    spare.put(power.unsigned_abs());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(number: f64) -> String {
        let mut out = Vec::new();
        append_double(&mut out, number);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn as_the_tools_write_them() {
        for (number, expected) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-1.5, "-1.5"),
            (0.0001, "0.0001"),
            (0.00001, "1E-05"),
            (0.000012, "1.2E-05"),
            (999_999.9, "999999.9"),
            (100_000.0, "100000.0"),
            (1e6, "1E+06"),
            (-1234567.5, "-1.2345675E+06"),
            (1.2345678921232e18, "1.2345678921232E+18"),
            (1e16, "1E+16"),
            (9007199254740993.0, "9.007199254740992E+15"),
            (1e300, "1E+300"),
            (-f64::MIN_POSITIVE, "-2.2250738585072014E-308"),
            (5e-324, "5E-324"),
            (f64::MAX, "1.7976931348623157E+308"),
            (f64::NAN, "NaN"),
            (-f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(text(number), expected);
        }
    }

    proptest! {
        #[test]
        fn every_double_comes_back(number: f64) {
            let text = text(number);
            let again: f64 = text.parse().unwrap();
            prop_assert_eq!(again.to_bits(), number.to_bits(), "{}", text);
        }
    }
}
