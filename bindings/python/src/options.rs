//! A reader's options from Python, which are checked once and used for each attempt to open.

use std::time::Duration;

use millstream::options::{READER, Set, Setting};
use millstream::{Reader, ReaderBuilder};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error;
use crate::foreign::{Function, Functions};
use crate::framer::{Framer, Spec, Words};
use crate::number::{Whole, refuse_bool};
use crate::record::Encoding;

/// The options for creating a reader.
pub struct Options {
    pub encoding: Encoding,
    pub framer: Spec,
    pub items: Items,
    /// Whether records are the elements of an array of a JSON document.
    pub has_elements: bool,
    pub stall_timeout: Option<Duration>,
    observer: Option<(Function, Duration)>,
    settings: Settings<ReaderBuilder>,
}

/// The items that an iteration yields.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Items {
    /// Lines without their ends. This common case has its own code.
    Lines,
    /// Lines of text with their ends, as in a Python file, so that `csv` and others find the line feeds inside a field.
    WholeLines,
    /// All other records that a framer finds.
    Records,
}

impl Options {
    /// Takes all options out of the keywords; the remaining ones are unknown.
    pub fn new(py: Python<'_>, keywords: &Bound<'_, PyDict>) -> PyResult<Options> {
        let encoding = Encoding::new(py, take(keywords, "encoding")?, take(keywords, "errors")?)?;
        let has_elements = keywords.get_item("json_elements")?.is_some_and(|pointer| !pointer.is_none());
        let (framer, is_default) = framer(py, keywords, has_elements)?;
        if matches!(framer, Spec::Lines { .. }) && !encoding.has_lines(py)? {
            return Err(error::refuse(
                py,
                "lines in an encoding whose line feed is not the byte 10",
                "no encoding, and io.TextIOWrapper(reader, encoding=...) around the reader",
            ));
        }
        let options = Options {
            items: match (&framer, &encoding) {
                (Spec::Lines { keep: false }, Encoding::Bytes) => Items::Lines,
                (Spec::Lines { keep: false }, _) if is_default => Items::WholeLines,
                (Spec::Lines { keep: false }, _) => Items::Lines,
                _ => Items::Records,
            },
            encoding,
            framer,
            has_elements,
            stall_timeout: seconds(py, keywords, "stall_timeout")?,
            observer: {
                let every = seconds(py, keywords, "observer_interval")?;
                let call = take(keywords, "observer")?.map(|call| Function::new(py, call)).transpose()?;
                if every.is_some() && call.is_none() {
                    return Err(error::refuse(py, "observer_interval without observer", "both"));
                }
                call.map(|call| (call, every.unwrap_or(Duration::from_millis(100))))
            },
            settings: Settings::take(py, keywords, READER)?,
        };
        if options.stall_timeout.is_some_and(|limit| limit.is_zero()) {
            return Err(error::refuse(py, "stall_timeout=0", "seconds, more than 0"));
        }
        refuse_unknown(keywords)?;
        Ok(options)
    }

    /// The functions that the core will call.
    pub fn functions(&self) -> Functions {
        let mut functions = Functions::default();
        self.observer.iter().for_each(|(call, _)| functions.add(call));
        functions
    }

    /// The core's builder.
    pub fn builder(&self) -> ReaderBuilder {
        let mut builder = self.settings.apply(Reader::builder());
        if let Some(limit) = self.stall_timeout {
            // Waits are interrupted to check for signals, and this limit applies across the interruptions. The core's
            // own limit is used if no thread is available for them. It is longer, because the reader has ended after
            // it.
            builder = builder.stall_timeout(limit.saturating_add(Duration::from_secs(1)));
        }
        if let Some((call, every)) = &self.observer {
            let call = call.clone();
            builder = builder.observer(*every, move |progress| {
                Python::attach(|py| {
                    let told = call.call(py, (progress.source_bytes, progress.source_size, progress.records));
                    // Reading continues if a progress display fails.
                    told.map_or_else(|error| error.write_unraisable(py, None), drop);
                });
            });
        }
        builder
    }
}

/// Returns the framer, and whether it is the default.
fn framer(py: Python<'_>, keywords: &Bound<'_, PyDict>, has_elements: bool) -> PyResult<(Spec, bool)> {
    let kept = take(keywords, "keep_delimiter")?;
    let keep = kept.unwrap_or(false);
    let framer = take::<Py<Framer>>(keywords, "framer")?;
    let delimiter = take::<Words>(keywords, "delimiter")?;
    let is_default = framer.is_none() && delimiter.is_none() && kept.is_none();
    let spec = match (framer, delimiter) {
        (Some(_), Some(_)) => return Err(error::refuse(py, "a framer and a delimiter", "one of them")),
        (Some(_), None) if keep => {
            return Err(error::refuse(py, "keep_delimiter with a framer", "Framer.lines(keep_delimiter=True)"));
        }
        (Some(framer), None) => framer.get().spec.clone(),
        (None, Some(delimiter)) => Spec::Delimiter { bytes: delimiter.into_bytes(), keep },
        (None, None) if has_elements && kept.is_none() => Spec::elements(),
        (None, None) => Spec::Lines { keep },
    };
    Ok((spec, is_default))
}

