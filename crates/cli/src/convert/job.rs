//! The conversion: moves batches from the sources to the table, and completes the outputs.

use std::time::{Duration, Instant};

use millstream::bson::Json;
use millstream::{Error, ErrorKind, Result, show_argv};
use millstream_columns::document_schema_to_json;
use serde::Serialize;

use crate::run::{Failure, Progress, Rejects, Report, Show, Sink, Source, check_outputs, count_text};
use crate::signals::Signals;
use crate::standard::{STANDARD_OUTPUT, Stream};
use crate::tables::{BinaryOptions, Kind, TextOptions};
use crate::{Ending, guard, message, standard};

use super::check;
use super::formats::{From, To};
use super::input::{Columns, How, Input, Opened};
use super::options::{Options, Switch};
use super::output::{Complete, Output, TableOptions};

/// The time after the death of a command in which a signal to this process may arrive.
const SAME_SIGNAL: Duration = Duration::from_millis(50);

/// Runs the requested conversion.
pub(super) fn run(options: &Options) -> Ending {
    let sources = check::sources(options);
    let chosen = check::from(options, &sources).and_then(|from| {
        let to = if options.print_schema { None } else { Some(check::to(options)?) };
        check::check(options, &sources, from, to).map(|()| (from, to))
    });
    let (from, to) = match chosen {
        Ok(chosen) => chosen,
        Err(error) => return message::fail(&error),
    };
    let mut signals = match Signals::new() {
        Ok(signals) => signals,
        Err(error) => return message::fail(&error),
    };
    let ending = match convert(options, &sources, from, to, &mut signals) {
        Ok(ending) => ending,
        Err(error) => explain(&error, options, from, &signals),
    };
    signals.or(ending)
}

fn binary_options(options: &Options) -> BinaryOptions {
    let default = BinaryOptions::default();
    BinaryOptions {
        packing: options.compression,
        group_rows: options.row_group_size.map_or(default.group_rows, |rows| rows as usize),
        dictionary: options.dictionary != Some(Switch::Off),
        threads: options.jobs.unwrap_or(1).into(),
    }
}

/// Converts all sources. When this returns, all commands have ended, and incomplete outputs have been removed.
fn convert(options: &Options, sources: &[Source], from: From, to: Option<To>, signals: &mut Signals) -> Result<Ending> {
    let started = Instant::now();
    options.bad.check()?;
    let sink = options.output.clone().unwrap_or(Sink::Stdout);
    let network = options.reading.settings().network();
    let writing = match to {
        Some(to) => Some((to, check::encode(to, &sink)?, check::place(options)?)),
        None => None,
    };
    let how = How::new(options, from, to, sources, signals.token())?;
    check_standard_streams(options, to.map(|_| &sink))?;
    let previews = sources.iter().map(|source| source.preview(network)).collect::<Result<Vec<_>>>()?;
    let identities: Vec<_> = previews.iter().map(|preview| preview.identity.clone()).collect();
    let rejects_sink = options.bad.file().map(|path| Sink::File(path.into()));
    check_outputs(to.map(|_| &sink).into_iter(), options.stats.iter().chain(&rejects_sink), &identities)?;

    // Opening a FIFO or a connection may wait, and there is nothing to clean up yet, so until then a signal has its
    // normal effect. A command, in contrast, must be stopped.
    if !options.command.is_empty() {
        guard::start();
    }
    if matches!(sources[0], Source::Command(_)) {
        signals.watch()?;
    }
    let opened = how.open(&sources[0])?;
    signals.watch()?;
    let size = previews.iter().enumerate().map(|(i, preview)| if i == 0 { opened.size() } else { preview.size }).sum();
    let Some((to, encode, place)) = writing else {
        return print_schema(&how, opened);
    };
    let stats = options.stats.as_ref().map(|sink| Report::open(sink, network, signals)).transpose()?;
    let shows_progress = options.progress.is_wanted(sink == Sink::Stdout);
    if shows_progress {
        sink.state_limit(network);
    }
    let progress = shows_progress.then(|| Progress::start(size));
    let mut job = Job {
        options,
        signals,
        how,
        started,
        rejects: Rejects::limited(&options.bad, signals.token())?,
        progress,
        names: sources.iter().map(label).collect(),
        ended: Vec::new(),
        absent: None,
        notes: Vec::new(),
        rows: 0,
        bytes: 0,
        source_bytes: 0,
    };
    let moved = job.run(sources, opened, |job, input| {
        let text = TextOptions {
            null: options.null.first().cloned().unwrap_or_default(),
            is_seen: sink == Sink::Stdout && standard::is_seen(),
            json: if options.documents.canonical { Json::Canonical } else { Json::Relaxed },
        };
        let kind = match to {
            To::Parquet => Kind::Parquet,
            To::Arrow => Kind::Arrow,
            To::ArrowStream => Kind::ArrowStream,
            To::Csv => Kind::Csv,
            To::Jsonl if from == From::Bson => Kind::ExtendedJson,
            To::Jsonl => Kind::JsonLines,
        };
        let cancel = job.signals.token().clone();
        let binary = binary_options(options);
        let network = network.clone();
        let how = TableOptions { kind, binary, text, encode, network, cancel };
        Output::open(how, place, input.schema(), job.names.clone())
    });
    job.finish(moved, stats, &sink)
}

