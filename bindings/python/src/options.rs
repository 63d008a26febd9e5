//! A reader's options from Python, which are checked once and used for each attempt to open.

use std::time::Duration;

use millstream::{Decode, Follow, Latency, Pin, ReadAhead, Reader, ReaderBuilder};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::command::take;
use crate::error;
use crate::foreign::{Function, Functions};
use crate::framer::{Framer, Spec, Words};
use crate::number::{Whole, refuse_bool};
use crate::record::Encoding;

/// The options for creating a reader.
pub struct Options {
    pub encoding: Encoding,
    pub framer: Spec,
    pub items: Items,
    capacity: Option<usize>,
    record_limit: Option<usize>,
    read_ahead: ReadAhead,
    latency: Latency,
    decode: Option<Decode>,
    decode_limit: Option<u64>,
    decode_ratio: Option<u64>,
    decode_memory: Option<u64>,
    pub stall_timeout: Option<Duration>,
    follow: Follow,
    pin: Pin,
    name: Option<String>,
    progress: Option<(Function, Duration)>,
}

/// The items that an iteration yields.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Items {
    /// Lines without their ends. This common case has its own code.
    Lines,
    /// Lines of text with their ends, as in a Python file, so that `csv` and others find the line feeds inside a field.
    WholeLines,
    /// All other records that a framer finds.
    Records,
}

impl Options {
    /// Takes all options out of the keywords; the remaining ones are unknown.
    pub fn new(py: Python<'_>, keywords: &Bound<'_, PyDict>) -> PyResult<Options> {
        let encoding = Encoding::new(py, take(keywords, "encoding")?, take(keywords, "errors")?)?;
        let (framer, is_default) = framer(py, keywords)?;
        if matches!(framer, Spec::Lines { .. }) && !encoding.has_lines(py)? {
            return Err(error::refuse(
                py,
                "lines in an encoding whose line feed is not the byte 10",
                "no encoding, and io.TextIOWrapper(reader, encoding=...) around the reader",
            ));
        }
        let options = Options {
            items: match (&framer, &encoding) {
                (Spec::Lines { keep: false }, Encoding::Bytes) => Items::Lines,
                (Spec::Lines { keep: false }, _) if is_default => Items::WholeLines,
                (Spec::Lines { keep: false }, _) => Items::Lines,
                _ => Items::Records,
            },
            encoding,
            framer,
            capacity: whole(keywords, "capacity")?,
            record_limit: whole(keywords, "record_limit")?,
            read_ahead: word(
                py,
                keywords,
                "read_ahead",
                &[("auto", ReadAhead::Auto), ("on", ReadAhead::On), ("off", ReadAhead::Off)],
            )?
            .unwrap_or_default(),
            latency: word(py, keywords, "latency", &[("normal", Latency::Normal), ("low", Latency::Low)])?
                .unwrap_or_default(),
            decode: word(py, keywords, "decode", &[("auto", Decode::Auto), ("off", Decode::Off)])?,
            decode_limit: whole(keywords, "decode_limit")?,
            decode_ratio: whole(keywords, "decode_ratio")?,
            decode_memory: whole(keywords, "decode_memory")?,
            stall_timeout: seconds(py, keywords, "stall_timeout")?,
            follow: if take(keywords, "follow")?.unwrap_or(false) { Follow::Growing } else { Follow::No },
            pin: word(py, keywords, "pin", &[("content", Pin::Content), ("identity", Pin::Identity)])?
                .unwrap_or_default(),
            name: take(keywords, "name")?,
            progress: {
                let every = seconds(py, keywords, "progress_interval")?;
                let call = take(keywords, "progress")?.map(|call| Function::new(py, call)).transpose()?;
                if every.is_some() && call.is_none() {
                    return Err(error::refuse(py, "progress_interval without progress", "both"));
                }
                call.map(|call| (call, every.unwrap_or(Duration::from_millis(100))))
            },
        };
        if options.stall_timeout.is_some_and(|limit| limit.is_zero()) {
            return Err(error::refuse(py, "stall_timeout=0", "seconds, more than 0"));
        }
        match keywords.iter().next() {
            Some((key, _)) => Err(PyTypeError::new_err(format!("unknown option {key}"))),
            None => Ok(options),
        }
    }

    /// The functions that the core will call.
    pub fn functions(&self) -> Functions {
        let mut functions = Functions::default();
        self.progress.iter().for_each(|(call, _)| functions.add(call));
        functions
    }

