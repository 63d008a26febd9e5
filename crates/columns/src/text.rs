//! Which types a text can have without loss, and the values.
//!
//! The rules are those of `docs/types.md`. A value of an inferred type must print back losslessly: a number has the
//! same decimal value, and every other value the same digits.

use crate::span::Content;
use millstream::{ErrorKind, scan, sixteen_digits};
use time::{Date, Month};

/// A set of types, with one bit for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kinds(u32);

impl Kinds {
    pub(crate) const NONE: Kinds = Kinds(0);
    pub(crate) const ALL: Kinds = Kinds(u32::MAX);
    pub(crate) const BOOL: Kinds = Kinds(1);
    pub(crate) const INT64: Kinds = Kinds(1 << 1);
    pub(crate) const UINT64: Kinds = Kinds(1 << 2);
    /// An integer of at most 38 digits.
    pub(crate) const INTEGER: Kinds = Kinds(1 << 3);
    /// A number of at most 38 digits without an exponent.
    pub(crate) const DECIMAL: Kinds = Kinds(1 << 4);
    pub(crate) const FLOAT64: Kinds = Kinds(1 << 5);
    pub(crate) const DATE: Kinds = Kinds(1 << 6);
    /// Times and timestamps, without digits beyond microseconds, or beyond nanoseconds.
    pub(crate) const TIME_US: Kinds = Kinds(1 << 7);
    pub(crate) const TIME_NS: Kinds = Kinds(1 << 8);
    pub(crate) const TIMESTAMP_US: Kinds = Kinds(1 << 9);
    pub(crate) const TIMESTAMP_NS: Kinds = Kinds(1 << 10);
    /// Timestamps with a zone.
    pub(crate) const ZONED_US: Kinds = Kinds(1 << 11);
    pub(crate) const ZONED_NS: Kinds = Kinds(1 << 12);
    pub(crate) const STRING: Kinds = Kinds(1 << 13);

    pub(crate) const fn or(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }

    pub(crate) const fn and(self, other: Kinds) -> Kinds {
        Kinds(self.0 & other.0)
    }

    pub(crate) const fn has(self, other: Kinds) -> bool {
        self.0 & other.0 != 0
    }

    const fn when(self, is_so: bool) -> Kinds {
        if is_so { self } else { Kinds::NONE }
    }
}

/// A number, as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Written {
    is_negative: bool,
    /// The numbers of digits before and after the point.
    whole: u32,
    fraction: u32,
    exponent: i32,
    /// Whether it has a point or an exponent.
    is_integer: bool,
    /// Whether there are further zeros in front of the number.
    is_padded: bool,
    /// The digits without point, if there are at most 38.
    digits: Option<u128>,
}

impl Written {
    /// Reads `[-] DIGITS [. DIGITS] [e [+-] DIGITS]`, with digits on at least one side of the point.
    fn read(text: &[u8]) -> Option<Written> {
        let (is_negative, rest) = match text.split_first()? {
            (b'-', rest) => (true, rest),
            _ => (false, text),
        };
        let count = |bytes: &[u8]| bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let whole = count(rest);
        let mut end = whole;
        let mut fraction = 0;
        if rest.get(end) == Some(&b'.') {
            fraction = count(&rest[end + 1..]);
            end += 1 + fraction;
        }
        if whole + fraction == 0 || whole > 400 || fraction > 400 {
            return None;
        }
        let has_point = end > whole;
        let mut exponent = 0;
        let has_exponent = matches!(rest.get(end), Some(b'e' | b'E'));
        if has_exponent {
            let after = &rest[end + 1..];
            let (sign, digits) = match after.split_first()? {
                (b'-', digits) => (-1, digits),
                (b'+', digits) => (1, digits),
                _ => (1, after),
            };
            if digits.is_empty() || digits.len() > 4 || count(digits) < digits.len() {
                return None;
            }
            exponent = sign * digits.iter().fold(0, |value, digit| value * 10 + i32::from(digit - b'0'));
        } else if end < rest.len() {
            return None;
        }
        let all = rest[..whole].iter().chain(rest[..end].iter().skip(whole + 1));
        let digits = if whole + fraction < 20 {
            Some(u128::from(all.fold(0u64, |value, digit| value * 10 + u64::from(digit - b'0'))))
        } else {
            let next = |value: u128, digit: &u8| value.checked_mul(10)?.checked_add(u128::from(digit - b'0'));
            all.copied().try_fold(0, |value, digit| next(value, &digit)).filter(|&value| value < 10u128.pow(38))
        };
        Some(Written {
            is_negative,
            whole: whole as u32,
            fraction: fraction as u32,
            exponent,
            is_integer: !has_point && !has_exponent,
            is_padded: whole > 1 && rest[0] == b'0',
            digits,
        })
    }