/// Fails if a result should be printed to a closed stream.
fn check_standard_streams(options: &Options, sink: Option<&Sink>) -> Result<()> {
    let network = options.reading.settings().network();
    sink.into_iter().chain(&options.stats).try_for_each(|sink| sink.check(network))?;
    if options.print_schema || options.count {
        Stream::Output.check()?;
    }
    if options.progress == Show::Always {
        Stream::Error.check()?;
    }
    Ok(())
}

/// Prints the schema of a source.
fn print_schema(how: &How<'_>, opened: Opened) -> Result<Ending> {
    let name = opened.name().to_string();
    let input = how.begin(opened, None)?;
    let schema = match input.columns() {
        Some(Columns::Records(schema)) => schema.to_json(),
        _ => document_schema_to_json(&input.schema()).map_err(|error| error.with_name(name))?,
    };
    // The rest of the source is not needed, so it does not matter how it ends.
    let _ = input.close();
    Ok(message::print(format!("{schema}\n").as_bytes()))
}

/// Returns the name of a source in metadata.
fn label(source: &Source) -> String {
    match source {
        Source::Stdin => "standard input".to_string(),
        Source::File(path) => path.display().to_string(),
        Source::Tcp(address) => format!("tcp:{address}"),
        Source::Unix(path) => format!("unix:{}", path.display()),
        Source::Url(url) => crate::run::shown_url(url),
        Source::Command(words) => show_argv(words),
        Source::Pipeline(commands) => commands.iter().map(|words| show_argv(words)).collect::<Vec<_>>().join(" | "),
        Source::Shell(line) => line.to_string_lossy().into_owned(),
        Source::Split(split) => split.path().map(|path| path.display().to_string()).unwrap_or_default(),
    }
}

/// A conversion in progress.
struct Job<'a> {
    options: &'a Options,
    signals: &'a Signals,
    how: How<'a>,
    started: Instant,
    rejects: Rejects,
    progress: Option<Progress>,
    names: Vec<String>,
    ended: Vec<SourceStats>,
    /// The columns that no document of a source so far has had.
    absent: Option<Vec<String>>,
    /// What to print about the sources after the output has appeared.
    notes: Vec<String>,
    rows: u64,
    /// The bytes of the sources that have ended, after and before decoding.
    bytes: u64,
    source_bytes: u64,
}

/// The report of `--stats`. Sizes are in bytes, times in seconds.
#[derive(Serialize)]
struct Stats<'a> {
    complete: bool,
    error: Option<Failure>,
    rows: u64,
    rejected: u64,
    bytes: u64,
    seconds: f64,
    sources: &'a [SourceStats],
}

/// One source that was read to its end.
#[derive(Serialize)]
struct SourceStats {
    name: String,
    rows: u64,
    rejected: u64,
    /// The number of bytes that the source delivered, after decoding.
    bytes: u64,
    /// The number of bytes read from the source, before decoding.
    source_bytes: u64,
}

