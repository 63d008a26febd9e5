//! The position at which the search for a record's end continues.

/// The position and state in which a framer continues. It is returned in [`Step::More`](super::Step::More), and passed
/// back with more bytes, so that no byte is examined twice.
///
/// The caller also uses the number of scanned bytes. Only the framer interprets the state, for example as "inside
/// quotes".
///
/// ```
/// use millstream::frame::{Framer, Resume, Step, Trim};
///
/// /// Lines as in CSV: a line end inside quotes is content.
/// struct Quoted;
///
/// impl Framer for Quoted {
///     fn step(&mut self, input: &[u8], resume: Resume, eof: bool) -> Step {
///         let mut is_inside = resume.state() == 1;
///         for (at, &byte) in input.iter().enumerate().skip(resume.scanned()) {
///             match byte {
///                 b'"' => is_inside = !is_inside,
///                 b'\n' if !is_inside => return Step::Record { len: at + 1, terminated: true },
///                 _ => {}
///             }
///         }
///         match eof {
///             true => Step::Record { len: input.len(), terminated: false },
///             false => Step::More { resume: Resume::after(input.len()).with_state(is_inside.into()), need: 0 },
///         }
///     }
///
///     fn trim(&self) -> Trim {
///         Trim { head: 0, tail: 1, carriage_return: true }
///     }
/// }
///
/// let Step::More { resume, .. } = Quoted.step(b"1,\"a\n", Resume::START, false) else { unreachable!() };
/// assert!(matches!(Quoted.step(b"1,\"a\nb\"\n2,", resume, false), Step::Record { len: 8, .. }));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resume {
    scanned: usize,
    state: u32,
}

impl Resume {
    /// The start of a record.
    pub const START: Resume = Resume { scanned: 0, state: 0 };

    /// Creates a `Resume` after this many bytes of the record, in state 0.
    #[inline]
    pub const fn after(scanned: usize) -> Resume {
        Resume { scanned, state: 0 }
    }

    /// Returns the same position with this state.
    #[inline]
    pub const fn with_state(self, state: u32) -> Resume {
        Resume { state, ..self }
    }

    /// Returns the number of bytes at the start of the record that do not contain its end. A reader that skips a record
    /// of unknown length drops them.
    #[inline]
    pub const fn scanned(self) -> usize {
        self.scanned
    }

    /// Returns the framer's state after these bytes.
    #[inline]
    pub const fn state(self) -> u32 {
        self.state
    }

    /// Returns the state after the scanned bytes were dropped.
    #[inline]
    pub const fn dropped(self) -> Resume {
        Resume { scanned: 0, ..self }
    }
}
