//! Arrays of numbers that are stored as bytes and can be read without a copy.

pub(crate) mod aligned;
pub(crate) mod vector;
pub(crate) mod view;

pub use aligned::{Alignment, PADDING_KEY, append_aligned};
pub use vector::{Bits, Vector, VectorOf};
pub use view::{AnyView, Number, NumberType, Numbers, NumbersOf, View};
