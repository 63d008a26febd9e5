//! Options as a list of changes to a builder.
//!
//! The builders of the library are consumed when they open a source or sink; options set from C can be used any number
//! of times.

use millstream::Result;

type Setting<B> = Box<dyn Fn(B) -> Result<B> + Send + Sync>;

/// The changes to a builder `B`, in the order of the calls.
pub(crate) struct Settings<B>(Vec<Setting<B>>);

impl<B> Settings<B> {
    pub(crate) fn new() -> Settings<B> {
        Settings(Vec::new())
    }

    /// Adds a change.
    pub(crate) fn set(&mut self, setting: impl Fn(B) -> B + Send + Sync + 'static) {
        self.try_set(move |builder| Ok(setting(builder)));
    }

    /// Adds a change that can fail when it is applied.
    pub(crate) fn try_set(&mut self, setting: impl Fn(B) -> Result<B> + Send + Sync + 'static) {
        self.0.push(Box::new(setting));
    }

    /// Applies all changes.
    pub(crate) fn apply(&self, builder: B) -> Result<B> {
        self.0.iter().try_fold(builder, |builder, setting| setting(builder))
    }
}
