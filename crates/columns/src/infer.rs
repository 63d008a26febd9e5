//! Inferring the type of a column of texts.

use crate::text::{Kinds, Rules, Seen, Zone, kinds};
use arrow_schema::{DataType, TimeUnit};

/// The types that all texts of a column can have so far. The order of the texts does not matter.
#[derive(Clone, Debug)]
pub(crate) struct Inferred {
    kinds: Kinds,
    is_utf8: bool,
    has_values: bool,
    /// The most digits before and after the point.
    whole: u8,
    fraction: u8,
    zones: Zones,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Zones {
    None,
    One(Zone),
    Several,
}

/// Options of inference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct How {
    pub(crate) rules: Rules,
    /// Numbers with a fraction are decimal numbers, not floating point numbers.
    pub(crate) decimals: bool,
}

impl Default for Inferred {
    fn default() -> Inferred {
        Inferred { kinds: Kinds::ALL, is_utf8: true, has_values: false, whole: 0, fraction: 0, zones: Zones::None }
    }
}

impl Inferred {
    /// Examines a text.
    pub(crate) fn observe(&mut self, text: &[u8], how: How) {
        self.has_values = true;
        if self.kinds == Kinds::STRING {
            self.is_utf8 = self.is_utf8 && str::from_utf8(text).is_ok();
            return;
        }
        let Seen { kinds, whole, fraction, zone } = kinds(text, how.rules);
        self.kinds = self.kinds.and(kinds);
        (self.whole, self.fraction) = (self.whole.max(whole), self.fraction.max(fraction));
        self.zones = match (self.zones, zone) {
            (zones, None) => zones,
            (Zones::None, Some(zone)) => Zones::One(zone),
            (Zones::One(one), Some(zone)) if one == zone => Zones::One(one),
            _ => Zones::Several,
        };
        if kinds == Kinds::STRING {
            self.is_utf8 = self.is_utf8 && str::from_utf8(text).is_ok();
        }
    }

    /// Returns the first type of the list in `docs/types.md` that all texts can have; `None` if there was no text.
    pub(crate) fn data_type(&self, how: How) -> Option<DataType> {
        if !self.has_values {
            return None;
        }
        let has = |kinds| self.kinds.has(kinds);
        let decimal = self.whole.max(1).saturating_add(self.fraction);
        let zone = match self.zones {
            Zones::One(zone) => Some(zone.name().into()),
            // The offsets would be lost.
            Zones::None | Zones::Several => None,
        };
        Some(match () {
            () if has(Kinds::BOOL) => DataType::Boolean,
            () if has(Kinds::INT64) => DataType::Int64,
            () if has(Kinds::UINT64) => DataType::UInt64,
            () if has(Kinds::INTEGER) => DataType::Decimal128(38, 0),
            () if has(Kinds::DECIMAL) && how.decimals && decimal <= 38 => {
                // Later values may be larger, but not have more digits after the point.
                DataType::Decimal128(38, self.fraction as i8)
            }
            () if has(Kinds::FLOAT64) => DataType::Float64,
            () if has(Kinds::DATE) => DataType::Date32,
            () if has(Kinds::TIME_US) => DataType::Time64(TimeUnit::Microsecond),
            () if has(Kinds::TIME_NS) => DataType::Time64(TimeUnit::Nanosecond),
            () if has(Kinds::TIMESTAMP_US) => DataType::Timestamp(TimeUnit::Microsecond, None),
            () if has(Kinds::TIMESTAMP_NS) => DataType::Timestamp(TimeUnit::Nanosecond, None),
            () if has(Kinds::ZONED_US) && zone.is_some() => DataType::Timestamp(TimeUnit::Microsecond, zone),
            () if has(Kinds::ZONED_NS) && zone.is_some() => DataType::Timestamp(TimeUnit::Nanosecond, zone),
            () if self.is_utf8 => DataType::Utf8,
            () => DataType::Binary,
        })
    }
}
