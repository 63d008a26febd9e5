//! Dates: milliseconds, and their RFC 3339 text.
//!
//! The crate `time` provides the calendar. Only dates in the years 0 to 9999 have a text form, as in Extended JSON;
//! other dates are written as milliseconds.

use super::bad_text;
use millstream_core::put::{Spare, zero_fill};
use millstream_core::{Error, ErrorKind, Result};
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A point in time: milliseconds since 1970-01-01T00:00:00Z, leap seconds not counted.
///
/// In the years 0 to 9999, its text is RFC 3339 (in UTC, with three digits after the decimal point or none); otherwise
/// it is the number of milliseconds. Both can be parsed; digits after the third are cut off.
///
/// ```
/// use millstream::bson::DateTime;
/// let date: DateTime = "2012-12-24T13:15:30.501+01:00".parse()?;
/// assert_eq!(date, DateTime(1_356_351_330_501));
/// assert_eq!(date.to_string(), "2012-12-24T12:15:30.501Z");
/// assert_eq!(DateTime(253_402_300_800_000).to_string(), "253402300800000");
/// assert_eq!(DateTime::from(std::time::SystemTime::UNIX_EPOCH), DateTime(0));
/// # Ok::<(), millstream::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DateTime(pub i64);

/// The first millisecond of the year 0.
const FIRST: i64 = -62_167_219_200_000;
/// The first millisecond of the year 10000.
const END: i64 = 253_402_300_800_000;
impl DateTime {
    /// The longest text: `9999-12-31T23:59:59.999Z`.
    pub(crate) const LONGEST: usize = 24;

    /// The current time, in milliseconds.
    pub fn now() -> DateTime {
        SystemTime::now().into()
    }

    /// Appends the RFC 3339 text, if the year is in the range that has a text form.
    pub(crate) fn put_rfc3339(self, out: &mut Spare<'_>) -> bool {
        if !(FIRST..END).contains(&self.0) {
            return false;
        }
        let Ok(date) = OffsetDateTime::from_unix_timestamp(self.0.div_euclid(1000)) else { return false };
        let (year, month, day) = (date.year() as u16, u8::from(date.month()), date.day());
        let (hour, minute, second) = date.to_hms();
        out.put(zero_fill(year, 4));
        for (before, number) in [('-', month), ('-', day), ('T', hour), (':', minute), (':', second)] {
            out.put(before);
            out.put(zero_fill(number, 2));
        }
        let milliseconds = self.0.rem_euclid(1000) as u16;
        if milliseconds != 0 {
            out.put('.');
            out.put(zero_fill(milliseconds, 3));
        }
        out.put('Z');
        true
    }
}

/// Rounds down to the millisecond; a time out of range becomes the earliest or the latest date.
impl From<SystemTime> for DateTime {
    fn from(time: SystemTime) -> DateTime {
        DateTime(match time.duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
            Err(before) => {
                let up = before.duration().as_nanos().div_ceil(1_000_000);
                i64::try_from(up).map_or(i64::MIN, |milliseconds| -milliseconds)
            }
        })
    }
}

/// # Errors
/// [`ValueOutOfRange`](ErrorKind::ValueOutOfRange) for a time outside the range of the system's clock.
impl TryFrom<DateTime> for SystemTime {
    type Error = Error;

    fn try_from(date: DateTime) -> Result<SystemTime> {
        let distance = Duration::from_millis(date.0.unsigned_abs());
        let time = match date.0 < 0 {
            true => UNIX_EPOCH.checked_sub(distance),
            false => UNIX_EPOCH.checked_add(distance),
        };
        time.ok_or_else(|| {
            Error::new(ErrorKind::ValueOutOfRange)
                .with_found(date.to_string())
                .with_expected("a time that SystemTime can represent")
        })
    }
}

impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0; DateTime::LONGEST];
        let mut spare = Spare::over(&mut text);
        if !self.put_rfc3339(&mut spare) {
            spare.put(self.0);
        }
        f.pad(std::str::from_utf8(spare.as_bytes()).expect("digits are ASCII"))
    }
}

/// # Errors
/// [`TextInvalid`](ErrorKind::TextInvalid) for anything other than RFC 3339 (including `T` and `Z` or an offset) or a
/// number of milliseconds.
impl FromStr for DateTime {
    type Err = Error;

    fn from_str(text: &str) -> Result<DateTime> {
        if let Ok(milliseconds) = text.parse() {
            return Ok(DateTime(milliseconds));
        }
        DateTime::from_rfc3339(text)
    }
}

impl DateTime {
    /// Parses RFC 3339 text.
    pub(crate) fn from_rfc3339(text: &str) -> Result<DateTime> {
        match OffsetDateTime::parse(text, &Rfc3339) {
            // The years 0 to 9999 and an offset of up to a day always fit.
            Ok(date) => Ok(DateTime((date.unix_timestamp_nanos().div_euclid(1_000_000)) as i64)),
            Err(_) => Err(bad_text(text, "a date of RFC 3339, such as 2012-12-24T12:15:30.501Z", 0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_at_the_edges() {
        for (milliseconds, text) in [
            (FIRST, "0000-01-01T00:00:00Z"),
            (FIRST - 1, "-62167219200001"),
            (END - 1, "9999-12-31T23:59:59.999Z"),
            (END, "253402300800000"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (0, "1970-01-01T00:00:00Z"),
            (1_000, "1970-01-01T00:00:01Z"),
            (951_782_400_050, "2000-02-29T00:00:00.050Z"),
            (i64::MIN, "-9223372036854775808"),
        ] {
            assert_eq!(DateTime(milliseconds).to_string(), text);
            assert_eq!(text.parse::<DateTime>().unwrap(), DateTime(milliseconds));
        }
    }

    #[test]
    fn text_of_others() {
        for (text, milliseconds) in [
            ("1970-01-01T00:00:00.9999Z", 999),
            ("1969-12-31T23:59:59.9999Z", -1),
            ("1970-01-01T01:00:00.5+01:00", 500),
            ("1970-01-01t00:00:00z", 0),
            ("0000-01-01T00:00:00+23:59", FIRST - 86_340_000),
        ] {
            assert_eq!(text.parse::<DateTime>().unwrap(), DateTime(milliseconds), "{text}");
        }
        for text in ["", "1970-01-01", "1970-02-30T00:00:00Z", "1970-01-01T00:00:00", "+10000-01-01T00:00:00Z", "1.5"] {
            assert_eq!(text.parse::<DateTime>().unwrap_err().kind(), ErrorKind::TextInvalid, "{text}");
        }
    }

    #[test]
    fn system_time_rounds_down() {
        // The clock of Windows has a resolution of 100 ns.
        assert_eq!(DateTime::from(UNIX_EPOCH + Duration::from_nanos(1_999_900)), DateTime(1));
        assert_eq!(DateTime::from(UNIX_EPOCH - Duration::from_nanos(100)), DateTime(-1));
        assert_eq!(SystemTime::try_from(DateTime(-1)).unwrap(), UNIX_EPOCH - Duration::from_millis(1));
    }

    proptest! {
        #[test]
        fn text_and_system_time_come_back(milliseconds in prop_oneof![any::<i64>(), FIRST - 9..END + 9]) {
            let date = DateTime(milliseconds);
            prop_assert_eq!(date.to_string().parse::<DateTime>().unwrap(), date);
            if let Ok(time) = SystemTime::try_from(date) {
                prop_assert_eq!(DateTime::from(time), date);
            }
        }
    }
}
