//! The report of artificial results parses, is self-contained, contains the numbers of the results, and works in a
//! browser.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use millstream_bench::definition::Definition;
use millstream_bench::flame::profile::Profile;
use millstream_bench::results::{Outcome, Question, Results, Runner, Seen, SystemCalls};
use millstream_bench::statistics::median;
use millstream_bench::{flame, html};
use millstream_runners::times::{PipeTimes, StageTimes};
use scraper::{ElementRef, Html, Selector};

/// A runner name that would execute as HTML if it were not escaped.
const HOSTILE: &str = r#"<script>alert("1")</script> & 'x'"#;

fn results() -> Results {
    let mut results: Results = serde_json::from_str(include_str!("report/results.json")).unwrap();
    let stages = results.definitions.iter_mut().find(|question| question.name == "stages").unwrap();
    let stage =
        StageTimes { stage: format!("SHA-256 {HOSTILE}"), records: 50_000, seconds: 0.004, waited_seconds: 0.001 };
    let pipe = PipeTimes {
        seconds: 0.0105,
        waited_on_source_seconds: 0.002,
        waited_on_sink_seconds: 0.0005,
        stages: vec![stage],
    };
    let system_calls =
        vec![SystemCalls { name: "read".to_owned(), calls: 1230 }, SystemCalls { name: "mmap".to_owned(), calls: 4 }];
    stages.runners[0].seen = Some(Seen { system_calls: Some(system_calls), pipe: Some(pipe) });
    results
}

fn page() -> String {
    html::page(&results(), &[profile()]).unwrap()
}

fn profile() -> (Profile, String) {
    let system_calls = vec![SystemCalls { name: "write".to_owned(), calls: 4321 }];
    let profile = Profile {
        question: "stages".to_owned(),
        runner: format!("core Transform {HOSTILE} n=10"),
        plain: 0.125,
        profiled: 0.25,
        sampler: "node --cpu-prof".to_owned(),
        system_calls,
    };
    let folded = format!("main;read {HOSTILE} 30\nmain;write 10\n");
    (profile, flame::svg(&folded, HOSTILE, "samples").unwrap())
}

fn all<'a>(html: &'a Html, selector: &str) -> Vec<ElementRef<'a>> {
    html.select(&Selector::parse(selector).unwrap()).collect()
}

fn text(element: &ElementRef) -> String {
    element.text().collect()
}

fn value(element: &ElementRef, name: &str) -> Option<f64> {
    element.attr(name).map(|value| value.parse().unwrap())
}

/// Returns the wall times of a runner, if it was measured.
fn walls(runner: &Runner) -> Option<Vec<f64>> {
    match &runner.outcome {
        Outcome::Measured { runs, .. } => Some(runs.iter().map(|run| run.wall).collect()),
        _ => None,
    }
}

fn measured(question: &Question) -> Vec<(&Runner, f64)> {
    question.runners.iter().filter_map(|runner| Some((runner, median(&walls(runner)?)))).collect()
}

#[test]
fn it_parses_and_refers_to_no_other_file() {
    let page = page();
    let html = Html::parse_document(&page);
    assert_eq!(html.errors, [""; 0]);
    for attribute in ["src", "href", "srcset", "data", "action", "poster", "xlink:href"] {
        for element in all(&html, &format!("[{}]", attribute.replace(':', "\\:"))) {
            let to = element.attr(attribute).unwrap();
            assert!(to.starts_with('#') || to == "data:,", "{attribute}={to}");
        }
    }
    let style: String = all(&html, "style").iter().map(text).collect();
    assert!(!style.contains("url(") && !style.contains("@import"));
    for link in all(&html, "a[href]") {
        let id = &link.attr("href").unwrap()[1..];
        assert_eq!(all(&html, &format!("[id='{id}']")).len(), 1, "{id}");
    }
}

#[test]
fn names_are_escaped() {
    let page = page();
    let html = Html::parse_document(&page);
    // The only script is the page's.
    assert_eq!(all(&html, "script").len(), 1);
    assert!(!text(&all(&html, "script")[0]).contains("alert"));
    for place in
        ["h2", ".explanation", ".bar .name", "tbody th", "tbody td", ".notes", ".warning", "dd", "dt", "svg text"]
    {
        assert!(all(&html, place).iter().any(|element| text(element).contains(HOSTILE)), "{place}");
    }
    assert!(all(&html, "[role=img]").iter().any(|chart| chart.attr("aria-label").unwrap().contains(HOSTILE)));
}

