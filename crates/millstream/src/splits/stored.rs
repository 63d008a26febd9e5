//! Plans as JSON.
//!
//! The format has a version, in the plan and in each split: see [`versioned`].

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Remote;
use crate::error::{Error, ErrorKind, Result};
use crate::versioned::{self, Invalid};

use super::content::Location;
use super::pin::Pinned;
use super::{Encoded, Framing, JsonPlace, Split, Splits, Whole};

/// The version that this library writes. It reads this version and all earlier ones.
pub(super) const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredSplit<'a> {
    version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<Cow<'a, str>>,
    /// The URL of an object, which has no path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<Cow<'a, str>>,
    /// The index of the file, if it is not at its usual path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    index: Option<Cow<'a, str>>,
    pin: Cow<'a, Pinned>,
    framing: Cow<'a, Framing>,
    /// The header of a file of CSV.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    header: Option<Cow<'a, str>>,
    begin: u64,
    end: Option<u64>,
    exact: bool,
    record: Option<u64>,
    /// The number of the first line, for CSV.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    /// The number of records that are not skipped, for framings whose records are followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rows: Option<u64>,
    /// The state of the framing at `begin`, which only the elements of a JSON document have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<Cow<'a, JsonPlace>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    encoded: Option<Encoded>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hash: Option<Cow<'a, str>>,
    /// The hash of the bytes around `begin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    boundary_hash: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredPlan {
    #[expect(dead_code, reason = "it is checked before the other fields are known")]
    version: u32,
    size: u64,
    records: Option<u64>,
    note: Option<String>,
    splits: Vec<StoredSplit<'static>>,
}

/// Returns the error for JSON of a plan, or of one of its splits.
pub(super) fn refused(invalid: Invalid, what: &str) -> Error {
    // The version is that of plans.
    let what = if matches!(invalid, Invalid::Version { .. }) { "a plan" } else { what };
    invalid.error(ErrorKind::InvalidOption, what, &format!("{what} as `millstream split` or a plan writes it"))
}

impl Split {
    /// Returns the split as one line of JSON, without a line feed. A path that is not UTF-8 is omitted. A URL is contained
    /// as it was given, with its query, which may be secret.
    ///
    /// ```
    /// # use millstream::splits::{Framing, Split, Splits};
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("data.txt");
    /// # std::fs::write(&path, "one\ntwo\nthree\nfour\n")?;
    /// let plan = Splits::plan(&path, Framing::Lines, 8)?;
    /// for split in &plan {
    ///     assert_eq!(Split::from_json(&split.to_json())?, *split);
    /// }
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn to_json(&self) -> String {
        serde_json::to_string(&self.stored()).expect("the fields have no maps and cannot fail")
    }

    pub(super) fn stored(&self) -> StoredSplit<'_> {
        let Whole { pin, framing, index, header, .. } = &*self.whole;
        StoredSplit {
            version: VERSION,
            path: text(self.path()),
            url: self.url().map(Cow::Borrowed),
            index: text(index.as_deref()),
            pin: Cow::Borrowed(pin),
            framing: Cow::Borrowed(framing),
            header: header.as_deref().map(Cow::Borrowed),
            begin: self.begin,
            end: self.end,
            exact: self.is_exact,
            record: self.record,
            line: self.line,
            rows: self.rows,
            state: self.json.as_ref().map(Cow::Borrowed),
            encoded: self.encoded.clone(),
            hash: self.hash.as_deref().map(Cow::Borrowed),
            boundary_hash: self.boundary_hash.as_deref().map(Cow::Borrowed),
        }
    }

    /// Parses a split from JSON.
    ///
    /// # Errors
    /// Returns [`ErrorKind::InvalidOption`] if the JSON is not a split, and [`ErrorKind::Unsupported`] for another
    /// version of the format.
    pub fn from_json(json: &str) -> Result<Split> {
        let stored: StoredSplit<'_> =
            versioned::parse(json.as_bytes(), VERSION).map_err(|invalid| refused(invalid, "a split"))?;
        stored.into_split()
    }
}

/// Returns a path as text, if it is UTF-8.
fn text(path: Option<&Path>) -> Option<Cow<'_, str>> {
    path.and_then(Path::to_str).map(Cow::Borrowed)
}

