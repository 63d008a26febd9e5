//! A bar chart of the runners: each bar is as long as the median, and a whisker spans the fastest to the slowest run.
//!
//! Positions are percentages of the width, so that the page can have any width. If the slowest runner takes more than
//! `WIDE` times as long as the fastest, the bars of the fast runners would be too short to see. The scale is then
//! logarithmic and the medians are dots, because the length of a bar has no meaning on such a scale.

use askama::Template;

use super::conclusion::{Measured, is_floor, walls};
use super::quantity::{self, Unit};
use super::side;
use crate::results::Question;
use crate::statistics::range;

/// The ratio from which the scale is logarithmic.
const WIDE: f64 = 25.0;

/// A chart of bars or dots.
#[derive(Debug, Template)]
#[template(path = "bars.html")]
pub struct Bars {
    /// The text alternative, for screen readers.
    pub alternative: String,
    /// The unit of all values.
    pub unit: &'static str,
    /// Whether the scale is logarithmic and each value is a dot.
    pub is_logarithmic: bool,
    /// The position of the physical limit, as a percentage.
    pub floor: Option<f64>,
    /// The bars, the shortest first.
    pub bars: Vec<Bar>,
}

/// One runner.
#[derive(Debug)]
pub struct Bar {
    /// Its name.
    pub name: String,
    /// The class name for style sheets: `millstream`, `competitor` or `floor`.
    pub class: &'static str,
    /// The median in seconds.
    pub value: f64,
    /// The median as text.
    pub text: String,
    /// The position of the median, as a percentage.
    pub median: f64,
    /// The position of the fastest run.
    pub low: f64,
    /// The position of the slowest run.
    pub high: f64,
}

/// Draws the chart of these runners, which must be ranked.
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
            class: side(one.runner.millstream, is_floor(question, one.runner)),
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

/// Describes the first few runners; the table has all of them.
fn alternative(ranked: &[Measured]) -> String {
    const SAID: usize = 5;
    let said: Vec<_> =
        ranked.iter().take(SAID).map(|one| format!("{} {}", one.runner.name, quantity::time(one.median))).collect();
    let rest = ranked.len().saturating_sub(SAID);
    let rest = if rest > 0 { format!(", and {rest} slower ones, which the table names") } else { String::new() };
    format!("Median times, the fastest first: {}{rest}.", said.join(", "))
}
