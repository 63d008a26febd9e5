//! The chart of README.md, generated from the record. Each row shows the time of Millstream as a fraction of a competitor's.
//!
//! It is a single SVG without fonts or scripts, and follows the reader's colour theme.

use std::fmt::Write;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::record::Record;

/// The rows of the chart, as listed in `benchmarks/chart.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Chart {
    row: Vec<Asked>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    work: String,
    question: String,
    millstream: String,
    competitor: String,
    name: String,
}

/// One comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The work that is measured.
    pub work: String,
    /// The name of the competitor.
    pub competitor: String,
    /// The median of the competitor's times, in seconds.
    pub competitor_seconds: f64,
    /// The median of Millstream's times, in seconds.
    pub millstream_seconds: f64,
}

/// Returns the rows that the text lists, with the times of the record.
///
/// # Errors
/// Fails if the text does not have the right format, lists more than six rows, or names a runner that has no time in
/// the record.
pub fn rows(text: &str, record: &Record) -> Result<Vec<Row>> {
    let chart: Chart = toml::from_str(text)?;
    ensure!(chart.row.len() <= 6, "the chart has more than six rows: remove some, or it becomes unreadable");
    let row = |Asked { work, question, millstream, competitor, name }: Asked| {
        let entry = record.get(&question).with_context(|| format!("{question} is not in the record"))?;
        let seconds = |runner: &str| {
            let time = entry.get(runner).and_then(|reached| reached.seconds());
            time.with_context(|| format!("{question}: {runner} has no time in the record"))
        };
        Ok(Row {
            work,
            competitor: name,
            competitor_seconds: seconds(&competitor)?,
            millstream_seconds: seconds(&millstream)?,
        })
    };
    chart.row.into_iter().map(row).collect()
}

/// The left end of the bars. The next constant is the length of a competitor's bar.
const LEFT: f64 = 212.0;
const LENGTH: f64 = 360.0;
const ROW: usize = 52;

/// Draws the chart as SVG.
///
/// ```
/// use millstream_bench::chart::{Row, draw};
/// let svg = draw(&[Row { work: "a < b".into(), competitor: "c".into(), competitor_seconds: 3.0, millstream_seconds: 1.0 }]);
/// assert!(svg.contains("a &lt; b") && svg.contains("3.0 times faster"));
/// ```
pub fn draw(rows: &[Row]) -> String {
    let height = 40 + rows.len() * ROW;
    let said: Vec<_> = rows.iter().map(|row| format!("{}: {}", row.work, faster(row))).collect();
    let mut svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {height}" role="img" font-family="system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif" font-size="13">
<title>Time of Millstream and of a competitor for the same work</title>
<desc>{}</desc>
<style>
text {{ fill: #1f2328 }} .soft {{ fill: #59636e }} .competitor {{ fill: #afb8c1 }} .millstream, tspan {{ fill: #0969da }}
@media (prefers-color-scheme: dark) {{
text {{ fill: #f0f6fc }} .soft {{ fill: #9198a1 }} .competitor {{ fill: #545d68 }} .millstream, tspan {{ fill: #4493f8 }}
}}
</style>
<text x="{LEFT}" y="16" class="soft">time: <tspan font-weight="600">Millstream</tspan> and what it is compared with; shorter is better</text>
"##,
        escaped(&said.join("; "))
    );
    for (at, row) in rows.iter().enumerate() {
        let (top, millstream) = (32 + at * ROW, LENGTH * row.millstream_seconds / row.competitor_seconds);
        let [first, second] = [top + 13, top + 32];
        let (work, competitor, faster) = (escaped(&row.work), escaped(&row.competitor), faster(row));
        writeln!(
            svg,
            r##"<text x="{0}" y="{1}" text-anchor="end">{work}</text>
<rect x="{LEFT}" y="{2}" width="{millstream:.1}" height="16" rx="2" class="millstream"/>
<text x="{3:.1}" y="{first}" font-weight="600">{faster}</text>
<rect x="{LEFT}" y="{4}" width="{LENGTH}" height="16" rx="2" class="competitor"/>
<text x="{5}" y="{second}" class="soft">{competitor}</text>"##,
            LEFT - 12.0,
            top + 23,
            top,
            LEFT + millstream + 8.0,
            top + 19,
            LEFT + LENGTH + 8.0,
        )
        .expect("writing to a string cannot fail");
    }
    svg + "</svg>\n"
}

fn faster(row: &Row) -> String {
    format!("{:.1} times faster", row.competitor_seconds / row.millstream_seconds)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