    /// Returns the significant digits without zeros at their end, and the exponent of the last one.
    fn normal(&self) -> Option<(u128, i32)> {
        normal(self.digits?, self.exponent - self.fraction as i32)
    }
}

fn normal(mut digits: u128, mut exponent: i32) -> Option<(u128, i32)> {
    if digits == 0 {
        return Some((0, 0));
    }
    while digits.is_multiple_of(10) {
        digits /= 10;
        exponent += 1;
    }
    Some((digits, exponent))
}

/// Returns whether a double has exactly the decimal value that is written: whether its shortest text has it.
fn is_float(text: &[u8], written: &Written) -> bool {
    // Every decimal number of at most 15 digits is the shortest text of its double, except very large and small ones.
    let is_short = written.digits.is_some_and(|digits| digits < 10u128.pow(15));
    if is_short && (-280..280).contains(&(written.exponent - written.fraction as i32)) {
        return true;
    }
    let Some((digits, exponent)) = written.normal() else { return false };
    let Ok(value) = scan::parse::<f64>(text) else { return false };
    let mut buffer = zmij::Buffer::new();
    let shortest = Written::read(buffer.format(value.abs()).as_bytes());
    shortest.and_then(|shortest| shortest.normal()) == Some((digits, exponent))
}

/// Returns the digits in front of a text, and how many there are, up to 16. `None` if there are none, or the memory ends.
#[inline]
fn digits(memory: &[u8]) -> Option<(u64, usize)> {
    let (value, count) = sixteen_digits(memory.first_chunk()?);
    (count > 0).then_some((value, count))
}

/// Returns an integer of at most 16 digits without leading zeros.
#[inline]
fn short_integer(text: Content<'_>) -> Option<i64> {
    let sign = usize::from(text.rest.first() == Some(&b'-'));
    let rest = &text.rest[sign..];
    let (value, count) = digits(rest)?;
    let is_all = sign + count == text.len;
    let is_canonical = rest[0] != b'0' || text.len == 1;
    (is_all && is_canonical).then(|| if sign > 0 { -(value as i64) } else { value as i64 })
}

/// Powers of ten, which doubles have exactly.
const POWERS: [f64; 16] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// Returns the number of a text with digits on both sides of the point, or without a point, no exponent and no leading zeros, of
/// at most 15 digits. Both the digits and the power of ten are doubles exactly, so their quotient is the nearest double (Clinger,
/// "How to read floating point numbers accurately", 1990).
#[inline]
fn short_float(text: Content<'_>) -> Option<f64> {
    let sign = usize::from(text.rest.first() == Some(&b'-'));
    let rest = &text.rest[sign..];
    let len = text.len.checked_sub(sign)?;
    let (whole, count) = digits(rest)?;
    let (mut value, mut fraction) = (whole, 0);
    if count < len && rest[count] == b'.' {
        let (more, digits) = digits(&rest[count + 1..])?;
        (value, fraction) =
            (whole.checked_mul(POWERS.get(digits).map(|&power| power as u64)?)?.checked_add(more)?, digits);
    }
    let is_all = len == count + fraction + usize::from(fraction > 0);
    if !is_all || count + fraction > 15 || (count > 1 && rest[0] == b'0') {
        return None;
    }
    let value = value as f64 / POWERS[fraction];
    Some(if sign > 0 { -value } else { value })
}

/// What inference learns from a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) kinds: Kinds,
    /// The digits of a decimal number before and after the point.
    pub(crate) whole: u8,
    pub(crate) fraction: u8,
    /// The zone of a timestamp: its offset in minutes, and whether it is written as `Z`.
    pub(crate) zone: Option<Zone>,
}

/// The zone of a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zone {
    /// `Z`
    Utc,
    /// The minutes of `+HH:MM`.
    Offset(i16),
}

/// Which special numbers and dates are recognised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rules {
    /// `NaN`, `inf` and `-inf` are floating point numbers.
    pub(crate) special: bool,
}

