//! Millstream: move records from commands, files and sockets at the speed of the hardware, and know that all of them
//! arrived. Licence: MIT or Apache 2.0.
//!
//!     millstream_error *error = NULL;
//!     millstream_reader *reader;
//!     if (millstream_reader_path("reads.txt.gz", NULL, &reader, &error) == MILLSTREAM_OK) {
//!         const char *line;
//!         size_t len;
//!         while (millstream_reader_next_line(reader, &line, &len, &error) == MILLSTREAM_OK && line != NULL)
//!             use(line, len);
//!     }
//!     if (error != NULL)
//!         fprintf(stderr, "%s\n", millstream_error_message(error));
//!     millstream_error_free(error);
//!     millstream_reader_free(reader);
//!
//! CONVENTIONS
//!
//! Results. A function that can fail returns a millstream_code and its other results through out-parameters. If it
//! fails, these are NULL, 0 or false, unless its comment states otherwise (after MILLSTREAM_ARGUMENT_INVALID they may
//! be untouched). Different out-parameters must be different objects. The last argument receives an error object; only
//! a call that fails sets it, and it may be NULL if the code is enough. The few functions that cannot fail return their
//! result directly.
//!
//! Arguments. NULL in place of a required object fails with MILLSTREAM_ARGUMENT_INVALID; a number that is not a value
//! of an enum fails with MILLSTREAM_INVALID_OPTION. Text ends with a NUL; paths are any bytes, addresses are UTF-8.
//! Bytes have a length, and may be NULL if it is 0.
//!
//! Ownership. A handle that a function returns must be freed exactly one time, by the function named at its type, which
//! also accepts NULL. Arguments still belong to the caller, and may be freed or changed when the function has returned,
//! unless the function's comment states otherwise. Bytes and text that a handle lends are valid until the next call on
//! it that is not const (its pointer is not to const), or as long as the comment states.
//!
//! Threads. Calls on different handles may run at the same time. So may calls on one handle if all of them take it as
//! const. Any other call needs exclusive use of its handle, but may come from any thread. A cancel token is designed
//! for several threads: all its functions except millstream_cancel_token_free() take it as const.
//!
//! Callbacks run during the call, on the thread that makes it, unless their comment states otherwise. They must
//! return: no exception and no longjmp() may leave them. They must not use the handle that calls them.
//!
//! Panics. A bug in the library leads to MILLSTREAM_INTERNAL instead of ending the process. Please report it. After
//! that, the handle can only be freed.

// The text above is the beginning of `millstream.h`, which `cargo xtask generate` writes from here, and which `make
// lint` compares. The text at the beginning of each module and every doc comment follow. So they address C programmers.
//
// The modules are those of the library under the same names, as functions that C can call. How a function is written:
// - It is a safe Rust function wherever its types can express what C requires: `Option<&T>` is a `const` pointer that
// may
//   be null, `Option<&mut MaybeUninit<T>>` an out-parameter, `Option<Box<T>>` a handle that is returned to the
//   library. The remaining `unsafe` code is for arrays, strings and callbacks: `boundary`.
// - Its body is one `boundary::call`, which turns errors and panics into a code.
// - Null is an error, never a crash; so is an invalid enum value.
//
// This crate contains no logic beyond conversion and ownership: functions that other languages need too belong in the
// library.

// The names are those of C.
#![allow(non_camel_case_types)]

mod boundary;
mod bson;
mod bson_owned;
mod bson_scalar;
mod bson_stream;
mod bson_type;
mod bson_write;
mod callback;
mod cancel;
mod columns;
mod command;
mod command_options;
mod enums;
mod error;
mod format;
mod frame;
mod memory;
mod pipe;
mod pipe_async;
mod pipe_stage;
mod put;
mod reader;
mod reader_options;
mod remote;
mod remote_options;
mod scan;
mod settings;
mod shared;
mod version;
mod writer;
mod writer_options;
