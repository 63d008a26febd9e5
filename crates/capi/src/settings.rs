//! Options as a list of things to do to a builder.
//!
//! The builders of the library are used up when they open something; what C sets shall serve any number of times.

use millstream::Result;

type Setting<B> = Box<dyn Fn(B) -> Result<B> + Send + Sync>;

/// What to do to a builder `B`, in the order in which it was asked for.
pub(crate) struct Settings<B>(Vec<Setting<B>>);

impl<B> Settings<B> {
    pub(crate) fn new() -> Settings<B> {
        Settings(Vec::new())
    }

    /// Adds something.
    pub(crate) fn set(&mut self, setting: impl Fn(B) -> B + Send + Sync + 'static) {
        self.try_set(move |builder| Ok(setting(builder)));
    }

    /// Adds something that can fail when it is done.
    pub(crate) fn try_set(&mut self, setting: impl Fn(B) -> Result<B> + Send + Sync + 'static) {
        self.0.push(Box::new(setting));
    }

    /// Does it all.
    pub(crate) fn apply(&self, builder: B) -> Result<B> {
        self.0.iter().try_fold(builder, |builder, setting| setting(builder))
    }
}
