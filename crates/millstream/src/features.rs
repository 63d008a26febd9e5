//! The compressed formats that this build reads and writes.

use crate::Format;
use crate::error::{Error, ErrorKind, Result};

/// The features of this build, as [`Format::feature`] names them.
const FEATURES: &[&str] = &[
    #[cfg(feature = "compression")]
    "compression",
    #[cfg(feature = "xz")]
    "xz",
];

/// Fails if this build does not include the code for a format.
///
/// # Errors
/// [`ErrorKind::Unsupported`].
pub(crate) fn require(format: Format) -> Result<()> {
    let feature = format.feature();
    if FEATURES.contains(&feature) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Unsupported)
        .with_found(format!("{format} data"))
        .with_expected(format!("a build of Millstream with the feature `{feature}`, or no decoding or encoding")))
}