impl StoredSplit<'_> {
    pub(super) fn into_split(self) -> Result<Split> {
        versioned::check(self.version, VERSION).map_err(|invalid| refused(invalid, "a split"))?;
        let (pin, framing) = (self.pin.into_owned(), self.framing.into_owned());
        framing.framer()?;
        let contradiction = match self.end {
            _ if self.state.is_some() != matches!(framing, Framing::JsonElements { .. }) => {
                Some("whose state does not fit its framing")
            }
            _ if self.path.is_some() && self.url.is_some() => Some("with a path and a URL"),
            _ if self.state.is_some() && self.record.is_none() => Some("of elements without a record number"),
            _ if self.line.is_some_and(|line| self.record.is_none_or(|record| line <= record)) => {
                Some("whose first line is before its first record")
            }
            Some(end) if end < self.begin => Some("that ends before it begins"),
            _ if !self.exact && framing.searchable().is_none() => Some("whose first record cannot be searched for"),
            None if self.encoded.is_none() => Some("without an end"),
            _ if self.encoded.is_some() && self.boundary_hash.is_some() => {
                Some("of an encoded file with a hash of decoded bytes")
            }
            _ if self.encoded.as_ref().is_some_and(|encoded| encoded.decoded > self.begin) => {
                Some("before its encoded bytes")
            }
            #[cfg(feature = "compression")]
            _ => self.encoded.as_ref().and_then(super::Encoded::contradiction),
            #[cfg(not(feature = "compression"))]
            _ => None,
        };
        if let Some(contradiction) = contradiction {
            return Err(Error::new(ErrorKind::InvalidOption)
                .with_found(format!("a split {contradiction}"))
                .with_expected("an unchanged split of a plan"));
        }
        let split = Split {
            whole: Arc::new(Whole {
                location: match (self.path, self.url) {
                    (Some(path), _) => Some(Location::File(path.into_owned().into())),
                    (None, Some(url)) => Some(Location::Object(Box::new(Remote::new(url)))),
                    (None, None) => None,
                },
                pin,
                framing,
                index: self.index.map(|path| path.into_owned().into()),
                header: self.header.map(Cow::into_owned),
            }),
            begin: self.begin,
            end: self.end,
            is_exact: self.exact,
            record: self.record,
            line: self.line,
            rows: self.rows,
            json: self.state.map(Cow::into_owned),
            encoded: self.encoded,
            hash: self.hash.map(Cow::into_owned),
            boundary_hash: self.boundary_hash.map(Cow::into_owned),
        };
        split.elements()?;
        Ok(split)
    }
}

impl Splits {
    /// Returns the plan as JSON: `{"version":1,"size":…,"records":…,"note":…,"splits":[…]}`, with each split on its own
    /// line.
    ///
    /// ```
    /// # use millstream::splits::{Framing, Splits};
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("data.txt");
    /// # std::fs::write(&path, "one\ntwo\nthree\nfour\n")?;
    /// let plan = Splits::plan(&path, Framing::Lines, 8)?;
    /// assert_eq!(Splits::from_json(&plan.to_json())?, plan);
    /// # Ok::<(), millstream::Error>(())
    /// ```
    pub fn to_json(&self) -> String {
        let note = serde_json::to_string(&self.note).expect("text is always valid JSON");
        let records = self.records.map_or("null".to_string(), |records| records.to_string());
        let mut json =
            format!(r#"{{"version":{VERSION},"size":{},"records":{records},"note":{note},"splits":["#, self.size);
        for (i, split) in self.splits.iter().enumerate() {
            let _ = write!(json, "{}\n{}", if i == 0 { "" } else { "," }, split.to_json());
        }
        json.push_str("\n]}\n");
        json
    }

    /// Parses a plan from JSON.
    ///
    /// # Errors
    /// Returns the errors of [`Split::from_json`].
    pub fn from_json(json: &str) -> Result<Splits> {
        let stored = versioned::parse(json.as_bytes(), VERSION);
        let StoredPlan { size, records, note, splits, .. } = stored.map_err(|invalid| refused(invalid, "a plan"))?;
        let splits = splits.into_iter().map(StoredSplit::into_split).collect::<Result<Vec<_>>>()?;
        Ok(Splits { splits: Arc::new(splits), size, records, note })
    }
}
