//! A line chart of the time by a swept parameter: a line for each runner, with error bars from the fastest to the
//! slowest run.
//!
//! The chart is drawn by plotters as SVG, with classes in place of colours, so that it works in both themes. Labels at
//! the ends of the lines name the runners; on narrow screens they are numbers that refer to the list below the chart.

use std::ops::Range;

use anyhow::{Result, anyhow};
use askama::Template;
use plotters::coord::Shift;
use plotters::element::ErrorBar;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::conclusion::{is_floor, runs, walls};
use super::quantity;
use super::side;
use crate::parameter::Sweep;
use crate::results::Question;
use crate::statistics::median;
use crate::statistics::range;

/// A chart, drawn at two widths.
#[derive(Debug, Template)]
#[template(path = "lines.html")]
pub struct Lines {
    /// The text alternative, for screen readers.
    pub alternative: String,
    /// The quantity on the vertical axis.
    pub quantity: String,
    /// The content of an SVG of size [`Size::WIDE`].
    pub wide: String,
    /// The content of the SVG for narrow screens.
    pub narrow: String,
    /// The names that the numbers in `narrow` refer to, with their classes.
    pub names: Vec<(String, &'static str)>,
    /// Whether one of the lines is the physical limit.
    pub has_floor: bool,
}

/// The size of a drawing in pixels.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Its width.
    pub width: u32,
    /// Its height.
    pub height: u32,
    labels: u32,
}

impl Size {
    /// The lines are labelled with names.
    pub const WIDE: Size = Size { width: 860, height: 440, labels: 230 };
    /// The lines are labelled with numbers.
    pub const NARROW: Size = Size { width: 340, height: 330, labels: 26 };
}

/// One line.
struct Series {
    name: String,
    class: &'static str,
    points: Vec<Point>,
}

struct Point {
    at: f64,
    median: f64,
    low: f64,
    high: f64,
}

/// Draws the chart of a question with a sweep.
///
/// # Errors
/// Returns the errors of the drawing library.
pub fn lines(question: &Question) -> Result<Option<Lines>> {
    let Some(sweep) = &question.sweep else { return Ok(None) };
    let per_record = question.count.map_or(1.0, |count| count as f64);
    let mut series: Vec<Series> = Vec::new();
    for runner in question.runners.iter().filter(|runner| !runs(runner).is_empty()) {
        let values: Vec<f64> = walls(runner).into_iter().map(|wall| wall / per_record).collect();
        let (low, high) = range(&values);
        let median = median(&values);
        let point = |&at: &u64| Point { at: at as f64, median, low, high };
        // A runner that does not depend on the parameter has the same time at every value.
        let points = runner.at.as_ref().map_or(sweep.values.as_slice(), std::slice::from_ref).iter().map(point);
        match series.iter_mut().find(|one| one.name == runner.base) {
            Some(one) => one.points.extend(points),
            None => series.push(Series {
                name: runner.base.clone(),
                class: side(runner.millstream, is_floor(question, runner)),
                points: points.collect(),
            }),
        }
    }
    if series.is_empty() {
        return Ok(None);
    }
    // Labels are sorted by the height of the line's end. Millstream's lines are drawn last, on top of the others.
    series.iter_mut().for_each(|one| one.points.sort_by(|a, b| a.at.total_cmp(&b.at)));
    series.sort_by(|a, b| b.last().total_cmp(&a.last()));
    let unit = match (question.count, &question.per) {
        (Some(_), Some(per)) => format!("median time for each of the {per}"),
        _ => "median time".to_owned(),
    };
    Ok(Some(Lines {
        alternative: alternative(&series, &sweep.parameter),
        quantity: unit,
        wide: draw(&series, sweep, Size::WIDE)?,
        narrow: draw(&series, sweep, Size::NARROW)?,
        has_floor: series.iter().any(|one| one.class == "floor"),
        names: series.iter().map(|one| (one.name.clone(), one.class)).collect(),
    }))
}

impl Series {
    fn last(&self) -> f64 {
        self.points.last().map_or(0.0, |point| point.median)
    }
}