/// Returns the types that a text can have without loss.
pub(crate) fn kinds(text: &[u8], rules: Rules) -> Seen {
    let mut seen = Seen { kinds: Kinds::STRING, whole: 0, fraction: 0, zone: None };
    match text.first() {
        Some(b'0'..=b'9' | b'-' | b'.') => {
            if let Some(written) = Written::read(text) {
                seen.kinds = seen.kinds.or(number(text, &written, rules));
                (seen.whole, seen.fraction) = (written.whole.min(99) as u8, written.fraction.min(99) as u8);
                return seen;
            }
        }
        Some(b't' | b'f') => seen.kinds = seen.kinds.or(Kinds::BOOL.when(text == b"true" || text == b"false")),
        _ => {}
    }
    if rules.special && special(text).is_some() {
        seen.kinds = seen.kinds.or(Kinds::FLOAT64);
    }
    if let Some(moment) = Moment::read(text) {
        let is_us = moment.nanoseconds.is_multiple_of(1_000) && moment.digits <= 6;
        let (us, ns) = match (moment.days, moment.has_time) {
            (Some(_), false) => {
                seen.kinds = seen.kinds.or(Kinds::DATE);
                return seen;
            }
            (None, _) => (Kinds::TIME_US, Kinds::TIME_NS),
            (Some(_), true) if moment.zone.is_some() => (Kinds::ZONED_US, Kinds::ZONED_NS),
            (Some(_), true) => (Kinds::TIMESTAMP_US, Kinds::TIMESTAMP_NS),
        };
        let fits = moment.days.is_none() || moment.value(1_000_000_000).is_some();
        seen.kinds = seen.kinds.or(us.when(is_us)).or(ns.when(fits));
        seen.zone = moment.zone;
    }
    seen
}

fn number(text: &[u8], written: &Written, _rules: Rules) -> Kinds {
    if written.is_padded {
        return Kinds::NONE;
    }
    let float = Kinds::FLOAT64.when(is_float(text, written));
    let is_zero = written.digits == Some(0);
    if written.exponent != 0 || (!written.is_integer && written.fraction == 0) || (is_zero && written.is_negative) {
        // An exponent, a point at the end and the sign of zero exist only in floating point numbers.
        return float;
    }
    let has_digits = written.digits.is_some();
    let decimal = Kinds::DECIMAL.when(has_digits && written.whole > 0);
    if !written.is_integer {
        return float.or(decimal);
    }
    let is_int64 = scan::parse::<i64>(text).is_ok();
    let is_uint64 = !written.is_negative && scan::parse::<u64>(text).is_ok();
    let integers = Kinds::INT64.when(is_int64).or(Kinds::UINT64.when(is_uint64)).or(Kinds::INTEGER.when(has_digits));
    float.or(decimal).or(integers)
}

