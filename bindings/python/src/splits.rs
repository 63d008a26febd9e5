//! Plans that divide files into splits, and the splits.

use std::hash::{Hash, Hasher};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};

use millstream::splits::{
    Framing, PassPart, PassResult, SharedPass as CoreSharedPass, Split as CoreSplit, SplitPin, Splits as CoreSplits,
    SplitsBuilder,
};
use millstream::{CancelToken, Decode, Error, Remote as CoreRemote};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList, PySlice, PyTuple, PyType};

use crate::error;
use crate::framer::{Framer, JSON_DEPTH, Spec};
use crate::number::Whole;
use crate::remote::{ListedObject, Location, Remote, check_process};
use crate::wait::once;

/// The number of objects that are planned at the same time.
const AHEAD: usize = 16;

/// A plan: the splits of a file, in order. A sequence of `Split`.
///
/// `Splits.plan` divides a file. Reading its splits in order, each with `open_split`, returns exactly what one reader of
/// the whole file returns: the same records, errors and offsets. A plan depends only on the file and the arguments, not
/// on the number of workers.
#[pyclass(frozen, eq, module = "millstream")]
#[derive(PartialEq)]
pub struct Splits(CoreSplits);

/// One part of a file or object, complete by itself: the path or URL, the framer, the range, and what detects another
/// version.
///
/// It can be pickled, so that `concurrent.futures`, Dask and Ray can send it to a worker, and `to_json` is a line of JSON
/// that every language and `millstream run --split` read. A record belongs to the split in which it begins, so a split
/// may be read beyond its end, and may contain no record.
#[pyclass(frozen, eq, hash, module = "millstream")]
#[derive(PartialEq)]
pub struct Split(pub CoreSplit);

impl Hash for Split {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.0.path(), self.0.url(), self.0.begin(), self.0.end()).hash(state);
    }
}

