//! BSON at the core's speed: bytes of JavaScript's go in, and what is found is copied into memory of JavaScript's.

pub mod check;
mod columns;
