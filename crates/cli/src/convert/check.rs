//! Chooses the formats, and refuses options that do not fit together. Nothing has been opened yet.

use std::path::Path;

use millstream::{Encode, Error, ErrorKind, Result};

use crate::run::{Ragged, Sink, Source, shown_url};

use super::formats::{From, To, name};
use super::options::{Infer, Options};
use super::output::{Pattern, Place};

/// Returns an error of the command line.
fn refused<T>(found: impl Into<String>, expected: impl Into<String>) -> Result<T> {
    Err(Error::new(ErrorKind::InvalidOption).with_found(found).with_expected(expected))
}

/// The sources, in order.
pub(super) fn sources(options: &Options) -> Vec<Source> {
    let mut sources = options.sources.clone();
    if !options.command.is_empty() {
        sources.push(Source::Command(options.command.clone()));
    }
    if sources.is_empty() {
        sources.push(Source::Stdin);
    }
    sources
}

/// Returns the format of the sources.
pub(super) fn from(options: &Options, sources: &[Source]) -> Result<From> {
    if sources.iter().filter(|source| **source == Source::Stdin).count() > 1 {
        return refused("standard input as a source more than once", "'-' once: it can be read only once");
    }
    if let Some(from) = options.from {
        return Ok(from);
    }
    let mut chosen: Option<(From, String)> = None;
    for source in sources {
        let path = match source {
            Source::File(path) => path.clone(),
            // The query may be secret, and has no name.
            Source::Url(url) => shown_url(url).into(),
            Source::Command(_) => return refused("a command as source", "its format: --from FORMAT"),
            Source::Stdin => return refused("standard input as source", "its format: --from FORMAT"),
            _ => return refused("a connection as source", "its format: --from FORMAT"),
        };
        let Some(from) = From::of_name(&path) else {
            return refused(format!("{}, whose name implies no format", path.display()), "--from FORMAT");
        };
        match &chosen {
            Some((first, other)) if *first != from => {
                return refused(
                    format!("{other} ({}) and {} ({})", name(*first), path.display(), name(from)),
                    "sources of one format, or --from FORMAT",
                );
            }
            _ => chosen = Some((from, path.display().to_string())),
        }
    }
    match chosen {
        Some((from, _)) => Ok(from),
        None => refused("no source", "a file, or a command after --"),
    }
}

/// Returns the format of the output.
pub(super) fn to(options: &Options) -> Result<To> {
    if let Some(to) = options.to {
        return Ok(to);
    }
    match &options.output {
        Some(Sink::File(path)) => match To::of_name(path) {
            Some(to) => Ok(to),
            None => refused(format!("{}, whose name implies no format", path.display()), "--to FORMAT"),
        },
        Some(Sink::Url(url)) => match To::of_name(Path::new(url)) {
            Some(to) => Ok(to),
            None => refused(format!("{url}, whose name implies no format"), "--to FORMAT"),
        },
        Some(Sink::Tcp(_) | Sink::Unix(_)) => refused("a connection as output", "its format: --to FORMAT"),
        Some(Sink::Stdout) | None => refused("standard output as output", "its format: --to FORMAT, or -o FILE"),
    }
}

/// Returns where the output appears.
pub(super) fn place(options: &Options) -> Result<Place> {
    let sink = options.output.clone().unwrap_or(Sink::Stdout);
    let Some(size) = options.parts else { return Ok(Place::One(sink)) };
    let pattern = match &sink {
        Sink::File(path) => Pattern::of(path),
        _ => None,
    };
    match pattern {
        Some(pattern) => pattern.check().map(|()| Place::Parts(pattern, size)),
        None => {
            refused("--parts with an output that does not have '{}' in its name", "-o 'NAME-{}.parquet', for example")
        }
    }
}

/// Returns the compression of the output as a whole.
pub(super) fn encode(to: To, sink: &Sink) -> Result<Encode> {
    let encode = sink.encode().or_else(|error| {
        let expected = error.expected().unwrap_or_default();
        refused(error.found().unwrap_or_default(), format!("{expected}, or no compression"))
    })?;
    match to {
        To::Parquet | To::Arrow if encode != Encode::Off => refused(
            format!("--to {} with a name that implies compression", name(to)),
            "a name without it: readers need to seek in the file; see --compression",
        ),
        _ => Ok(encode),
    }
}

