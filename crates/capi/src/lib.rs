//! The C ABI: the modules of the library under the same names, as functions that C can call.
//!
//! One file per module; its first paragraph and every doc comment appear in `millstream.h`, which is generated from
//! here (`cargo xtask generate`), committed, and compared by `make lint`. So the comments address C programmers.
//!
//! How a function is written:
//! - It is a safe Rust function wherever its types can express C's promises: `Option<&T>` is a `const` pointer that may
//!   be null, `Option<&mut MaybeUninit<T>>` an out-parameter, `Option<Box<T>>` a handle that is returned to the
//!   library. The remaining `unsafe` code is for arrays, strings and callbacks: `boundary`.
//! - Its body is one [`call`](boundary::call), which turns errors and panics into a code.
//! - Null is an error, never a crash; so is an invalid enum value.
//!
//! This crate contains no logic beyond conversion and ownership: functions that other languages need too belong in the
//! library.

// The names are those of C.
#![allow(non_camel_case_types)]

mod boundary;
mod bson;
mod bson_owned;
mod bson_scalar;
mod bson_stream;
mod bson_type;
mod bson_write;
mod cancel;
mod command;
mod error;
mod format;
mod frame;
mod pipe;
mod pipe_stage;
mod put;
mod reader;
mod reader_options;
mod scan;
mod settings;
mod shared;
mod version;
mod writer;
mod writer_options;