/// Returns a number that is not finite.
fn special(text: &[u8]) -> Option<f64> {
    match text {
        b"NaN" => Some(f64::NAN),
        b"inf" => Some(f64::INFINITY),
        b"-inf" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// The value of a text as a type, or why it is none. `exact` refuses a text that does not print back losslessly; it is for
/// types that are inferred.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Values {
    pub(crate) exact: bool,
    pub(crate) rules: Rules,
}

type Parsed<T> = Result<T, ErrorKind>;

impl Values {
    pub(crate) fn bool(self, text: &[u8]) -> Parsed<bool> {
        match text {
            b"true" => Ok(true),
            b"false" => Ok(false),
            _ => Err(ErrorKind::TextInvalid),
        }
    }

    #[inline]
    pub(crate) fn integer<T: scan::Number + TryFrom<i64>>(self, text: Content<'_>) -> Parsed<T> {
        if let Some(value) = short_integer(text).and_then(|value| T::try_from(value).ok()) {
            return Ok(value);
        }
        let text = text.bytes();
        let is_exact = match text {
            [b'-', b'0', ..] => false,
            [b'0'] => true,
            [b'0' | b'+', ..] | [b'-', b'+', ..] => false,
            _ => true,
        };
        if self.exact && !is_exact {
            return Err(ErrorKind::NumberInvalid);
        }
        scan::parse::<T>(text)
    }

    #[inline]
    pub(crate) fn float64(self, text: Content<'_>) -> Parsed<f64> {
        if let Some(value) = short_float(text) {
            return Ok(value);
        }
        let text = text.bytes();
        if !self.exact {
            return scan::parse::<f64>(text);
        }
        match Written::read(text) {
            Some(written) if written.is_padded => Err(ErrorKind::NumberInvalid),
            Some(written) if is_float(text, &written) => scan::parse::<f64>(text),
            Some(_) => Err(ErrorKind::NumberOverflow),
            None if self.rules.special => special(text).ok_or(ErrorKind::NumberInvalid),
            None => Err(ErrorKind::NumberInvalid),
        }
    }

    pub(crate) fn decimal(self, text: &[u8], precision: u8, scale: i8) -> Parsed<i128> {
        let text = text.strip_prefix(b"+").filter(|_| !self.exact).unwrap_or(text);
        let written = Written::read(text).ok_or(ErrorKind::NumberInvalid)?;
        if self.exact && !number(text, &written, self.rules).has(Kinds::DECIMAL) {
            return Err(ErrorKind::NumberInvalid);
        }
        let (digits, exponent) = written.normal().ok_or(ErrorKind::NumberOverflow)?;
        let shift = exponent + i32::from(scale);
        let value = match (digits, u32::try_from(shift)) {
            (0, _) => Some(0),
            (_, Ok(shift)) => 10u128.checked_pow(shift).and_then(|factor| digits.checked_mul(factor)),
            // Digits after the last one that the type has.
            (_, Err(_)) => None,
        };
        let value = value.filter(|&value| value < 10u128.pow(u32::from(precision))).ok_or(ErrorKind::NumberOverflow)?;
        Ok(if written.is_negative { -(value as i128) } else { value as i128 })
    }

    pub(crate) fn date(self, text: &[u8]) -> Parsed<i32> {
        match Moment::read(text) {
            Some(Moment { days: Some(days), has_time: false, .. }) => Ok(days),
            _ => Err(ErrorKind::TextInvalid),
        }
    }

    /// A time of the day, in units of which a second has so many.
    pub(crate) fn time(self, text: &[u8], unit: i64) -> Parsed<i64> {
        match Moment::read(text) {
            Some(moment) if moment.days.is_none() => moment.value(unit).ok_or(ErrorKind::ValueOutOfRange),
            _ => Err(ErrorKind::TextInvalid),
        }
    }

    /// A timestamp without a zone.
    pub(crate) fn timestamp(self, text: &[u8], unit: i64) -> Parsed<i64> {
        let moment = Moment::read(text).filter(|moment| moment.days.is_some() && moment.zone.is_none());
        let moment = moment.filter(|moment| moment.has_time || !self.exact).ok_or(ErrorKind::TextInvalid)?;
        moment.value(unit).ok_or(ErrorKind::ValueOutOfRange)
    }

    /// A timestamp with a zone; an inferred type accepts only its own.
    pub(crate) fn zoned(self, text: &[u8], unit: i64, zone: Option<Zone>) -> Parsed<i64> {
        let moment = Moment::read(text).filter(|moment| moment.has_time).ok_or(ErrorKind::TextInvalid)?;
        let written = moment.zone.ok_or(ErrorKind::TextInvalid)?;
        if self.exact && Some(written) != zone {
            return Err(ErrorKind::TextInvalid);
        }
        moment.value(unit).ok_or(ErrorKind::ValueOutOfRange)
    }
}

impl Zone {
    /// The name in Arrow's types.
    pub(crate) fn name(self) -> String {
        match self {
            Zone::Utc => "UTC".to_string(),
            Zone::Offset(minutes) => {
                let sign = if minutes < 0 { '-' } else { '+' };
                format!("{sign}{:02}:{:02}", minutes.unsigned_abs() / 60, minutes.unsigned_abs() % 60)
            }
        }
    }

    /// The zone of this name, if the name tells its offset.
    pub(crate) fn of_name(name: &str) -> Option<Zone> {
        if matches!(name, "UTC" | "Z") {
            return Some(Zone::Utc);
        }
        match offset(name.as_bytes()) {
            Some(Zone::Offset(minutes)) => Some(Zone::Offset(minutes)),
            _ => None,
        }
    }

    fn minutes(self) -> i64 {
        match self {
            Zone::Utc => 0,
            Zone::Offset(minutes) => i64::from(minutes),
        }
    }
}

/// A date, a time of the day, or both, as ISO 8601 writes them: `2024-02-29`, `23:59:59.5`, `2024-02-29T23:59`, with a
/// space instead of the T, and with a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Moment {
    /// The days since 1970-01-01.
    days: Option<i32>,
    has_time: bool,
    seconds: u32,
    nanoseconds: u32,
    /// The number of digits of the fraction.
    digits: u8,
    zone: Option<Zone>,
}

