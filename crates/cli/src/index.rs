//! `millstream index`: writes seek points of a gzip file.

use std::fs;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueHint};
use millstream::{Error, ErrorKind, GzipIndex, Result, Writer};

use crate::run::{Network, Progress, Show, Sink, count_text};
use crate::signals::Signals;
use crate::{Ending, message, size};

/// Write an index of a gzip file, with which decoding can start at many places of it
///
/// The whole file is decoded and its checksums are verified. With the index, 'millstream split' divides the file, and
/// 'millstream run -j' decodes it on several threads. It has the format of indexed_gzip, which rapidgzip reads too, and
/// contains 32 KiB and checksums for each point.
#[derive(Args)]
pub(crate) struct Options {
    /// The gzip file, with any number of members
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,

    /// The index, which appears when it is complete [default: FILE.gzidx]
    #[arg(short, long, value_name = "OUTPUT", value_hint = ValueHint::FilePath)]
    #[arg(value_parser = OsStringValueParser::new().try_map(Sink::parse))]
    output: Option<Sink>,

    /// The distance between points, in decoded bytes [default: 4M, more for files above 4G]
    #[arg(long, value_name = "SIZE", value_parser = spacing)]
    spacing: Option<u32>,

    #[command(flatten)]
    network: Network,
}

/// Parses a distance, whose range is the library's.
fn spacing(text: &str) -> std::result::Result<u32, String> {
    let bytes = size::parse(text, GzipIndex::MIN_SPACING.into()..=u32::MAX.into())?;
    Ok(u32::try_from(bytes).expect("the range ends there"))
}

/// Writes the index.
pub(crate) fn run(options: &Options) -> Ending {
    let mut signals = match Signals::new() {
        Ok(signals) => signals,
        Err(error) => return message::fail(&error),
    };
    let done = write(options, &mut signals);
    let ending = done.unwrap_or_else(|error| match signals.caught() {
        Some(signal) => message::ended_by(signal),
        None => message::fail(&error),
    });
    signals.or(ending)
}

fn write(options: &Options, signals: &mut Signals) -> Result<Ending> {
    let path = &options.file;
    let named = |error: Error| error.with_name(path.display().to_string());
    let open_failed = |error| named(Error::new(ErrorKind::OpenFailed).with_io(error));
    let stat = fs::metadata(path).map_err(open_failed)?;
    if !stat.is_file() {
        let error = Error::new(ErrorKind::OpenFailed)
            .with_found("no regular file")
            .with_expected("a file that can be read from any place");
        return Err(named(error));
    }
    let sink = options.output.clone().unwrap_or_else(|| Sink::File(GzipIndex::usual_path(path)));
    signals.watch().map_err(Error::from_io)?;
    let mut out: Writer = sink.open(Writer::builder().cancel(signals.token()), &options.network)?;
    let progress = Show::Auto.is_wanted(sink == Sink::Stdout).then(|| Progress::start(Some(stat.len())));
    let spacing = options.spacing.unwrap_or_else(|| GzipIndex::usual_spacing(stat.len()));
    let built = GzipIndex::build(path, spacing, |compressed, decoded| {
        if let Some(progress) = &progress {
            progress.update(decoded, 0, compressed);
        }
        signals.check()
    });
    if let Some(progress) = progress {
        progress.finish();
    }
    let index = built?;
    index.write(&mut out).map_err(Error::from_io)?;
    out.close()?;
    let line = format!(
        "{}, {} decoded",
        count_text(index.offsets().len() as u64, "point"),
        count_text(index.decoded_len(), "byte")
    );
    if Show::Auto.is_wanted(sink == Sink::Stdout) {
        message::note(line.as_bytes())?;
    }
    Ok(Ending::COMPLETE)
}