#[pymethods]
impl Splits {
    /// Divides a regular file, or an object, into splits of about `size` bytes: 256 MiB by default. Records are lines by
    /// default.
    ///
    /// Lines, most delimiters and records of a fixed length need no pass: a file of any size is divided without reading
    /// it. CSV, BSON and length-prefixed records are followed from the start of the file. Such a plan knows the number
    /// of the first record of each split. `Framer.any_of` and `keep_delimiter` cannot be stored; to keep delimiters, pass
    /// `keep_delimiter` to `open_split`.
    ///
    /// A compressed file is divided at its bgzf blocks or zstd frames, a gzip file at the points of its index, and sizes
    /// and offsets are of decoded bytes. Other compressed files are one split, and `note` says why. With `decode="off"`,
    /// the compressed bytes themselves are divided. `index` is the path of the index of a gzip file: that of the file
    /// with the suffix `.gzidx` by default, if it can be used.
    ///
    /// `json_elements` divides a JSON document after elements of its array, with the limit `json_depth`; they are those of
    /// readers. All of the document is checked.
    ///
    /// With `number=True`, each split has the number of its first record, so that errors have the numbers of records and
    /// lines in the whole file. Lines and delimiters need a pass for that.
    ///
    /// `pin` is what each split stores to detect another file or another version of it. `"none"`: nothing, only a shorter
    /// file is detected. `"identity"`: size, modification time and inode, for one machine. `"ends"`: size and a hash of
    /// 64 KiB at both ends, and at the start of each split if planning reads the file, for copies on other machines.
    /// `"full"`: also a hash of each split, for which the file is read once. For an object, each split stores the size and
    /// the ETag, and every request requires them. The server must have ranges and send a strong ETag.
    #[staticmethod]
    #[pyo3(
        signature = (path, framer = None, *, size = Whole(256 << 20), pin = "identity", decode = "auto", index = None,
            json_elements = None, json_depth = None, number = false),
        text_signature = "(path, framer=None, *, size=268435456, pin='identity', decode='auto', index=None, json_elements=None, json_depth=None, number=False)"
    )]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn plan(
        py: Python<'_>,
        path: Location,
        framer: Option<&Bound<'_, Framer>>,
        size: Whole<u64>,
        pin: &str,
        decode: &str,
        index: Option<Location>,
        json_elements: Option<String>,
        json_depth: Option<Whole<usize>>,
        number: bool,
    ) -> PyResult<Splits> {
        let framing = match (framer, json_elements) {
            (Some(_), Some(_)) => return Err(error::refuse(py, "a framer and json_elements", "one of them")),
            (None, Some(pointer)) => {
                let depth = json_depth.map_or(JSON_DEPTH, |Whole(depth)| depth);
                Ok(Framing::JsonElements { pointer, depth })
            }
            (_, None) if json_depth.is_some() => {
                return Err(error::refuse(py, "json_depth without json_elements", "both, or neither"));
            }
            (Some(framer), None) => framer.get().spec.framing(),
            (None, None) => Ok(Framing::Lines),
        };
        let framing = framing.map_err(|error| error::raise(py, &error))?;
        let builder = builder(py, pin, decode)?;
        let token = CancelToken::lazy();
        let mut builder = builder.cancel(&token).number(number);
        if let Some(index) = index {
            builder = builder.index(index.file(py, "an index")?);
        }
        let plan = || match path {
            Location::Path(path) => builder.plan(path, framing, size.0),
            Location::Object(remote) => {
                check_process(|| remote.name())?;
                builder.plan_url(remote, framing, size.0)
            }
        };
        raised(py, once(py, &token, plan)?).map(Splits)
    }

    /// A plan from JSON.
    #[classmethod]
    fn from_json(class: &Bound<'_, PyType>, json: &str) -> PyResult<Splits> {
        raised(class.py(), CoreSplits::from_json(json)).map(Splits)
    }

    /// The plan as JSON, with each split on its own line.
    fn to_json(&self) -> String {
        self.0.to_json()
    }

    /// The size of the file in bytes when it was planned.
    #[getter]
    fn file_size(&self) -> u64 {
        self.0.file_size()
    }

    /// The number of records of the file, if planning counted them. An incomplete or invalid record at the end is not
    /// counted.
    #[getter]
    fn records(&self) -> Option<u64> {
        self.0.records()
    }

    /// Why the file has fewer splits than its size suggests, such as a format that cannot be divided.
    #[getter]
    fn note(&self) -> Option<&str> {
        self.0.note()
    }

    /// The splits of worker `index` of `count`, in a random order that `seed` determines, as a list.
    ///
    /// Each split belongs to one worker, and the numbers of splits differ by at most one. The result is the same in every
    /// language and on every machine. For each epoch of a training loop, use another seed.
    fn shard<'py>(
        &self,
        py: Python<'py>,
        index: Whole<usize>,
        count: Whole<usize>,
        seed: Whole<u64>,
    ) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, raised(py, self.0.shard(index.0, count.0, seed.0))?.into_iter().map(Split))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if index.is_instance_of::<PySlice>() {
            return self.to_list(py)?.as_any().get_item(index);
        }
        let Whole(index) = index.extract::<Whole<isize>>()?;
        let number = if index < 0 { index + self.0.len() as isize } else { index };
        match usize::try_from(number).ok().and_then(|number| self.0.iter().nth(number)) {
            Some(split) => Ok(Bound::new(py, Split(split.clone()))?.into_any()),
            None => Err(PyIndexError::new_err(format!("split {index} of {}", self.0.len()))),
        }
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.to_list(py)?.try_iter()
    }

    /// The position of the first split that is equal to this value.
    #[pyo3(signature = (value, start = 0, stop = isize::MAX, /))]
    fn index(&self, py: Python<'_>, value: &Bound<'_, PyAny>, start: isize, stop: isize) -> PyResult<usize> {
        self.to_list(py)?.call_method1("index", (value, start, stop))?.extract()
    }

    /// The number of splits that are equal to this value.
    fn count(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<usize> {
        self.to_list(py)?.call_method1("count", (value,))?.extract()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduced(slf, slf.get().to_json())
    }

    fn __repr__(&self) -> String {
        format!("<millstream.Splits, {} of {} bytes>", self.0.len(), self.0.file_size())
    }
}

impl Splits {
    fn to_list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.0.iter().map(|split| Split(split.clone())))
    }
}