impl Moment {
    fn read(text: &[u8]) -> Option<Moment> {
        if text.len() < 5 || !text[0].is_ascii_digit() {
            return None;
        }
        let mut moment = Moment { days: None, has_time: false, seconds: 0, nanoseconds: 0, digits: 0, zone: None };
        let mut rest = text;
        if text.get(4) == Some(&b'-') {
            moment.days = Some(days(text.get(..10)?)?);
            match text[10..].split_first() {
                None => return Some(moment),
                Some((b'T' | b' ', time)) => rest = time,
                Some(_) => return None,
            }
        }
        moment.has_time = true;
        let (hour, minute) = (two(rest)?, two(rest.get(3..)?)?);
        if rest[2] != b':' || hour > 23 || minute > 59 {
            return None;
        }
        rest = &rest[5..];
        let mut second = 0;
        let mut has_seconds = false;
        if let [b':', after @ ..] = rest {
            (second, has_seconds) = (two(after)?, true);
            rest = &after[2..];
            if second > 59 {
                return None;
            }
            if let [b'.', after @ ..] = rest {
                let digits = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
                if digits == 0 || digits > 9 {
                    return None;
                }
                let value = after[..digits].iter().fold(0, |value, digit| value * 10 + u32::from(digit - b'0'));
                (moment.nanoseconds, moment.digits) = (value * 10u32.pow(9 - digits as u32), digits as u8);
                rest = &after[digits..];
            }
        }
        moment.seconds = hour * 3600 + minute * 60 + second;
        if !rest.is_empty() {
            moment.zone = Some(offset(rest)?);
        }
        // A time of the day has seconds and no zone.
        let is_whole = moment.days.is_some() || (has_seconds && moment.zone.is_none());
        is_whole.then_some(moment)
    }

    /// The value in units of which a second has `unit`, if the unit has all digits and the value fits.
    fn value(&self, unit: i64) -> Option<i64> {
        let length = 1_000_000_000 / unit;
        let nanoseconds = i64::from(self.nanoseconds);
        if nanoseconds % length != 0 {
            return None;
        }
        let minutes = self.zone.map_or(0, Zone::minutes);
        let seconds = i64::from(self.days.unwrap_or(0)) * 86_400 + i64::from(self.seconds) - minutes * 60;
        seconds.checked_mul(unit)?.checked_add(nanoseconds / length)
    }
}

/// `YYYY-MM-DD` as days since 1970-01-01.
fn days(text: &[u8]) -> Option<i32> {
    let (year, month, day) = (two(text)? * 100 + two(&text[2..])?, two(&text[5..])?, two(&text[8..])?);
    if text[4] != b'-' || text[7] != b'-' {
        return None;
    }
    let month = Month::try_from(month as u8).ok()?;
    let date = Date::from_calendar_date(year as i32, month, day as u8).ok()?;
    Some(date.to_julian_day() - 2_440_588)
}

/// `Z`, `+HH`, `+HHMM` or `+HH:MM`.
fn offset(text: &[u8]) -> Option<Zone> {
    let (sign, rest) = match text {
        b"Z" => return Some(Zone::Utc),
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    };
    let minute = match rest {
        [_, _] => 0,
        [_, _, b':', minute @ ..] | [_, _, minute @ ..] if minute.len() == 2 => two(minute)?,
        _ => return None,
    };
    let hour = two(rest)?;
    // RFC 3339 writes -00:00 for an unknown zone.
    let is_zone = hour < 24 && minute < 60 && (sign > 0 || hour + minute > 0);
    is_zone.then(|| Zone::Offset(sign * (hour * 60 + minute) as i16))
}

/// The first two digits as a number.
fn two(text: &[u8]) -> Option<u32> {
    match text {
        [a @ b'0'..=b'9', b @ b'0'..=b'9', ..] => Some(u32::from(a - b'0') * 10 + u32::from(b - b'0')),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    fn value<T>(text: &[u8], memory: &[u8], convert: impl Fn(Content<'_>) -> Parsed<T>) -> Parsed<T> {
        let memory = [text, memory].concat();
        convert(Content::new(&memory, 0, text.len()).unwrap())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Without memory after the text, each number is read byte by byte.
        #[test]
        fn the_memory_after_a_number_does_not_matter(
            start in select(vec!["", "-", "0", "-0", "+", "."]),
            pieces in vec(select(vec!["0", "1", "7", "9", "123456", "99999999", ".", "e", "-", " "]), 0..6),
            after in vec(select(&b"0059,.-e\n"[..]), 40),
            exact: bool,
        ) {
            let text = [start, &pieces.concat()].concat();
            let values = Values { exact, rules: Rules::default() };
            let number = |memory: &[u8]| {
                let float = value(text.as_bytes(), memory, |text| values.float64(text)).map(f64::to_bits);
                let long = value(text.as_bytes(), memory, |text| values.integer::<i64>(text));
                (float, long, value(text.as_bytes(), memory, |text| values.integer::<u8>(text)))
            };
            prop_assert_eq!(number(&after), number(b""));
        }
    }
}