fn alternative(series: &[Series], parameter: &str) -> String {
    let one = |one: &Series| {
        let (Some(first), Some(last)) = (one.points.first(), one.points.last()) else { return String::new() };
        let (from, to) = (quantity::time(first.median), quantity::time(last.median));
        format!("{} goes from {from} with {} to {to} with {}", one.name, first.at, last.at)
    };
    let all: Vec<_> = series.iter().rev().map(one).collect();
    format!("By {parameter}, the lowest line first: {}.", all.join("; "))
}

/// Placeholder colours, which are replaced with classes.
const CLASSES: [(&str, RGBColor); 5] = [
    ("millstream", RGBColor(1, 0, 0)),
    ("competitor", RGBColor(2, 0, 0)),
    ("floor", RGBColor(3, 0, 0)),
    ("axis", RGBColor(4, 0, 0)),
    ("grid", RGBColor(5, 0, 0)),
];

fn colour(class: &str) -> RGBColor {
    CLASSES.iter().find(|(name, _)| *name == class).map_or(BLACK, |(_, colour)| *colour)
}

/// Returns the drawing without the enclosing element.
fn draw(series: &[Series], sweep: &Sweep, size: Size) -> Result<String> {
    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, (size.width, size.height)).into_drawing_area();
    plot(&root, series, sweep, size).map_err(|error| anyhow!("a chart cannot be drawn: {error}"))?;
    drop(root);
    let inside = svg.split_once('>').map_or("", |(_, inside)| inside);
    let mut inside = inside.trim_end().trim_end_matches("</svg>").to_owned();
    for (class, RGBColor(red, ..)) in CLASSES {
        let colour = format!("#{red:02X}0000");
        inside = inside.replace(&format!("stroke=\"{colour}\""), &format!("class=\"{class} line\""));
        inside = inside.replace(&format!("fill=\"{colour}\""), &format!("class=\"{class} mark\""));
    }
    Ok(inside)
}

type Failure = DrawingAreaErrorKind<std::io::Error>;

fn plot(
    root: &DrawingArea<SVGBackend, Shift>,
    series: &[Series],
    Sweep { parameter, values }: &Sweep,
    size: Size,
) -> Result<(), Failure> {
    let is_wide = size.width > 500;
    let font = |class| ("sans-serif", if is_wide { 13 } else { 12 }).into_font().color(&colour(class));
    let (across, up) = (horizontal(values), vertical(series));
    let marks: Vec<f64> = values.iter().map(|&value| value as f64).collect();
    let decades = decades(&up);
    let mut chart = ChartBuilder::on(root)
        .margin_top(12)
        .margin_right(size.labels)
        .x_label_area_size(48)
        .y_label_area_size(if is_wide { 64 } else { 52 })
        .build_cartesian_2d(
            across.range.log_scale().zero_point(across.zero).with_key_points(marks),
            up.log_scale().with_key_points(decades),
        )?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(colour("grid"))
        .light_line_style(TRANSPARENT)
        .axis_style(colour("axis"))
        .x_label_style(font("axis").pos(Pos::new(HPos::Center, VPos::Top)))
        .y_label_style(font("axis").pos(Pos::new(HPos::Right, VPos::Center)))
        .x_desc(parameter)
        .axis_desc_style(font("axis"))
        .x_label_formatter(&|value| short(*value))
        .y_label_formatter(&|value| axis_time(*value))
        .draw()?;

    let mut ends = Vec::new();
    let ordered = || series.iter().enumerate().filter(|(_, one)| one.class != "millstream");
    for (number, one) in ordered().chain(series.iter().enumerate().filter(|(_, one)| one.class == "millstream")) {
        let colour = colour(one.class);
        let path = one.points.iter().map(|point| (point.at, point.median));
        chart.draw_series(LineSeries::new(path, colour.stroke_width(2)))?;
        for &Point { at, median, low, high } in &one.points {
            if high > low {
                chart.draw_series([ErrorBar::new_vertical(at, low, median, high, colour.stroke_width(1), 6)])?;
            }
            chart.draw_series([Circle::new((at, median), 3, colour.filled())])?;
        }
        if let Some(last) = one.points.last() {
            let (x, y) = chart.backend_coord(&(last.at, last.median));
            ends.push(End { number, x, y, at: y });
        }
    }
    spread(&mut ends, 15, size.height as i32 - 54);
    for End { number, x, y, at } in ends {
        let Series { name, class, .. } = &series[number];
        let edge = (size.width - size.labels) as i32;
        let text = if is_wide { name.clone() } else { (number + 1).to_string() };
        let leader = [(x + 5, y), (edge + 2, at), (edge + 6, at)];
        root.draw(&PathElement::new(leader, colour("grid").stroke_width(1)))?;
        let style = font(class).pos(Pos::new(HPos::Left, VPos::Center));
        root.draw(&Text::new(text, (edge + 9, at), style))?;
    }
    root.present()
}

