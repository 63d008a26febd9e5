//! A reader's options, as Python says them: checked once, used for each attempt to open.

use std::time::Duration;

use millstream::{Decode, DecodeLimit, Follow, Latency, ReadAhead, Reader, ReaderBuilder};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::command::take;
use crate::error;
use crate::foreign::{Function, Functions};
use crate::framer::{Framer, Spec, Words};
use crate::record::Encoding;

/// What a reader is made with.
pub struct Options {
    pub encoding: Encoding,
    pub framer: Spec,
    capacity: Option<usize>,
    record_limit: Option<usize>,
    read_ahead: ReadAhead,
    latency: Latency,
    decode: Option<Decode>,
    decode_limit: DecodeLimit,
    pub stall_timeout: Option<Duration>,
    follow: Follow,
    name: Option<String>,
    progress: Option<(Function, Duration)>,
}

impl Options {
    /// Takes all options out of the keywords: one that is left is unknown.
    pub fn new(py: Python<'_>, keywords: &Bound<'_, PyDict>) -> PyResult<Options> {
        let options = Options {
            encoding: Encoding::new(py, take(keywords, "encoding")?, take(keywords, "errors")?)?,
            framer: framer(py, keywords)?,
            capacity: take(keywords, "capacity")?,
            record_limit: take(keywords, "record_limit")?,
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
            decode_limit: DecodeLimit {
                bytes: take(keywords, "decode_limit")?,
                ratio: take(keywords, "decode_ratio")?,
            },
            stall_timeout: seconds(py, keywords, "stall_timeout")?,
            follow: if take(keywords, "follow")?.unwrap_or(false) { Follow::Growing } else { Follow::No },
            name: take(keywords, "name")?,
            progress: {
                let every = seconds(py, keywords, "progress_interval")?.unwrap_or(Duration::from_millis(100));
                take(keywords, "progress")?.map(|call| (Function::new(call), every))
            },
        };
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
        let mut builder = Reader::builder()
            .read_ahead(self.read_ahead)
            .latency(self.latency)
            .decode_limit(self.decode_limit)
            .follow(self.follow);
        if let Some(bytes) = self.capacity {
            builder = builder.capacity(bytes);
        }
        if let Some(bytes) = self.record_limit {
            builder = builder.record_limit(bytes);
        }
        if let Some(decode) = self.decode {
            builder = builder.decode(decode);
        }
        if let Some(limit) = self.stall_timeout {
            builder = builder.stall_timeout(limit);
        }
        if let Some(name) = &self.name {
            builder = builder.name(name.clone());
        }
        if let Some((call, every)) = &self.progress {
            let call = call.clone();
            builder = builder.observer(*every, move |progress| {
                Python::attach(|py| {
                    let told = call.call(py, (progress.source_bytes, progress.source_size, progress.records));
                    // Reading goes on where a display fails.
                    told.map_or_else(|error| error.write_unraisable(py, None), drop);
                });
            });
        }
        builder
    }
}

fn framer(py: Python<'_>, keywords: &Bound<'_, PyDict>) -> PyResult<Spec> {
    let keep = take(keywords, "keep_delimiter")?.unwrap_or(false);
    let framer = match keywords.get_item("framer")? {
        Some(framer) if !framer.is_none() => Some(framer.cast_into::<Framer>()?),
        _ => None,
    };
    if keywords.contains("framer")? {
        keywords.del_item("framer")?;
    }
    let delimiter = take::<Words>(keywords, "delimiter")?;
    let spec = match (framer, delimiter) {
        (Some(_), Some(_)) => return Err(error::refuse(py, "a framer and a delimiter", "one of them")),
        (Some(_), None) if keep => {
            return Err(error::refuse(py, "keep_delimiter with a framer", "Framer.lines(keep_delimiter=True), say"));
        }
        (Some(framer), None) => framer.get().spec.clone(),
        (None, Some(delimiter)) => Spec::Delimiter { bytes: delimiter.into_bytes(), keep },
        (None, None) => Spec::Lines { keep },
    };
    Ok(spec)
}

/// An option that is one of a few words.
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

/// A time in seconds.
pub fn seconds(py: Python<'_>, keywords: &Bound<'_, PyDict>, key: &str) -> PyResult<Option<Duration>> {
    let Some(seconds) = take::<f64>(keywords, key)? else { return Ok(None) };
    let duration = Duration::try_from_secs_f64(seconds);
    duration.map(Some).map_err(|_| error::refuse(py, format!("{key}={seconds}"), "seconds, not negative"))
}
