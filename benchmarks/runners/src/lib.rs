//! What the benchmarks' programs in Rust share with each other, and with the tool that measures them: how inputs are made
//! out of a seed ([`input`]), a sampler that can be turned on ([`sample`]), and how a pipe tells where its time went ([`times`]).
//!
//! The programs are in `bin/`. Each prints its answer, and exits with 0 only if there is one. They are a package of their own
//! so that what the tool needs for its reports is never built into a program that is measured.

pub mod documents;
pub mod input;
pub mod names;
pub mod numbers;
pub mod sample;
pub mod times;
