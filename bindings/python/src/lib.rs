//! The native part of Millstream's package for Python.
//!
//! It makes Python's objects straight from the core's buffers. It promises: while anything may wait or takes long, the
//! interpreter's lock is free and signals are heard; no panic and no lock that waits for ever crosses the boundary, bad
//! arguments and calls at the same time are exceptions. It holds no logic beyond conversion: what a record, a number or a
//! document is, the core decides. What needs no speed is written in Python (`python/millstream`).
//!
//! - `reader`, `batch`, `record`, `lines`: records; `writer`: where they go; `options`, `command`, `framer`: how Python says what it wants.
//! - `columns`: delimited text as typed columns. `arrow`: columns for others.
//! - `bson`: documents into dicts and back, mapped arrays, columns.
//! - `foreign`: objects of Python's as sources and sinks. `memory`: memory of ours that Python looks at.
//! - `command_line`: the command-line tool. `wait`: waits, and signals. `error`: exceptions.

mod arrow;
mod batch;
mod bson;
mod columns;
mod command;
mod command_line;
mod error;
mod foreign;
mod framer;
#[allow(unsafe_code)] // a type for C
mod lines;
#[allow(unsafe_code)] // Python is given a pointer
mod memory;
mod options;
mod reader;
mod record;
mod wait;
mod writer;

/// Everything that Python sees of this part.
#[pyo3::pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use crate::batch::Batch;
    #[pymodule_export]
    use crate::bson::Types;
    #[pymodule_export]
    use crate::bson::columns::Columns;
    #[pymodule_export]
    use crate::bson::decode::{bson_decode_all, bson_loads};
    #[pymodule_export]
    use crate::bson::encode::bson_dumps;
    #[pymodule_export]
    use crate::bson::julia::julia_load;
    #[pymodule_export]
    use crate::bson::mapped::Mapped;
    #[pymodule_export]
    use crate::columns::Table;
    #[pymodule_export]
    use crate::command_line::command_line;
    #[pymodule_export]
    use crate::error::{document_error, option_error, pipe_error};
    #[pymodule_export]
    use crate::framer::Framer;
    #[pymodule_export]
    use crate::memory::Memory;
    #[pymodule_export]
    use crate::reader::Reader;
    #[pymodule_export]
    use crate::writer::{Writer, WriterEnd};
    #[pymodule_export]
    #[expect(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