    /// The core's builder.
    pub fn builder(&self) -> ReaderBuilder {
        let mut builder =
            Reader::builder().read_ahead(self.read_ahead).latency(self.latency).follow(self.follow).pin(self.pin);
        if let Some(bytes) = self.capacity {
            builder = builder.capacity(bytes);
        }
        if let Some(bytes) = self.record_limit {
            builder = builder.record_limit(bytes);
        }
        if let Some(decode) = self.decode {
            builder = builder.decode(decode);
        }
        if let Some(bytes) = self.decode_limit {
            builder = builder.decode_limit(bytes);
        }
        if let Some(ratio) = self.decode_ratio {
            builder = builder.decode_ratio(ratio);
        }
        if let Some(bytes) = self.decode_memory {
            builder = builder.decode_memory(bytes);
        }
        if let Some(limit) = self.stall_timeout {
            // Waits are interrupted to check for signals, and this limit applies across the interruptions. The core's
            // own limit is used if no thread is available for them. It is longer, because the reader has ended after
            // it.
            builder = builder.stall_timeout(limit.saturating_add(Duration::from_secs(1)));
        }
        if let Some(name) = &self.name {
            builder = builder.name(name.clone());
        }
        if let Some((call, every)) = &self.progress {
            let call = call.clone();
            builder = builder.observer(*every, move |progress| {
                Python::attach(|py| {
                    let told = call.call(py, (progress.source_bytes, progress.source_size, progress.records));
                    // Reading continues if a progress display fails.
                    told.map_or_else(|error| error.write_unraisable(py, None), drop);
                });
            });
        }
        builder
    }
}

/// Returns the framer, and whether it is the default.
fn framer(py: Python<'_>, keywords: &Bound<'_, PyDict>) -> PyResult<(Spec, bool)> {
    let kept = take(keywords, "keep_delimiter")?;
    let keep = kept.unwrap_or(false);
    let framer = match keywords.get_item("framer")? {
        Some(framer) if !framer.is_none() => Some(framer.cast_into::<Framer>()?),
        _ => None,
    };
    if keywords.contains("framer")? {
        keywords.del_item("framer")?;
    }
    let delimiter = take::<Words>(keywords, "delimiter")?;
    let is_default = framer.is_none() && delimiter.is_none() && kept.is_none();
    let spec = match (framer, delimiter) {
        (Some(_), Some(_)) => return Err(error::refuse(py, "a framer and a delimiter", "one of them")),
        (Some(_), None) if keep => {
            return Err(error::refuse(py, "keep_delimiter with a framer", "Framer.lines(keep_delimiter=True)"));
        }
        (Some(framer), None) => framer.get().spec.clone(),
        (None, Some(delimiter)) => Spec::Delimiter { bytes: delimiter.into_bytes(), keep },
        (None, None) => Spec::Lines { keep },
    };
    Ok((spec, is_default))
}

/// Returns the value of an option that accepts a few words.
pub fn word<T: Copy>(
    py: Python<'_>,
    keywords: &Bound<'_, PyDict>,
    key: &str,
    words: &[(&str, T)],
) -> PyResult<Option<T>> {
    let Some(found) = take::<String>(keywords, key)? else { return Ok(None) };
    match words.iter().find(|(word, _)| *word == found) {
        Some((_, value)) => Ok(Some(*value)),
        None => {
            let all: Vec<String> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
            Err(error::refuse(py, format!("{key}={found:?}"), all.join(" or ")))
        }
    }
}

fn whole<T>(keywords: &Bound<'_, PyDict>, key: &str) -> PyResult<Option<T>>
where
    T: for<'a, 'py> FromPyObject<'a, 'py>,
{
    Ok(take::<Whole<T>>(keywords, key)?.map(|Whole(number)| number))
}

/// A time in seconds.
pub fn seconds(py: Python<'_>, keywords: &Bound<'_, PyDict>, key: &str) -> PyResult<Option<Duration>> {
    if let Some(value) = keywords.get_item(key)? {
        refuse_bool(&value)?;
    }
    let Some(seconds) = take::<f64>(keywords, key)? else { return Ok(None) };
    let duration = Duration::try_from_secs_f64(seconds);
    duration.map(Some).map_err(|_| error::refuse(py, format!("{key}={seconds}"), "seconds, not negative"))
}
