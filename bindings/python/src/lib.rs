//! The native part of Millstream's package for Python.
//!
//! It creates Python objects directly from the core's buffers. It guarantees that the interpreter lock is released and
//! signals are handled during every call that waits or takes long, that no panic and no unbounded lock crosses the
//! boundary, and that invalid arguments and concurrent calls raise exceptions. It contains only conversions: the core
//! decides what a record, a number or a document is. Code that is not performance-critical is written in Python
//! (`python/millstream`).
//!
//! - `reader`, `batch`, `record`: reading records; `writer`: writing; `options`, `writer_options`, `command`, `framer`,
//!   `number`: arguments.
//! - `remote`: objects of web servers and stores, in place of paths.
//! - `splits`: plans that divide files. `job`: parts of many processes that appear together.
//! - `columns`: delimited text as typed columns. `arrow`: columns for other packages.
//! - `bson`: documents into dicts and back, mapped arrays, columns.
//! - `help`: the text about options. `foreign`: Python objects as sources and sinks. `memory`: the core's memory as Python sees it.
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
mod help;
mod job;
#[allow(unsafe_code)] // passes a pointer to Python
mod memory;
mod number;
mod options;
mod reader;
mod record;
mod remote;
mod splits;
mod streams;
mod wait;
mod writer;
mod writer_options;

/// Everything that this module exports to Python.
#[pyo3::pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use crate::batch::Batch;
    #[pymodule_export]
    use crate::bson::Types;
    #[pymodule_export]
    use crate::bson::columns::document_columns;
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
    use crate::error::{document_error, hints, option_error, pipe_error, state_error};
    #[pymodule_export]
    use crate::framer::Framer;
    #[pymodule_export]
    use crate::help::options_help;
    #[pymodule_export]
    use crate::job::{Job, Part, PartWriter};
    #[pymodule_export]
    use crate::memory::Memory;
    #[pymodule_export]
    use crate::reader::{BinaryReader, Reader, TextReader};
    #[pymodule_export]
    use crate::remote::{
        ListedObject, Remote, is_directory_of_objects, is_pattern_of_objects, is_url, location_name, matching_objects,
    };
    #[pymodule_export]
    use crate::splits::{SharedPass, Split, Splits, follow_part, plan_objects};
    #[pymodule_export]
    use crate::streams::{Columns, inferred_schema, record_columns};
    #[pymodule_export]
    use crate::wait::forked;
    #[pymodule_export]
    use crate::writer::{Writer, WriterEnd};
    #[pymodule_export]
    #[expect(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
