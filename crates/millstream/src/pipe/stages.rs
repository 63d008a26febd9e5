//! The stages that process one item at a time.

use std::error::Error as StdError;
use std::marker::PhantomData;

use super::chain::Each;
use super::item::{Bytes, Item, Value};
use super::scope::{Flow, Scope};
use crate::error::{Error, ErrorKind, Result};
use crate::writer::Writer;

/// The error types that a stage may return.
type AnyError = Box<dyn StdError + Send + Sync>;

/// Returns the error for a stage that reports a failure. An [`Error`] of this crate stays unchanged.
#[cold]
pub(super) fn stage_failed(error: AnyError) -> Error {
    match error.downcast::<Error>() {
        Ok(ours) => *ours,
        Err(error) => Error::new(ErrorKind::StageFailed).with_io(std::io::Error::other(error)),
    }
}

/// A function of an item: records are borrowed, values are passed by value.
pub trait Call<I: Item, R> {
    /// Calls the function.
    fn call(&mut self, item: I::Of<'_>) -> R;
}

impl<F: FnMut(&[u8]) -> R, R> Call<Bytes, R> for F {
    #[inline]
    fn call(&mut self, item: &[u8]) -> R {
        self(item)
    }
}

impl<F: FnMut(T) -> R, T, R> Call<Value<T>, R> for F {
    #[inline]
    fn call(&mut self, item: T) -> R {
        self(item)
    }
}

/// A function that borrows an item.
pub trait Look<I: Item, R> {
    /// Calls the function.
    fn look(&mut self, item: &I::Of<'_>) -> R;
}

impl<F: FnMut(&[u8]) -> R, R> Look<Bytes, R> for F {
    #[inline]
    fn look(&mut self, item: &&[u8]) -> R {
        self(item)
    }
}

impl<F: FnMut(&T) -> R, T, R> Look<Value<T>, R> for F {
    #[inline]
    fn look(&mut self, item: &T) -> R {
        self(item)
    }
}

/// Declares stages that consist of a function, with the function's result type.
macro_rules! function_stages {
    ($(#[doc = $doc:literal] $name:ident;)*) => {$(
        #[doc = $doc]
        pub struct $name<F, T = ()>(F, PhantomData<fn() -> T>);

        impl<F, T> $name<F, T> {
            pub(super) fn new(function: F) -> Self {
                $name(function, PhantomData)
            }
        }

        impl<F: Clone, T> Clone for $name<F, T> {
            fn clone(&self) -> Self {
                $name::new(self.0.clone())
            }
        }

        impl<F, T> std::fmt::Debug for $name<F, T> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    )*};
}

function_stages! {
    /// Produces a value from each item.
    Map;
    /// Produces a value or nothing from each item.
    FilterMap;
    /// Produces a value from each item, or fails.
    TryMap;
    /// Produces several values from each item.
    FlatMap;
    /// Passes on the items for which a function returns true.
    Filter;
    /// Passes on the items for which a function that may fail returns true.
    TryFilter;
    /// Passes on a part of each record.
    MapBytes;
    /// Passes on parts of each record.
    Pieces;
    /// Calls a function with each item.
    Inspect;
}

/// Implements a stage: the kind of its items, and how they are produced. `many` marks stages that may produce several
/// items from one.
macro_rules! each {
    (impl $($rest:tt)*) => { each!(true, $($rest)*); };
    (many impl $($rest:tt)*) => { each!(false, $($rest)*); };
    (
        $at_most_one:literal, [$($generics:tt)*] $stage:ty, $in:ty => $out:ty,
        |$this:ident, $record:ident, $item:ident, $scope:ident, $next:ident| $body:expr
    ) => {
        impl<$($generics)*> Each<$in> for $stage {
            type Out = $out;
            const AT_MOST_ONE: bool = $at_most_one;

            #[inline]
            fn each<'a>(
                &mut self,
                $record: u64,
                $item: <$in as Item>::Of<'a>,
                $scope: Scope<'a>,
                $next: &mut impl FnMut(u64, <$out as Item>::Of<'a>) -> Flow,
            ) -> Flow {
                let ($this, _) = (self, $scope);
                $body
            }
        }
    };
}

each!(impl[I: Item, F: Call<I, T>, T] Map<F, T>, I => Value<T>, |this, record, item, scope, next| {
    next(record, this.0.call(item))
});

each!(impl[I: Item, F: Call<I, Option<T>>, T] FilterMap<F, T>, I => Value<T>, |this, record, item, scope, next| {
    match this.0.call(item) {
        Some(value) => next(record, value),
        None => Flow::Continue(()),
    }
});

each!(impl[I: Item, F: Call<I, Result<T, E>>, T, E: Into<AnyError>] TryMap<F, Result<T, E>>, I => Value<T>,
    |this, record, item, scope, next| {
        let address = I::address(&item);
        match this.0.call(item) {
            Ok(value) => next(record, value),
            Err(error) => scope.fail_at(record, address, stage_failed(error.into())),
        }
    }
);

each!(many impl[I: Item, F: Call<I, T>, T: IntoIterator] FlatMap<F, T>, I => Value<T::Item>,
    |this, record, item, scope, next| {
        this.0.call(item).into_iter().try_for_each(|value| next(record, value))
    }
);

each!(impl[I: Item, F: Look<I, bool>] Filter<F>, I => I, |this, record, item, scope, next| {
    if this.0.look(&item) { next(record, item) } else { Flow::Continue(()) }
});

each!(impl[I: Item, F: Look<I, Result<bool, E>>, E: Into<AnyError>] TryFilter<F, E>, I => I,
    |this, record, item, scope, next| {
        match this.0.look(&item) {
            Ok(true) => next(record, item),
            Ok(false) => Flow::Continue(()),
            Err(error) => scope.fail_at(record, I::address(&item), stage_failed(error.into())),
        }
    }
);

each!(impl[I: Item, F: Look<I, ()>] Inspect<F>, I => I, |this, record, item, scope, next| {
    this.0.look(&item);
    next(record, item)
});

each!(impl[F: FnMut(&[u8]) -> &[u8]] MapBytes<F>, Bytes => Bytes, |this, record, item, scope, next| {
    next(record, this.0(item))
});

each!(many impl[F: for<'b> FnMut(&'b [u8], &mut dyn FnMut(&'b [u8]))] Pieces<F>, Bytes => Bytes,
    |this, record, item, scope, next| {
        let mut flow = Flow::Continue(());
        this.0(item, &mut |piece| {
            if flow.is_continue() {
                flow = next(record, piece);
            }
        });
        flow
    }
);

/// The largest buffer that [`Rewrite`] keeps for the next record.
const BUFFER: usize = 1 << 20;

/// A function that writes bytes for each item, and its buffer.
#[derive(Clone, Debug)]
pub struct Rewrite<F> {
    function: F,
    bytes: Vec<u8>,
}

impl<F> Rewrite<F> {
    pub(super) fn new(function: F) -> Rewrite<F> {
        Rewrite { function, bytes: Vec::new() }
    }
}

impl<F> Rewrite<F> {
    /// Makes the bytes that the function has written an item.
    #[inline]
    fn pass<'a>(&mut self, record: u64, scope: Scope<'a>, next: &mut impl FnMut(u64, &'a [u8]) -> Flow) -> Flow {
        let kept = scope.keep(&self.bytes);
        // Each stage has its own buffer, and one long record should not keep all of these buffers large for the rest of
        // the run.
        if self.bytes.capacity() > BUFFER {
            self.bytes = Vec::new();
        }
        match kept {
            Ok(bytes) => next(record, bytes),
            Err(error) => scope.fail(record, error),
        }
    }
}

/// A function that borrows an item and writes bytes.
pub trait WriteOf<I: Item, T = ()> {
    /// Calls the function.
    fn write(&mut self, item: &I::Of<'_>, out: &mut Vec<u8>) -> T;
}

impl<F: FnMut(&[u8], &mut Vec<u8>) -> T, T> WriteOf<Bytes, T> for F {
    #[inline]
    fn write(&mut self, item: &&[u8], out: &mut Vec<u8>) -> T {
        self(item, out)
    }
}

impl<F: FnMut(&V, &mut Vec<u8>) -> T, V, T> WriteOf<Value<V>, T> for F {
    #[inline]
    fn write(&mut self, item: &V, out: &mut Vec<u8>) -> T {
        self(item, out)
    }
}

each!(impl[I: Item, F: WriteOf<I>] Rewrite<F>, I => Bytes, |this, record, item, scope, next| {
    this.bytes.clear();
    this.function.write(&item, &mut this.bytes);
    this.pass(record, scope, next)
});

/// A function that writes bytes for each item and may fail, and its buffer.
pub struct TryRewrite<F, E>(Rewrite<F>, PhantomData<fn() -> E>);

impl<F, E> TryRewrite<F, E> {
    pub(super) fn new(function: F) -> TryRewrite<F, E> {
        TryRewrite(Rewrite::new(function), PhantomData)
    }
}

impl<F: Clone, E> Clone for TryRewrite<F, E> {
    fn clone(&self) -> TryRewrite<F, E> {
        TryRewrite(self.0.clone(), PhantomData)
    }
}

impl<F, E> std::fmt::Debug for TryRewrite<F, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TryRewrite")
    }
}

each!(impl[I: Item, F: WriteOf<I, Result<(), E>>, E: Into<AnyError>] TryRewrite<F, E>, I => Bytes,
    |this, record, item, scope, next| {
        this.0.bytes.clear();
        match this.0.function.write(&item, &mut this.0.bytes) {
            Ok(()) => this.0.pass(record, scope, next),
            Err(error) => scope.fail_at(record, I::address(&item), stage_failed(error.into())),
        }
    }
);

/// A function with a state that the function may change.
#[derive(Clone, Debug)]
pub struct ScanState<S, F, T> {
    state: S,
    stage: Map<F, T>,
}

impl<S, F, T> ScanState<S, F, T> {
    pub(super) fn new(state: S, function: F) -> Self {
        ScanState { state, stage: Map::new(function) }
    }
}

each!(impl[S, F: FnMut(&mut S, &[u8]) -> T, T] ScanState<S, F, T>, Bytes => Value<T>, |this, record, item, scope, next| {
    next(record, (this.stage.0)(&mut this.state, item))
});

each!(impl[S, F: FnMut(&mut S, V) -> T, V, T] ScanState<S, F, T>, Value<V> => Value<T>, |this, record, item, scope, next| {
    next(record, (this.stage.0)(&mut this.state, item))
});

/// Passes on the first n items.
#[derive(Clone, Debug)]
pub struct Take(pub(super) u64);

impl<I: Item> Each<I> for Take {
    type Out = I;
    const AT_MOST_ONE: bool = true;

    #[inline]
    fn each<'a>(
        &mut self,
        record: u64,
        item: I::Of<'a>,
        _scope: Scope<'a>,
        next: &mut impl FnMut(u64, I::Of<'a>) -> Flow,
    ) -> Flow {
        if self.0 == 0 {
            return Flow::Break(());
        }
        self.0 -= 1;
        let flow = next(record, item);
        if self.0 == 0 { Flow::Break(()) } else { flow }
    }

    fn is_done(&self) -> bool {
        self.0 == 0
    }
}

/// Passes on all but the first n items.
#[derive(Clone, Debug)]
pub struct Skip(pub(super) u64);

each!(impl[I: Item] Skip, I => I, |this, record, item, scope, next| {
    if this.0 == 0 {
        return next(record, item);
    }
    this.0 -= 1;
    Flow::Continue(())
});

/// Copies each item to a writer, followed by a terminator.
pub struct Tee<'w> {
    pub(super) out: &'w mut Writer,
    pub(super) terminator: Vec<u8>,
}

impl std::fmt::Debug for Tee<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tee").field("out", &self.out.name()).finish_non_exhaustive()
    }
}

each!(impl['w] Tee<'w>, Bytes => Bytes, |this, record, item, scope, next| {
    match crate::put!(this.out, item, &this.terminator[..]) {
        Ok(()) => next(record, item),
        Err(error) => scope.end(record, error),
    }
});
