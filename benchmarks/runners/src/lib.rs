//! Code that the Rust benchmark programs share with each other and with the tool that measures them: generated inputs
//! ([`input`]), an optional sampler ([`sample`]), and the report of how a pipe spent its time ([`times`]).
//!
//! The programs are in `bin/`. Each prints its answer and exits with 0 only if there is one. They are a separate
//! package, so that the dependencies of the tool are never built into a program that is measured.

pub mod documents;
pub mod input;
pub mod names;
pub mod numbers;
pub mod objects;
pub mod sample;
pub mod table;
pub mod times;
pub mod traps;