impl Job<'_> {
    /// Converts the sources. Returns the output, which does not appear yet.
    fn run(
        &mut self,
        sources: &[Source],
        first: Opened,
        create: impl FnOnce(&Job<'_>, &Input) -> Result<Output>,
    ) -> Result<Complete> {
        self.show_name(&first);
        let mut input = self.how.begin(first, None)?;
        let schema = input.schema();
        let columns = input.columns();
        let mut output = create(self, &input)?;
        let mut rest = sources[1..].iter();
        loop {
            self.copy(input, &mut output)?;
            let Some(source) = rest.next() else { break };
            let opened = self.how.open(source)?;
            self.show_name(&opened);
            let name = opened.name().to_string();
            input = self.how.begin(opened, columns.as_ref())?;
            if input.schema().fields() != schema.fields() {
                return Err(Error::new(ErrorKind::ShapeMismatch)
                    .with_name(name)
                    .with_found("other columns or types")
                    .with_expected(format!("those of {}", self.names[0])));
            }
        }
        self.rejects.check(self.rows, true)?;
        if let Some(absent) = &self.absent {
            self.notes.extend(self.how.check_absent(absent, &self.names[0])?);
        }
        output.finish(self.rejects.count())
    }

    fn show_name(&self, opened: &Opened) {
        if let Some(progress) = &self.progress {
            progress.source(opened.name());
        }
    }

    /// Copies one source.
    fn copy(&mut self, mut input: Input, output: &mut Output) -> Result<()> {
        let (rows, rejected) = (self.rows, self.rejects.count());
        let copied = loop {
            let batch = input.next();
            for reject in input.take_rejects() {
                self.rejects.add(reject)?;
            }
            self.rejects.check(self.rows, false)?;
            let position = input.position();
            if let Some(progress) = &self.progress {
                progress.update(
                    self.bytes + position.bytes,
                    self.rows + self.rejects.count(),
                    self.source_bytes + position.source_bytes,
                );
            }
            match batch {
                // All records were bad.
                Ok(Some(batch)) if batch.num_rows() == 0 => {}
                Ok(Some(batch)) => {
                    self.rows += batch.num_rows() as u64;
                    output.write(&batch, self.rejects.count())?;
                }
                Ok(None) => break Ok(position),
                Err(error) => break Err(error),
            }
            self.signals.check()?;
        };
        if let Input::Documents(documents) = &input {
            self.notes.extend(documents.notes());
            if let Some(mut absent) = documents.absent() {
                absent.retain(|path| self.absent.as_ref().is_none_or(|others| others.contains(path)));
                self.absent = Some(absent);
            }
        }
        let closed = input.close();
        let position = copied?;
        closed?;
        self.bytes += position.bytes;
        self.source_bytes += position.source_bytes;
        self.ended.push(SourceStats {
            name: self.names[self.ended.len()].clone(),
            rows: self.rows - rows,
            rejected: self.rejects.count() - rejected,
            bytes: position.bytes,
            source_bytes: position.source_bytes,
        });
        Ok(())
    }

    /// Completes the outputs, or removes them.
    fn finish(self, moved: Result<Complete>, stats: Option<Report>, sink: &Sink) -> Result<Ending> {
        match self.progress {
            Some(progress) if moved.is_ok() => progress.finish(),
            progress => drop(progress),
        }
        let rejected = self.rejects.count();
        let moved = moved.and_then(|out| match self.signals.check() {
            Ok(()) => Ok(out),
            Err(error) => {
                out.abort();
                Err(error)
            }
        });
        let parts = moved.as_ref().map_or(0, Complete::count);
        let closed = match moved {
            Ok(out) => match self.rejects.close() {
                Ok(left_out) => out.close().map(|()| left_out),
                Err(error) => {
                    out.abort();
                    Err(error)
                }
            },
            Err(error) => {
                self.rejects.abandon();
                Err(error)
            }
        };
        let left_out = closed.as_ref().ok().and_then(|left_out| left_out.as_ref().err());
        if let Some(report) = stats {
            let error = closed.as_ref().err().or(left_out);
            let written = report.write(&Stats {
                complete: error.is_none(),
                error: error.map(Failure::from),
                rows: self.rows,
                rejected,
                bytes: self.bytes,
                seconds: self.started.elapsed().as_secs_f64(),
                sources: &self.ended,
            });
            if closed.is_ok() {
                written?;
            }
        }
        let left_out = closed?;
        // They are part of the output: without them, omitted data would be lost silently.
        for note in &self.notes {
            message::note(message::printable(&format!("millstream: {note}")).as_bytes())?;
        }
        let prints = *sink == Sink::Stdout;
        let mut line = format!("{}, {}", count_text(self.rows, "row"), count_text(self.bytes, "byte"));
        if self.options.parts.is_some() {
            line.push_str(&format!(", {}", count_text(parts as u64, "part")));
        }
        if rejected > 0 {
            line.push_str(&format!(", {}", count_text(rejected, "bad record")));
        }
        match self.options.count && !prints && self.options.stats != Some(Sink::Stdout) {
            true => match message::print(format!("{line}\n").as_bytes()) {
                Ending::COMPLETE => {}
                other => return Ok(other),
            },
            // The requested count is part of the output, too.
            false if self.options.count => message::note(line.as_bytes())?,
            false if Show::Auto.is_wanted(prints) => drop(message::note(line.as_bytes())),
            false => {}
        }
        left_out.map(|()| Ending::COMPLETE)
    }
}

