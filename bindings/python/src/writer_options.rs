//! A writer's options from Python, which are checked once and used for each attempt to open.

use std::time::Duration;

use millstream::options::WRITER;
use millstream::{Writer, WriterBuilder};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::options::{Settings, refuse_unknown, seconds};

/// The options for creating a writer.
pub struct WriterOptions {
    pub stall_timeout: Option<Duration>,
    pub linger: Option<Duration>,
    settings: Settings<WriterBuilder>,
}

impl WriterOptions {
    /// Takes all options out of the keywords; the remaining ones are unknown.
    pub fn new(py: Python<'_>, keywords: &Bound<'_, PyDict>) -> PyResult<WriterOptions> {
        let options = WriterOptions {
            stall_timeout: seconds(py, keywords, "stall_timeout")?,
            linger: seconds(py, keywords, "linger")?,
            settings: Settings::take(py, keywords, WRITER)?,
        };
        refuse_unknown(keywords)?;
        Ok(options)
    }

    /// The core's builder.
    pub fn builder(&self) -> WriterBuilder {
        let mut builder = self.settings.apply(Writer::builder());
        if let Some(limit) = self.stall_timeout {
            builder = builder.stall_timeout(limit);
        }
        if let Some(limit) = self.linger {
            builder = builder.linger(limit);
        }
        builder
    }
}