/// The options of a plan.
fn builder(py: Python<'_>, pin: &str, decode: &str) -> PyResult<SplitsBuilder> {
    let pins = [
        ("none", SplitPin::None),
        ("identity", SplitPin::Identity),
        ("ends", SplitPin::Ends),
        ("full", SplitPin::Full),
    ];
    let builder = CoreSplits::builder().pin(error::choose(py, "pin", pin, &pins)?);
    Ok(builder.decode(error::choose(py, "decode", decode, &[("auto", Decode::Auto), ("off", Decode::Off)])?))
}

/// Divides objects, several at the same time. Nothing is asked of an object of a list if `decode` is `"off"` and its
/// records need no pass.
#[pyfunction]
pub fn plan_objects(
    py: Python<'_>,
    objects: Vec<Bound<'_, PyAny>>,
    framer: &Bound<'_, Framer>,
    size: Whole<u64>,
    pin: &str,
    decode: &str,
) -> PyResult<Vec<Splits>> {
    let token = CancelToken::lazy();
    let builder = builder(py, pin, decode)?.cancel(&token);
    let framing = raised(py, framer.get().spec.framing())?;
    let objects = objects.iter().map(|object| match object.cast::<ListedObject>() {
        Ok(listed) => Ok((CoreRemote::new(&*listed.get().0.url), builder.clone().listed(&listed.get().0))),
        Err(_) => Ok((CoreRemote::new(object.extract::<String>()?), builder.clone())),
    });
    let objects = objects.collect::<PyResult<Vec<_>>>()?;
    let plan = || {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut plans = Vec::new();
            while let at = next.fetch_add(1, Ordering::Relaxed)
                && let Some((remote, builder)) = objects.get(at)
            {
                let plan = builder.clone().plan_url(remote.clone(), framing.clone(), size.0);
                if plan.is_err() {
                    // The objects before it have been taken, and the first error counts.
                    next.store(objects.len(), Ordering::Relaxed);
                }
                plans.push((at, plan));
            }
            plans
        };
        check_process(|| objects.first().map(|(remote, _)| remote.name()).unwrap_or_default())?;
        let mut plans = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..AHEAD.min(objects.len())).map(|_| scope.spawn(work)).collect();
            workers
                .into_iter()
                .flat_map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
                .collect::<Vec<_>>()
        });
        plans.sort_by_key(|&(at, _)| at);
        plans.into_iter().map(|(_, plan)| plan.map(Splits)).collect()
    };
    raised(py, once(py, &token, plan)?)
}

/// A pass over a file or object of CSV that several processes make together.
#[pyclass(frozen, module = "millstream._native")]
pub struct SharedPass {
    core: CoreSharedPass,
    token: CancelToken,
}

#[pymethods]
impl SharedPass {
    /// Begins a plan whose pass is made in parts of `part_size` bytes; `None` if there is no pass to share. Only the first
    /// bytes are read.
    #[staticmethod]
    fn begin(
        py: Python<'_>,
        path: &Bound<'_, PyAny>,
        framer: &Bound<'_, Framer>,
        size: Whole<u64>,
        part_size: Whole<u64>,
        pin: &str,
        decode: &str,
    ) -> PyResult<Option<SharedPass>> {
        let token = CancelToken::lazy();
        let builder = builder(py, pin, decode)?.cancel(&token);
        let framing = raised(py, framer.get().spec.framing())?;
        let (location, builder) = match path.cast::<ListedObject>() {
            Ok(listed) => {
                let listed = &listed.get().0;
                (Location::Object(CoreRemote::new(&*listed.url)), builder.listed(listed))
            }
            Err(_) => (path.extract()?, builder),
        };
        let begin = || match location {
            Location::Path(path) => builder.share(path, framing, size.0, part_size.0),
            Location::Object(remote) => {
                check_process(|| remote.name())?;
                builder.share_url(remote, framing, size.0, part_size.0)
            }
        };
        let core = raised(py, once(py, &token, begin)?)?;
        Ok(core.map(|core| SharedPass { core, token }))
    }

    /// The parts as JSON, for `follow_part`.
    fn parts(&self) -> Vec<String> {
        self.core.parts().map(|part| part.to_json()).collect()
    }

    /// Composes the results of `follow_part`. Parts without one are followed now.
    fn plan(&self, py: Python<'_>, results: Vec<String>) -> PyResult<Splits> {
        let plan = || {
            let results = results.iter().map(|result| PassResult::from_json(result)).collect::<Result<Vec<_>, _>>()?;
            self.core.plan(results)
        };
        raised(py, once(py, &self.token, plan)?).map(Splits)
    }
}