#[test]
fn the_numbers_equal_the_results() {
    let page = page();
    let html = Html::parse_document(&page);
    let mut compared = 0;
    for question in &results().definitions {
        let rows = |caption: &str| {
            let of = |table: &ElementRef| text(&table.select(&Selector::parse("caption").unwrap()).next().unwrap());
            let tables = all(&html, &format!("section[id='{}'] table", question.name));
            let table = tables.into_iter().find(|table| of(table).starts_with(caption));
            table.map_or(Vec::new(), |table| {
                let (rows, cells) = (Selector::parse("tr").unwrap(), Selector::parse("th, td").unwrap());
                table.select(&rows).map(|row| row.select(&cells).collect::<Vec<_>>()).collect::<Vec<_>>()
            })
        };
        let mut ranked = measured(question);
        ranked.sort_by(|a, b| a.1.total_cmp(&b.1));

        let ranking = rows("Every runner");
        assert_eq!(ranking.len().saturating_sub(1), ranked.len());
        for (row, (runner, median)) in ranking.iter().skip(1).zip(&ranked) {
            let cell = |title: &str| {
                let column = ranking[0].iter().position(|head| text(head).starts_with(title));
                column.map(|column| value(&row[column], "data-value").unwrap_or(f64::NAN))
            };
            assert_eq!(text(&row[0]), runner.name);
            assert_eq!(cell("median"), Some(*median));
            assert_eq!(cell("first is"), Some(median / ranked[0].1));
            let Outcome::Measured { runs, .. } = &runner.outcome else { unreachable!() };
            assert_eq!(cell("runs"), Some(runs.len() as f64));
            assert_eq!(cell("peak"), Some(runs[0].peak as f64));
            assert_eq!(cell("for each"), question.count.map(|count| median / count as f64));
            assert_eq!(cell("bytes/s"), question.bytes.map(|bytes| bytes as f64 / median));
            assert_eq!(cell("allocations"), runs[0].allocations.map(|count| count as f64));
            // The shown text equals the value, except for rounding.
            let shown: f64 = text(&row[1]).replace(',', "").parse().unwrap();
            let unit =
                [("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)].iter().find(|(sign, _)| text(&ranking[0][1]).ends_with(sign));
            assert!((shown * unit.unwrap().1 / median - 1.0).abs() < 1e-3, "{shown} {median}");
            compared += 1;
        }

        let bars = all(&html, &format!("section[id='{}'] .bar", question.name));
        if question.sweep.is_none() {
            let bars: Vec<f64> = bars.iter().map(|bar| value(bar, "data-median").unwrap()).collect();
            assert_eq!(bars, ranked.iter().map(|(_, median)| *median).collect::<Vec<_>>());
        }

        let by_value = rows("By the");
        for (row, (runner, median)) in
            by_value.iter().skip(1).zip(measured(question).iter().filter(|one| one.0.at.is_some()))
        {
            let cell = |title: &str| {
                let column = by_value[0].iter().position(|head| text(head).starts_with(title)).unwrap();
                value(&row[column], "data-value")
            };
            assert_eq!(text(&row[0]), runner.base);
            assert_eq!(cell("dt"), Some(*median));
            assert_eq!(cell("ips"), question.count.map(|count| count as f64 / median));
            compared += 1;
        }
        for target in &question.targets {
            assert!(all(&html, "#targets tbody tr").iter().any(|row| {
                let text = text(row);
                [&target.work, &target.row.ratio, &target.row.millstream, &target.row.target]
                    .iter()
                    .all(|part| text.contains(*part))
            }));
        }
    }
    assert!(compared > 50, "{compared}");
}

#[test]
fn a_flame_graph_is_in_a_frame_next_to_both_times() {
    let page = page();
    let html = Html::parse_document(&page);
    let frames = all(&html, "section[id='stages'] iframe");
    assert_eq!(frames.len(), 1);
    // Its scripts run but cannot access the page.
    assert_eq!(frames[0].attr("sandbox"), Some("allow-scripts"));
    let inside = Html::parse_document(frames[0].attr("srcdoc").unwrap());
    assert_eq!(inside.errors, [""; 0]);
    assert!(all(&inside, "title").iter().any(|title| text(title).contains(HOSTILE)));
    assert_eq!(all(&inside, "script").len(), 2);
    let cells: Vec<String> = all(&html, "section[id='stages'] table")
        .iter()
        .flat_map(|table| {
            let cells = table.select(&Selector::parse("td").unwrap()).map(|cell| text(&cell)).collect::<Vec<_>>();
            if text(table).trim_start().starts_with("Times of one run") { cells } else { Vec::new() }
        })
        .collect();
    assert_eq!(cells, ["125.0", "250.0", "node --cpu-prof", "4,321", "write 4,321"]);
}

#[test]
fn observations_of_other_runs_are_shown() {
    let page = page();
    let html = Html::parse_document(&page);
    let row = |caption: &str| {
        let tables = all(&html, "section[id='stages'] table");
        let table = tables.iter().find(|table| text(table).trim_start().starts_with(caption)).unwrap();
        table.select(&Selector::parse("tbody th, tbody td").unwrap()).map(|cell| text(&cell)).collect::<Vec<_>>()
    };
    let pipe = row("Where the time of one pass");
    // Total, waiting for the source, for the sink, for stages, inside stages, remainder.
    assert_eq!(pipe[..7], ["fused n=0", "10.50", "2.00", "0.50", "1.00", "4.00", "3.00"]);
    assert_eq!(pipe[7], format!("SHA-256 {HOSTILE} 4.00 ms"));
    assert_eq!(row("System calls of one run"), ["fused n=0", "1,234", "read 1,230, mmap 4"]);
}

#[test]
fn the_overview_shows_the_winners() {
    let page = page();
    let html = Html::parse_document(&page);
    let sentences: Vec<String> =
        all(&html, ".conclusions li > p").iter().map(|one| text(one).trim().to_owned()).collect();
    let begin = [
        &format!("put is 2.30 times faster than competitor {HOSTILE}, the fastest competitor (2.2"),
        "sh is 3.73 times faster than millstream, the fastest Millstream runner (",
        "With stages = 100: boxed is 245 times faster than core Transform, the fastest competitor (",
        "other and millstream do not differ significantly: 1.02 (",
        "With buffer = 65,536: millstream takes 10.50\u{a0}ms; no competitor was measured.",
        "No runner was measured.",
    ];
    for (sentence, begin) in sentences.iter().zip(begin) {
        assert!(sentence.starts_with(begin), "{sentence}\n{begin}");
    }
    assert_eq!(sentences.len(), begin.len());
    assert!(sentences[0].contains("). Millstream takes 1.99 times as long as the floor."), "{}", sentences[0]);
    // Missed targets are shown.
    assert!(sentences[1].contains("Missed: starts: 3.73 (3.33–4.20) instead of ≤ 1.00."), "{}", sentences[1]);
    // So is the known limit.
    let obstacle = format!("The copy of write {HOSTILE}");
    assert!(sentences[0].contains(&format!("instead of ≤ 1.20. {obstacle}")), "{}", sentences[0]);
    let obstacles: Vec<String> = all(&html, "#millstream-wins .obstacles > *").iter().map(text).collect();
    assert_eq!(obstacles, ["prints as the drain", &obstacle]);
    assert!(text(&all(&html, ".lead")[0]).contains("Of 4 targets, 2 are met and 2 missed; 1 could not be evaluated."));
    for note in
        ["wrong one: count=2 instead of 1", "absent: this machine has no g++", "endless: one run took more than 60 s"]
    {
        assert!(all(&html, ".notes li").iter().any(|one| text(one).contains(note)), "{note}");
    }
}

#[test]
fn it_works_in_a_browser() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let browser = env::var("CHROMIUM").unwrap_or("/usr/bin/chromium".to_owned());
    let playwright = here.join("../../bindings/node/node_modules/playwright-core");
    for needed in [Path::new(&browser), &playwright] {
        if !needed.exists() {
            eprintln!("SKIPPED: there is no {}: see tools/setup and tools/node", needed.display());
            assert!(env::var("CI").as_deref() != Ok("true"), "{} is missing", needed.display());
            return;
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("report.html");
    fs::write(&path, page()).unwrap();
    let node = Command::new("node").arg(here.join("tests/report/browser.mjs")).arg(&path).output().unwrap();
    assert!(node.status.success(), "{}", String::from_utf8_lossy(&node.stdout));
}

#[test]
fn questions_are_in_the_order_of_topics() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let definitions = Definition::load_all(&root.join("benchmarks/definitions")).unwrap();
    let mut results = results();
    let question = results.definitions[0].clone();
    // In the order of file names (10, 100, 80), followed by a question without a definition.
    let by_name =
        ["file-lines-80", "rust-stages", "julia-structs", "no-such-question", "file-lines-by-length", "bson-records"];
    results.definitions = by_name.map(|name| Question { name: name.to_owned(), ..question.clone() }).to_vec();
    let record = tempfile::tempdir().unwrap();
    fs::write(record.path().join("results.json"), serde_json::to_string(&results).unwrap()).unwrap();
    let page = html::write(&root, &definitions, Some(record.path()), None).unwrap();
    let page = Html::parse_document(&fs::read_to_string(page).unwrap());
    let shown: Vec<_> = all(&page, "section[id]").iter().filter_map(|section| section.attr("id")).collect();
    let shown: Vec<_> = shown.into_iter().filter(|id| by_name.contains(id)).collect();
    let by_topic =
        ["file-lines-80", "file-lines-by-length", "bson-records", "rust-stages", "julia-structs", "no-such-question"];
    assert_eq!(shown, by_topic);
}