/// Reports why the conversion failed, unless the user or the reader of the output caused the failure.
fn explain(error: &Error, options: &Options, from: From, signals: &Signals) -> Ending {
    use millstream::CommandStatus;
    let may_be_signalled = error.command().is_some_and(|end| match end.status {
        CommandStatus::Signaled(_) => true,
        CommandStatus::Exited(status) => status > 128,
        _ => false,
    });
    if may_be_signalled {
        let _ = signals.pause(Instant::now() + SAME_SIGNAL);
    }
    if let Some(signal) = signals.caught() {
        return message::ended_by(signal);
    }
    if error.kind() == ErrorKind::BrokenPipe {
        // If the reader closed standard output, the reader knows the reason.
        if error.name() != Some(STANDARD_OUTPUT) {
            message::fail(error);
        }
        return Ending::BROKEN_PIPE;
    }
    match advice(error, options, from) {
        Advice::Of(advice) => message::fail_with_advice(error, Some(advice)),
        Advice::Usual => message::fail(error),
        Advice::None => message::fail_with_advice(error, None),
    }
}

/// What to print after an error.
enum Advice {
    Of(&'static str),
    /// The advice of all subcommands.
    Usual,
    /// The error says everything.
    None,
}

/// Returns advice about a record that does not fit, in terms of this command's options.
fn advice(error: &Error, options: &Options, from: From) -> Advice {
    let is_repeated =
        from == From::Bson && error.expected().is_some_and(|expected| expected.starts_with("each key once"));
    let is_of_value = error.path().is_some() && (error.record().is_some() || error.line().is_some());
    match error.kind() {
        ErrorKind::ShapeMismatch if is_repeated => Advice::Of("--unknown count keeps the first value"),
        ErrorKind::InvalidOption | ErrorKind::ShapeMismatch if !is_of_value => Advice::None,
        // It is about the number of such records.
        _ if error.name().is_none() => Advice::None,
        _ if from == From::Bson => of_documents(error, options),
        ErrorKind::MemoryLimit => Advice::Of("raise --record-limit if the source is trusted"),
        _ if from.is_typed() => Advice::Usual,
        ErrorKind::ShapeMismatch => {
            Advice::Of("raise --infer, give the type with --schema, or keep such records apart with --rejects")
        }
        ErrorKind::FieldCountMismatch => Advice::Of("check the record, or see --ragged and --rejects"),
        ErrorKind::JsonInvalid => {
            Advice::Of("check the program that wrote the text, or keep such records apart with --rejects")
        }
        ErrorKind::CsvInvalid => {
            Advice::Of("check the file at this position, or see the options of the dialect and --rejects")
        }
        ErrorKind::KeyMissing if options.schema.is_some() => Advice::Of("correct --schema, or the header of the file"),
        ErrorKind::KeyMissing => Advice::Of("every source needs the columns of the first one, or those of --schema"),
        ErrorKind::NumberInvalid
        | ErrorKind::NumberOverflow
        | ErrorKind::TextInvalid
        | ErrorKind::Utf8Invalid
        | ErrorKind::ValueMissing
        | ErrorKind::ValueOutOfRange
            if is_of_value =>
        {
            Advice::Of("check the value, change the type in --schema, or keep such records apart with --rejects")
        }
        _ => Advice::Usual,
    }
}

/// Returns advice about a document that does not fit.
fn of_documents(error: &Error, options: &Options) -> Advice {
    let is_given = options.schema.is_some() || !options.documents.column.is_empty();
    match error.kind() {
        ErrorKind::ShapeMismatch | ErrorKind::ValueOutOfRange if is_given => {
            Advice::Of("name another type with --column or --schema, or see --mismatch, --unknown and --rejects")
        }
        ErrorKind::ShapeMismatch | ErrorKind::ValueOutOfRange => {
            Advice::Of("raise --infer, name the columns with --column, or see --mismatch, --unknown and --rejects")
        }
        // Documents with too many different members.
        ErrorKind::MemoryLimit if error.record().is_none() => Advice::None,
        ErrorKind::MemoryLimit => Advice::Of("raise --record-limit if the source is trusted"),
        ErrorKind::KeyMissing if error.record().is_none() => {
            Advice::Of("check the path, or make it a column of nulls with --absent null")
        }
        _ => Advice::Usual,
    }
}
