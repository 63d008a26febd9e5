//! The `millstream` command as a library, so that other languages can start it.