/// The end of a line and the position of its label.
struct End {
    number: usize,
    x: i32,
    y: i32,
    at: i32,
}

/// Moves labels apart, so that each has a height of `least` pixels. Overlapping labels are spread around the middle of
/// their original positions. No label is below `bottom`.
fn spread(ends: &mut [End], least: i32, bottom: i32) {
    ends.sort_by_key(|end| end.y);
    // Groups of neighbouring labels, each with the position of its first label.
    let mut groups: Vec<(i32, Range<usize>)> = Vec::new();
    for at in 0..ends.len() {
        let mut group = (ends[at].y, at..at + 1);
        while let Some((first, before)) =
            groups.pop_if(|(first, before)| *first + least * before.len() as i32 > group.0)
        {
            let all = before.start..group.1.end;
            let wish =
                all.clone().zip(0..).map(|(end, place)| ends[end].y - least * place).sum::<i32>() / all.len() as i32;
            group = (wish.max(first.min(least)), all);
        }
        groups.push(group);
    }
    let mut free = bottom;
    for (first, group) in groups.into_iter().rev() {
        let first = first.min(free - least * (group.len() as i32 - 1));
        free = first - least;
        for (place, end) in (0..).zip(group) {
            ends[end].at = first + least * place;
        }
    }
}

/// A logarithmic axis that also has a position for 0, one step before the first value.
struct Across {
    range: Range<f64>,
    zero: f64,
}

fn horizontal(values: &[u64]) -> Across {
    let first = values.iter().copied().min().unwrap_or(0) as f64;
    let last = values.iter().copied().max().unwrap_or(1) as f64;
    let zero = if first == 0.0 { -1.0 } else { 0.0 };
    Across { range: first..last.max(first + 1.0), zero }
}

/// The range of the vertical axis, which is a little larger than that of the values.
fn vertical(series: &[Series]) -> Range<f64> {
    let points = || series.iter().flat_map(|one| &one.points);
    let low = points().map(|point| point.low).fold(f64::INFINITY, f64::min).max(1e-12);
    let high = points().map(|point| point.high).fold(0.0, f64::max).max(low * 1.01);
    low * 0.8..high * 1.25
}

/// The marks of the vertical axis: each power of ten, and if there are few, also 2 and 5 times each.
fn decades(range: &Range<f64>) -> Vec<f64> {
    let (first, last) = (range.start.log10().floor() as i32, range.end.log10().ceil() as i32);
    let steps: &[f64] = if last - first > 3 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let all = (first..=last).flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
    all.filter(|value| range.contains(value)).collect()
}

/// Formats a value such as `64 Ki` or `300`.
fn short(value: f64) -> String {
    let value = value.round() as u64;
    match value {
        v if v >= 1 << 20 && v % (1 << 20) == 0 => format!("{} Mi", v >> 20),
        v if v >= 1 << 10 && v % (1 << 10) == 0 => format!("{} Ki", v >> 10),
        v => v.to_string(),
    }
}

/// Formats a time such as `20 ns`, without insignificant digits.
fn axis_time(seconds: f64) -> String {
    let (sign, scale) = [("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)]
        .into_iter()
        .find(|&(_, scale)| seconds >= scale * 0.999)
        .unwrap_or(("ns", 1e-9));
    format!("{} {sign}", (seconds / scale * 1000.0).round() / 1000.0)
}