/// Fails if an option has no use. `to` is `None` if only the schema is printed.
pub(super) fn check(options: &Options, sources: &[Source], from: From, to: Option<To>) -> Result<()> {
    let text = !from.is_typed();
    let parquet = to == Some(To::Parquet);
    let of_bad = options.bad.first_given();
    let dialect = options.dialect.first_given();
    let infers = from.is_csv() || from.is_json();
    let has_null = (text && !from.is_json()) || to == Some(To::Csv);
    let of_from = [
        (options.no_header, "--no-header", "csv or tsv", from.is_csv()),
        (options.ragged.is_some(), "--ragged", "csv or tsv", from.is_csv()),
        (dialect.is_some(), dialect.unwrap_or_default(), "csv or tsv", from.is_csv()),
        (options.json_pointer.is_some(), "--json-pointer", "json", from == From::Json),
        (options.reading.gives("json_depth"), "--json-depth", "json", from == From::Json),
        (options.json_duplicates.is_some(), "--json-duplicates", "json or jsonl", from.is_json()),
        (options.infer.is_some(), "--infer", "csv, tsv, json, jsonl or bson", infers || from == From::Bson),
        (options.schema.is_some(), "--schema", "lines, csv, tsv, json, jsonl or bson", text || from == From::Bson),
        (options.decimals, "--decimals", "csv, tsv, json or jsonl", infers),
        (options.special_numbers, "--special-numbers", "csv or tsv", from.is_csv()),
        (!options.null.is_empty(), "--null", "lines, csv or tsv, or --to csv", has_null),
        (
            of_bad.is_some(),
            of_bad.unwrap_or_default(),
            "lines, csv, tsv, json, jsonl or bson",
            text || from == From::Bson,
        ),
    ];
    for (is_given, option, expected, has_use) in of_from {
        if is_given && !has_use {
            return refused(format!("{option} with --from {}", name(from)), format!("--from {expected}"));
        }
    }
    if options.ragged == Some(Ragged::Collect) {
        return refused("--ragged collect", "error or pad: fields without a name have no column; see also --rejects");
    }
    let arrow = matches!(to, Some(To::Arrow | To::ArrowStream));
    let of_to = [
        (options.compression.is_some(), "--compression", "--to parquet or arrow", parquet || arrow),
        (options.row_group_size.is_some(), "--row-group-size", "--to parquet", parquet),
        (options.dictionary.is_some(), "--dictionary", "--to parquet", parquet),
    ];
    for (is_given, option, expected, has_use) in of_to {
        match to {
            Some(to) if is_given && !has_use => return refused(format!("{option} with --to {}", name(to)), expected),
            None if is_given => return refused(format!("{option} with --print-schema"), "one of them"),
            _ => {}
        }
    }
    if let (Some(packing), Some(to)) = (options.compression, to)
        && let Some(instead) = packing.instead(parquet)
    {
        return refused(format!("--compression {} with --to {}", packing.name(), name(to)), instead);
    }
    let infers = options.schema.is_none() && options.infer != Some(Infer::Off);
    for (is_given, option) in [(options.decimals, "--decimals"), (options.special_numbers, "--special-numbers")] {
        if is_given && !infers {
            return refused(format!("{option} without inference of types"), "no --schema, and not --infer off");
        }
    }
    if options.infer == Some(Infer::All) {
        // Whether an object can be read twice is known when it is open.
        let files = sources.iter().filter(|source| !matches!(source, Source::Url(_)));
        check_files(files, "--infer all", "--infer COUNT: the sources are read twice")?;
    }
    if matches!(from, From::Parquet | From::Arrow) {
        check_files(sources, &format!("--from {}", name(from)), "a file: its end is read first")?;
    }
    if let Some(option) = options.reading.settings().expectation() {
        let option = format!("--{}", option.replace('_', "-"));
        if matches!(from, From::Parquet | From::Arrow) {
            return refused(
                format!("{option} with --from {}", name(from)),
                "another format: this one is not read in order",
            );
        }
        if sources.len() > 1 {
            return refused(format!("{option} with several sources"), "one source");
        }
    }
    if let Some(option) = options.reading.of_command().filter(|_| options.command.is_empty()) {
        return refused(format!("--{} without a command", option.replace('_', "-")), "a command after --");
    }
    check_documents(options, from, to)
}

/// Fails unless all sources are regular files.
fn check_files<'a>(sources: impl IntoIterator<Item = &'a Source>, option: &str, expected: &str) -> Result<()> {
    for source in sources {
        let found = match source {
            Source::File(path) => match std::fs::metadata(path) {
                Ok(metadata) if !metadata.is_file() => format!("{}, which is not a regular file", path.display()),
                // One that does not exist is reported when it is opened.
                _ => continue,
            },
            Source::Command(_) => "a command".to_string(),
            Source::Stdin => "standard input".to_string(),
            Source::Url(url) => shown_url(url),
            _ => "a connection".to_string(),
        };
        return refused(format!("{option} with {found}"), expected);
    }
    Ok(())
}

/// Fails if an option for documents of BSON has no use.
fn check_documents(options: &Options, from: From, to: Option<To>) -> Result<()> {
    let documents = &options.documents;
    let of_columns = documents.of_columns();
    if from != From::Bson {
        return match of_columns.or(documents.canonical.then_some("--canonical")) {
            Some(option) => refused(format!("{option} with --from {}", name(from)), "--from bson"),
            None => Ok(()),
        };
    }
    let is_whole = to == Some(To::Jsonl);
    if documents.canonical && !is_whole {
        let found = match to {
            Some(to) => format!("--canonical with --to {}", name(to)),
            None => "--canonical with --print-schema".to_string(),
        };
        return refused(found, "--to jsonl");
    }
    let types = [(options.infer.is_some(), "--infer"), (options.schema.is_some(), "--schema")];
    let types = types.into_iter().find(|(is_given, _)| *is_given).map(|(_, option)| option);
    if let Some(option) = of_columns.or(types).filter(|_| is_whole) {
        return refused(
            format!("{option} with --from bson and --to jsonl"),
            "a format with columns: JSON lines have the documents as they are",
        );
    }
    if documents.absent.is_some() && documents.column.is_empty() && options.schema.is_none() {
        return refused("--absent without columns", "--column or --schema");
    }
    Ok(())
}