/// Follows the records of a part of a `SharedPass`. Returns the result as JSON.
#[pyfunction]
pub fn follow_part(py: Python<'_>, part: &str) -> PyResult<String> {
    let token = CancelToken::lazy();
    let part = raised(py, PassPart::from_json(part))?.cancel(&token);
    let follow = || part.follow().map(|result| result.to_json());
    raised(py, once(py, &token, follow)?)
}

#[pymethods]
impl Split {
    /// A split from JSON.
    #[classmethod]
    fn from_json(class: &Bound<'_, PyType>, json: &str) -> PyResult<Split> {
        raised(class.py(), CoreSplit::from_json(json)).map(Split)
    }

    /// The split as one line of JSON. A path that is not UTF-8 is left out: see `with_path`. A URL is contained as it was
    /// given, with its query, which may be secret; the options of a `Remote` are not: see `with_remote`.
    fn to_json(&self) -> String {
        self.0.to_json()
    }

    /// The offset at which the split begins, in bytes from the start of the (decoded) file.
    #[getter]
    fn begin(&self) -> u64 {
        self.0.begin()
    }

    /// The offset after the split, or `None` for the end of the file.
    #[getter]
    fn end(&self) -> Option<u64> {
        self.0.end()
    }

    /// The number of the first record (the first of the file is 0), if planning counted the records.
    #[getter]
    fn first_record(&self) -> Option<u64> {
        self.0.first_record()
    }

    /// The number of its records without blank lines and comments of CSV, if planning counted them. A header is one
    /// of them. If an incomplete or invalid record ended the count, the number of the last split is not known.
    #[getter]
    fn rows(&self) -> Option<u64> {
        self.0.rows()
    }

    /// How the records are found.
    #[getter]
    fn framer(&self, py: Python<'_>) -> PyResult<Framer> {
        raised(py, Spec::try_from(self.0.framing())).map(|spec| Framer { spec })
    }

    /// The file's absolute path.
    #[getter]
    fn path(&self) -> Option<&std::ffi::OsStr> {
        self.0.path().map(std::path::Path::as_os_str)
    }

    /// The same split of a file with another path, such as a copy on another machine. If it needs an index that is next
    /// to the file, the copy must have one too.
    fn with_path(&self, py: Python<'_>, path: Location) -> PyResult<Split> {
        Ok(Split(self.0.clone().with_path(path.file(py, "divided")?)))
    }

    /// The object's URL as it was given. It may contain secrets.
    #[getter]
    fn url(&self) -> Option<&str> {
        self.0.url()
    }

    /// The name of the file or object as messages show it: a URL without user, password, query and fragment.
    #[getter]
    fn name(&self) -> String {
        self.0.name()
    }

    /// The same split of another object, such as a copy, or with other options of its requests, which JSON and pickle do
    /// not contain, because headers may be secret.
    ///
    ///     split = split.with_remote(ms.Remote(split.url, headers={"Authorization": token}))
    fn with_remote(&self, remote: &Bound<'_, Remote>) -> Split {
        Split(self.0.clone().with_remote(remote.get().core().clone()))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduced(slf, slf.get().to_json())
    }

    fn __repr__(&self) -> String {
        let end = self.0.end().map_or("the end".to_owned(), |end| end.to_string());
        let name = Some(self.0.name()).filter(|name| !name.is_empty());
        let name = name.map_or("a file".to_owned(), |name| format!("{name:?}"));
        format!("<millstream.Split from {} to {end} of {name}>", self.0.begin())
    }
}

/// A function and its arguments, from which pickle makes an object again.
pub type Reduced<'py> = (Bound<'py, PyAny>, Bound<'py, PyTuple>);

/// Returns what pickle needs to make an object from its JSON.
pub fn reduced<'py, T>(object: &Bound<'py, T>, json: String) -> PyResult<Reduced<'py>> {
    Ok((object.as_any().get_type().getattr("from_json")?, PyTuple::new(object.py(), [json])?))
}

/// Returns the result, or else the exception.
pub fn raised<T>(py: Python<'_>, result: Result<T, Error>) -> PyResult<T> {
    result.map_err(|error| error::raise(py, &error))
}
