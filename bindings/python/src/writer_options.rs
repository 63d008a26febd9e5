//! A writer's options from Python, which are checked once and used for each attempt to open.

use std::time::Duration;

use millstream::{Durability, Encode, Existing, FlushPolicy, Partial, Writer, WriterBuilder};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt};

use crate::command::take;
use crate::number::Whole;
use crate::options::{seconds, word};

/// The options for creating a writer.
pub struct WriterOptions {
    capacity: Option<usize>,
    policy: Option<FlushPolicy>,
    encode: Option<Encode>,
    level: Option<u32>,
    existing: Option<Existing>,
    partial: Option<Partial>,
    durability: Option<Durability>,
    pub stall_timeout: Option<Duration>,
    pub linger: Option<Duration>,
    name: Option<String>,
}

impl WriterOptions {
    /// Takes all options out of the keywords; the remaining ones are unknown.
    pub fn new(py: Python<'_>, keywords: &Bound<'_, PyDict>) -> PyResult<WriterOptions> {
        let encodings = [
            ("auto", Encode::Auto),
            ("off", Encode::Off),
            ("gzip", Encode::Gzip),
            ("bgzf", Encode::Bgzf),
            ("zstd", Encode::Zstd),
        ];
        let existing = [
            ("replace", Existing::Replace),
            ("append", Existing::Append),
            ("append_unchecked", Existing::AppendUnchecked),
        ];
        let durabilities = [("cached", Durability::Cached), ("data", Durability::Data), ("all", Durability::All)];
        let options = WriterOptions {
            capacity: take::<Whole<usize>>(keywords, "capacity")?.map(|Whole(bytes)| bytes),
            policy: policy(py, keywords)?,
            encode: word(py, keywords, "encode", &encodings)?,
            level: take::<Whole<u32>>(keywords, "level")?.map(|Whole(level)| level),
            existing: word(py, keywords, "existing", &existing)?,
            partial: word(py, keywords, "partial", &[("remove", Partial::Remove), ("keep", Partial::Keep)])?,
            durability: word(py, keywords, "durability", &durabilities)?,
            stall_timeout: seconds(py, keywords, "stall_timeout")?,
            linger: seconds(py, keywords, "linger")?,
            name: take(keywords, "name")?,
        };
        match keywords.iter().next() {
            Some((key, _)) => Err(PyTypeError::new_err(format!("unknown option {key}"))),
            None => Ok(options),
        }
    }

    /// The core's builder.
    pub fn builder(&self) -> WriterBuilder {
        let mut builder = Writer::builder();
        if let Some(bytes) = self.capacity {
            builder = builder.capacity(bytes);
        }
        if let Some(policy) = self.policy {
            builder = builder.flush_policy(policy);
        }
        if let Some(encode) = self.encode {
            builder = builder.encode(encode);
        }
        if let Some(level) = self.level {
            builder = builder.level(level);
        }
        if let Some(existing) = self.existing {
            builder = builder.existing(existing);
        }
        if let Some(partial) = self.partial {
            builder = builder.partial(partial);
        }
        if let Some(durability) = self.durability {
            builder = builder.durability(durability);
        }
        if let Some(limit) = self.stall_timeout {
            builder = builder.stall_timeout(limit);
        }
        if let Some(limit) = self.linger {
            builder = builder.linger(limit);
        }
        if let Some(name) = &self.name {
            builder = builder.name(name.clone());
        }
        builder
    }
}

fn policy(py: Python<'_>, keywords: &Bound<'_, PyDict>) -> PyResult<Option<FlushPolicy>> {
    let is_number = |flush: &Bound<'_, PyAny>| flush.is_instance_of::<PyFloat>() || flush.is_instance_of::<PyInt>();
    if keywords.get_item("flush")?.is_some_and(|flush| is_number(&flush)) {
        return Ok(seconds(py, keywords, "flush")?.map(FlushPolicy::Delay));
    }
    let words = [("auto", FlushPolicy::Auto), ("full", FlushPolicy::WhenFull), ("line", FlushPolicy::Line)];
    word(py, keywords, "flush", &words)
}
