//! A bar for each runner: from nothing to its median, and a whisker from its fastest to its slowest run.
//!
//! Positions are per cent of the width, so that the page can be of any width. Where the slowest takes more than
//! `WIDE` times as long as the fastest, bars would show nothing of the fast ones: there the scale is logarithmic, and
//! the medians are dots, because a bar's length would mean nothing.

use askama::Template;

use super::quantity::{self, Unit};
use super::side;
use super::verdict::{Measured, is_floor, walls};
use crate::results::Question;
use crate::statistics::range;

/// From this ratio on the scale is logarithmic.
const WIDE: f64 = 25.0;

/// A chart of bars or dots.
#[derive(Debug, Template)]
#[template(path = "bars.html")]
pub struct Bars {
    /// The text alternative, for screen readers.
    pub alternative: String,
    /// The unit of all values.
    pub unit: &'static str,
    /// Whether the scale is logarithmic, and each value a dot.
    pub is_logarithmic: bool,
    /// Where the floor is, in per cent.
    pub floor: Option<f64>,
    /// The bars, the shortest first.
    pub bars: Vec<Bar>,
}

/// One runner.
#[derive(Debug)]
pub struct Bar {
    /// Its name.
    pub name: String,
    /// For style sheets: `ours`, `rival` or `floor`.
    pub class: &'static str,
    /// The median in seconds.
    pub value: f64,
    /// The same in words.
    pub text: String,
    /// Where the median is, in per cent.
    pub median: f64,
    /// Where the fastest run is.
    pub low: f64,
    /// Where the slowest run is.
    pub high: f64,
}

/// The chart of these runners, which are ranked.
pub fn bars(question: &Question, ranked: &[Measured]) -> Option<Bars> {
    let shortest = ranked.first()?.median;
    let ranges: Vec<_> = ranked.iter().map(|one| range(&walls(one.runner))).collect();
    let (least, _) = ranges.iter().copied().reduce(|a, b| (a.0.min(b.0), 0.0))?;
    let most = ranges.iter().map(|range| range.1).fold(0.0, f64::max);
    let is_logarithmic = most / shortest > WIDE;
    let place = |value: f64| match is_logarithmic {
        true => 2.0 + 96.0 * (value / least).ln() / (most / least).ln(),
        false => 100.0 * value / most,
    };
    let unit = Unit::time(shortest);
    let bars: Vec<Bar> = ranked
        .iter()
        .zip(ranges)
        .map(|(one, (low, high))| Bar {
            name: one.runner.name.clone(),
            class: side(one.runner.ours, is_floor(question, one.runner)),
            value: one.median,
            text: unit.show(one.median),
            median: place(one.median),
            low: place(low),
            high: place(high),
        })
        .collect();
    Some(Bars {
        alternative: alternative(ranked),
        unit: unit.sign,
        is_logarithmic,
        floor: bars.iter().find(|bar| bar.class == "floor").map(|bar| bar.median),
        bars,
    })
}

/// The first few in words; all are in the table.
fn alternative(ranked: &[Measured]) -> String {
    const SAID: usize = 5;
    let said: Vec<_> =
        ranked.iter().take(SAID).map(|one| format!("{} {}", one.runner.name, quantity::time(one.median))).collect();
    let rest = ranked.len().saturating_sub(SAID);
    let rest = if rest > 0 { format!(", and {rest} slower ones, which the table names") } else { String::new() };
    format!("Median times, the fastest first: {}{rest}.", said.join(", "))
}
