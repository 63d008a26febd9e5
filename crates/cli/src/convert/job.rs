//! The conversion: moves batches from the sources to the table, and completes the outputs.

use std::time::{Duration, Instant};

use millstream::{Error, ErrorKind, Result, show_argv};
use serde::Serialize;

use crate::run::{
    BadOptions, Failure, Progress, Reject, Rejects, Report, Show, Sink, Source, check_outputs, count_text,
};
use crate::signals::Signals;
use crate::standard::{STANDARD_OUTPUT, Stream};
use crate::tables::{BinaryOptions, Kind, TextOptions};
use crate::{Ending, bson, guard, message};

use super::check;
use super::formats::{From, To};
use super::input::{How, Input, Opened};
use super::options::{Infer, MaxRejects, Options, Switch};
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
    if let (From::Bson, Some(to)) = (from, to) {
        return bson::convert(as_bson(options, &sources[0], to));
    }
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

/// Returns the same request for `bson convert`.
fn as_bson(options: &Options, source: &Source, to: To) -> bson::Conversion {
    bson::Conversion {
        source: source.clone(),
        decoding: options.reading.decoding(),
        network: options.reading.settings().network().clone(),
        progress: options.progress,
        record_limit: options.reading.record_limit(),
        to: match to {
            To::Parquet => bson::To::Parquet,
            To::Arrow => bson::To::Arrow,
            To::ArrowStream => bson::To::ArrowStream,
            To::Csv => bson::To::Csv,
            To::Jsonl => bson::To::Ndjson,
        },
        output: options.output.clone(),
        infer: if let Some(Infer::First(count)) = options.infer { Some(count as u32) } else { None },
        binary: binary_options(options),
        null: options.null.first().cloned(),
        on_bad: options.on_bad,
        count: options.count,
    }
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
    let bad = BadOptions::new(options.on_bad, options.rejects.clone());
    bad.check()?;
    let sink = options.output.clone().unwrap_or(Sink::Stdout);
    let network = options.reading.settings().network();
    let writing = match to {
        Some(to) => Some((to, check::encode(to, &sink)?, check::place(options)?)),
        None => None,
    };
    if options.max_rejects.is_some() && options.on_bad == Some(crate::run::OnBad::Stop) {
        return Err(Error::new(ErrorKind::InvalidOption)
            .with_found("--max-rejects with --on-bad stop")
            .with_expected("one of them"));
    }
    let how = How::new(options, from, sources, bad.skips() || options.max_rejects.is_some(), signals.token())?;
    check_standard_streams(options, to.map(|_| &sink))?;
    let previews = sources.iter().map(|source| source.preview(network)).collect::<Result<Vec<_>>>()?;
    let identities: Vec<_> = previews.iter().map(|preview| preview.identity.clone()).collect();
    let rejects_sink = options.rejects.clone().map(Sink::File);
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
        rejects: Rejects::open(&bad, signals.token())?,
        progress,
        names: sources.iter().map(label).collect(),
        ended: Vec::new(),
        rows: 0,
        bytes: 0,
        source_bytes: 0,
    };
    let moved = job.run(sources, opened, |job, input| {
        let text = TextOptions {
            null: options.null.first().cloned().unwrap_or_default(),
            is_seen: sink == Sink::Stdout && bson::is_seen(),
        };
        let kind = match to {
            To::Parquet => Kind::Parquet,
            To::Arrow => Kind::Arrow,
            To::ArrowStream => Kind::ArrowStream,
            To::Csv => Kind::Csv,
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
        Some(schema) => schema.clone(),
        None => millstream_columns::Schema::new(input.schema()).map_err(|error| error.with_name(name))?,
    };
    // The rest of the source is not needed, so it does not matter how it ends.
    let _ = input.close();
    Ok(message::print(format!("{}\n", schema.to_json()).as_bytes()))
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
        let columns = input.columns().cloned();
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
        self.check_rejects(true)?;
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
            for columns in input.take_rejects() {
                self.rejects.add(Reject::new(columns.error, &columns.raw))?;
            }
            self.check_rejects(false)?;
            let position = input.position();
            if let Some(progress) = &self.progress {
                progress.update(
                    self.bytes + position.bytes,
                    self.rows + self.rejects.count(),
                    self.source_bytes + position.source_bytes,
                );
            }
            match batch {
                Ok(Some(batch)) => {
                    self.rows += batch.num_rows() as u64;
                    output.write(&batch, self.rejects.count())?;
                }
                Ok(None) => break Ok(position),
                Err(error) => break Err(error),
            }
            self.signals.check()?;
        };
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

    /// Fails if there are more bad records than permitted. A share is known only at the end.
    fn check_rejects(&self, is_end: bool) -> Result<()> {
        let count = self.rejects.count();
        let expected = match self.options.max_rejects {
            Some(MaxRejects::Count(most)) if count > most => format!("at most {most}, because of --max-rejects"),
            Some(MaxRejects::Percent(most)) if is_end => {
                let records = count + self.rows;
                if count as f64 * 100.0 <= most * records as f64 {
                    return Ok(());
                }
                format!("at most {most}% of {}, because of --max-rejects", count_text(records, "record"))
            }
            _ => return Ok(()),
        };
        let kind = self.rejects.first().unwrap_or(ErrorKind::ShapeMismatch);
        Err(Error::new(kind).with_found(count_text(count, "bad record")).with_expected(expected))
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
        let is_permitted = self.options.max_rejects.is_some();
        if let Some(report) = stats {
            let error = closed.as_ref().err().or(left_out.filter(|_| !is_permitted));
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
        match left_out {
            Err(error) if !is_permitted => Err(error),
            _ => Ok(Ending::COMPLETE),
        }
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
    let is_of_value = error.path().is_some() && (error.record().is_some() || error.line().is_some());
    match error.kind() {
        ErrorKind::InvalidOption | ErrorKind::ShapeMismatch if !is_of_value => Advice::None,
        // It is about the number of such records.
        _ if error.name().is_none() => Advice::None,
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