/// What sets an option.
type Apply<B> = Box<dyn Fn(B) -> B + Send + Sync>;

/// The options of the library that were given.
pub struct Settings<B>(Vec<Apply<B>>);

impl<B: 'static> Settings<B> {
    /// Takes them out of the keywords.
    pub fn take(py: Python<'_>, keywords: &Bound<'_, PyDict>, table: &[Setting<B>]) -> PyResult<Settings<B>> {
        let mut given: Vec<Apply<B>> = Vec::new();
        for Setting { name, set, .. } in table {
            given.extend(setting(py, keywords, name, set)?);
        }
        Ok(Settings(given))
    }

    /// Sets them.
    pub fn apply(&self, builder: B) -> B {
        self.0.iter().fold(builder, |builder, set| set(builder))
    }
}

fn setting<B: 'static>(
    py: Python<'_>,
    keywords: &Bound<'_, PyDict>,
    name: &str,
    set: &Set<B>,
) -> PyResult<Option<Apply<B>>> {
    fn boxed<B>(apply: impl Fn(B) -> B + Send + Sync + 'static) -> Apply<B> {
        Box::new(apply)
    }
    Ok(match *set {
        Set::Number(set) => take(keywords, name)?.map(|Whole(number)| boxed(move |builder| set(builder, number))),
        Set::Numbers(set) => {
            take(keywords, name)?.map(|(Whole(one), Whole(other))| boxed(move |builder| set(builder, one, other)))
        }
        Set::List(set) => take(keywords, name)?.map(|numbers: Vec<Whole<i32>>| {
            let numbers: Vec<i32> = numbers.into_iter().map(|Whole(number)| number).collect();
            boxed(move |builder| set(builder, &numbers))
        }),
        Set::Flag(set) => take(keywords, name)?.map(|flag: bool| boxed(move |builder| set(builder, flag))),
        Set::Time(set) => seconds(py, keywords, name)?.map(|time| boxed(move |builder| set(builder, time))),
        Set::Text(set) => take(keywords, name)?.map(|text: String| boxed(move |builder| set(builder, text.clone()))),
        Set::Word(words) => match take::<String>(keywords, name)? {
            None => None,
            Some(found) => match words.iter().find(|word| word.word == found) {
                Some(word) => Some(boxed(word.set)),
                None => {
                    let all: Vec<String> = words.iter().map(|word| format!("{:?}", word.word)).collect();
                    return Err(error::refuse(py, format!("{name}={found:?}"), all.join(" or ")));
                }
            },
        },
    })
}

/// Removes and returns an option; returns nothing if it is missing or `None`.
pub fn take<T>(options: &Bound<'_, PyDict>, key: &str) -> PyResult<Option<T>>
where
    T: for<'a, 'py> FromPyObject<'a, 'py>,
{
    // Usually there are few options or none, and this function is called for each that could be there.
    if options.is_empty() {
        return Ok(None);
    }
    let Some(value) = options.get_item(key)? else { return Ok(None) };
    options.del_item(key)?;
    if value.is_none() {
        return Ok(None);
    }
    value.extract::<T>().map(Some).map_err(|error| {
        let error: PyErr = error.into();
        let note = format!("in the option {key}");
        // The message is correct without the note, too.
        let _ = error.value(options.py()).call_method1("add_note", (note,));
        error
    })
}

/// Fails if an option was not taken: it is unknown.
pub fn refuse_unknown(keywords: &Bound<'_, PyDict>) -> PyResult<()> {
    match keywords.iter().next() {
        Some((key, _)) => Err(PyTypeError::new_err(format!("unknown option {key}"))),
        None => Ok(()),
    }
}

/// A time in seconds.
pub fn seconds(py: Python<'_>, keywords: &Bound<'_, PyDict>, key: &str) -> PyResult<Option<Duration>> {
    if !keywords.is_empty()
        && let Some(value) = keywords.get_item(key)?
    {
        refuse_bool(&value)?;
    }
    let Some(seconds) = take::<f64>(keywords, key)? else { return Ok(None) };
    let duration = Duration::try_from_secs_f64(seconds);
    duration.map(Some).map_err(|_| error::refuse(py, format!("{key}={seconds}"), "seconds, not negative"))
}
