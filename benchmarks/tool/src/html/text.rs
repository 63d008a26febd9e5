//! Sentences in which some words are emphasised. All text is escaped.

use askama::Template;

use super::conclusion::{Comparison, Conclusion, Measured};
use super::quantity::{self, grouped, ratio};
use super::side;
use crate::results::Question;

/// A text made of spans.
#[derive(Debug, Template)]
#[template(path = "text.html")]
pub struct Text {
    spans: Vec<Span>,
}

#[derive(Debug)]
struct Span {
    text: String,
    /// The class name for style sheets: `code` for code, empty for plain text.
    class: &'static str,
}

impl Text {
    /// Parses text in which backticks enclose code, as in Markdown.
    pub fn marked(text: &str) -> Text {
        let span =
            |(at, part): (usize, &str)| Span { text: part.to_owned(), class: if at % 2 == 1 { "code" } else { "" } };
        Text { spans: text.split('`').enumerate().map(span).collect() }
    }

    /// Describes a conclusion in one sentence, or two if there is a physical limit.
    pub fn conclusion(question: &Question, conclusion: &Conclusion) -> Text {
        let mut text = Text { spans: Vec::new() };
        match conclusion {
            Conclusion::Compared(comparison) => text.compare(question, comparison),
            Conclusion::Alone(one) => {
                text.with(question, one.runner.at);
                text.name(one);
                text.say(format!(" takes {}; no competitor was measured.", quantity::time(one.median)));
            }
            Conclusion::Nothing => text.say("No runner was measured."),
        }
        text
    }

    fn compare(&mut self, question: &Question, comparison: &Comparison) {
        let Comparison { at, winner, loser, times, over_floor } = comparison;
        self.with(question, *at);
        self.name(winner);
        if comparison.is_significant() {
            self.say(" is ");
            self.stress("times", ratio(times.value));
            self.say(" times faster than ");
            self.name(loser);
            self.say(if loser.runner.millstream {
                ", the fastest Millstream runner "
            } else {
                ", the fastest competitor "
            });
        } else {
            self.say(" and ");
            self.name(loser);
            self.say(format!(" do not differ significantly: {} ", ratio(times.value)));
        }
        match times.interval {
            Some((low, high)) => self.stress("interval", format!("({}–{}).", ratio(low), ratio(high))),
            None => self.say("(too few runs for an interval)."),
        }
        if let Some(over) = over_floor {
            self.say(format!(" Millstream takes {} times as long as the floor.", ratio(*over)));
        }
    }

    fn with(&mut self, question: &Question, at: Option<u64>) {
        if let Some((at, sweep)) = at.zip(question.sweep.as_ref()) {
            self.say(format!("With {} = {}: ", sweep.parameter, grouped(at as f64, 0)));
        }
    }

    fn name(&mut self, one: &Measured) {
        // The text has already named the value of the swept parameter.
        let name = if one.runner.at.is_some() { &one.runner.base } else { &one.runner.name };
        self.stress(side(one.runner.millstream, false), name.clone());
    }

    fn stress(&mut self, class: &'static str, text: String) {
        self.spans.push(Span { text, class });
    }

    fn say(&mut self, text: impl Into<String>) {
        self.stress("", text.into());
    }
}
