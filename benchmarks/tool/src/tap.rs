//! Results as TAP, version 14 of the Test Anything Protocol: a test point for each target, and one for each question's
//! answers.

use std::fmt::Write;

use crate::results::{Met, Question, Row, Target};

/// Writes test points and numbers them.
#[derive(Debug, Default)]
pub struct Tap {
    points: usize,
}

impl Tap {
    /// The first line of the output.
    pub fn version() -> &'static str {
        "TAP version 14\n"
    }

    /// The test points of one question.
    ///
    /// ```
    /// use millstream_bench::definition::{Definition, Scale};
    /// use millstream_bench::evaluate::question;
    /// use millstream_bench::results::Outcome;
    /// use millstream_bench::tap::Tap;
    ///
    /// let definition = Definition::parse(r#"
    ///     name = "echo"
    ///     question = "What does nothing cost?"
    ///     full.answers.all = { count = 1 }
    ///     quick.answers.all = { count = 1 }
    ///     runner = [{ name = "a", command = ["echo"] }, { name = "b", command = ["echo"] }]
    ///     target = [{ work = "nothing", millstream = "a", goal = { under_ms = 1.0 } }]
    /// "#)?;
    /// let outcomes = vec![Outcome::Skipped("echo".to_owned()), Outcome::Wrong("count=2".to_owned())];
    /// let text = Tap::default().points(&question(&definition, Scale::Full, outcomes));
    /// assert_eq!(text, "\
    /// not ok 1 - echo: every answer is correct
    ///   ---
    ///   b: \"count=2\"
    ///   ...
    /// ok 2 - echo: nothing # SKIP millstream: skipped
    /// ");
    /// # Ok::<(), anyhow::Error>(())
    /// ```
    pub fn points(&mut self, question: &Question) -> String {
        let name = &question.name;
        let wrong: Vec<_> = question.wrong().map(|(runner, reason)| (runner.name.as_str(), reason)).collect();
        let mut text = self.point(wrong.is_empty(), &format!("{name}: every answer is correct"), "", &wrong);
        for reached in &question.targets {
            let Target { work, row: Row { competitor, millstream, ratio, target, met, .. }, .. } = reached;
            let what = format!("{name}: {work}");
            text += &match met {
                Met::Yes => self.point(true, &what, "", &[]),
                Met::Skipped => self.point(true, &what, &skip(millstream, competitor), &[]),
                Met::No | Met::Wrong => {
                    let obstacle = reached.obstacle();
                    let known =
                        [("millstream", millstream), ("competitor", competitor), ("ratio", ratio), ("target", target)];
                    let known = known.into_iter().chain(obstacle.iter().map(|obstacle| ("why", obstacle)));
                    let details: Vec<_> = known.map(|(key, value)| (key, value.as_str())).collect();
                    self.point(false, &what, "", &details)
                }
            };
        }
        text
    }

    /// The last line, which contains the number of test points.
    pub fn plan(&self) -> String {
        format!("1..{}\n", self.points)
    }

    /// One test point, followed by a YAML block if there are details.
    fn point(&mut self, ok: bool, what: &str, directive: &str, details: &[(&str, &str)]) -> String {
        self.points += 1;
        let what = what.replace('\\', r"\\").replace('#', r"\#");
        let mut text = format!("{} {} - {what}{directive}\n", if ok { "ok" } else { "not ok" }, self.points);
        if !details.is_empty() {
            text.push_str("  ---\n");
            for (key, value) in details {
                // A JSON string is also a YAML string.
                let value = serde_json::Value::from(*value);
                writeln!(text, "  {key}: {value}").expect("writing to a string cannot fail");
            }
            text.push_str("  ...\n");
        }
        text
    }
}

fn skip(millstream: &str, competitor: &str) -> String {
    let against = if competitor.is_empty() { String::new() } else { format!(", against {competitor}") };
    format!(" # SKIP millstream: {millstream}{against}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_something_in_tap_is_escaped() {
        let mut tap = Tap::default();
        assert_eq!(tap.point(true, r"a # b \ c", "", &[]), "ok 1 - a \\# b \\\\ c\n");
        let point = tap.point(false, "a", "", &[("millstream", "\"quoted\"\n")]);
        assert_eq!(point, "not ok 2 - a\n  ---\n  millstream: \"\\\"quoted\\\"\\n\"\n  ...\n");
        assert_eq!(tap.plan(), "1..2\n");
    }
}
