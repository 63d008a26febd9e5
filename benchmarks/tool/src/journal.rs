//! A journal of the results so far, so that a killed run can be continued.
//!
//! The first line is a JSON object that describes the request; each further line is a question with its results. An
//! incomplete last line was being written when the run ended, and is ignored.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::results::{Machine, Question};

/// A journal that is being written.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

/// The request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Header {
    /// Where and when the run started.
    pub machine: Machine,
    /// Everything that determines the measurement, as one text.
    pub asked: String,
}

impl Header {
    /// Whether the results of one journal are valid for the other: both have the same code and the same options.
    pub fn is_same(&self, other: &Header) -> bool {
        self.machine.commit == other.machine.commit && self.asked == other.asked
    }
}

impl Journal {
    /// Creates a journal, replacing an older one, and writes the results that are already known.
    ///
    /// # Errors
    /// Returns I/O errors.
    pub fn begin(path: &Path, header: &Header, known: &[Question]) -> Result<Journal> {
        let file = File::create(path).with_context(|| path.display().to_string())?;
        let mut journal = Journal { path: path.to_owned(), file };
        journal.write(header)?;
        known.iter().try_for_each(|question| journal.add(question))?;
        Ok(journal)
    }

    /// Returns the content of a journal; nothing if there is no journal or if its first line is incomplete.
    ///
    /// # Errors
    /// Fails on I/O errors and on a complete line that is not a journal entry.
    pub fn load(path: &Path) -> Result<Option<(Header, Vec<Question>)>> {
        if !path.exists() {
            return Ok(None);
        }
        let context = || path.display().to_string();
        let text = fs::read_to_string(path).with_context(context)?;
        let mut lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let Some(header) = lines.next() else { return Ok(None) };
        let header = serde_json::from_str(header).with_context(context)?;
        let questions = lines.map(|line| serde_json::from_str(line).with_context(context)).collect::<Result<_>>()?;
        Ok(Some((header, questions)))
    }

    /// Writes the results of a question immediately.
    ///
    /// # Errors
    /// Returns I/O errors.
    pub fn add(&mut self, question: &Question) -> Result<()> {
        self.write(question)
    }

    /// Removes the journal, after all results have been stored elsewhere.
    ///
    /// # Errors
    /// Returns I/O errors.
    pub fn end(self) -> Result<()> {
        fs::remove_file(&self.path).with_context(|| self.path.display().to_string())
    }

    fn write(&mut self, line: &impl Serialize) -> Result<()> {
        let mut line = serde_json::to_string(line)?;
        line.push('\n');
        self.file.write_all(line.as_bytes()).with_context(|| self.path.display().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::{Definition, Scale};
    use crate::evaluate::question;
    use crate::results::Outcome;

    fn header(commit: &str, asked: &str) -> Header {
        let machine = Machine { commit: commit.to_owned(), ..Machine::default() };
        Header { machine, asked: asked.to_owned() }
    }

    fn answered(name: &str) -> Question {
        let definition = Definition::parse(&format!(
            r#"
            name = "{name}"
            question = "Which?"
            full = {{ answers.all = {{ count = 1 }} }}
            quick = {{ answers.all = {{ count = 1 }} }}
            runner = [{{ name = "one", command = ["a"] }}]
            "#
        ));
        question(&definition.unwrap(), Scale::Full, vec![Outcome::Over(1.0)])
    }

    #[test]
    fn what_was_written_is_there_and_a_cut_line_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        assert!(Journal::load(&path).unwrap().is_none());
        let mut journal = Journal::begin(&path, &header("abc", "all"), &[answered("first")]).unwrap();
        journal.add(&answered("second")).unwrap();
        let names = || {
            let (header, questions) = Journal::load(&path).unwrap().unwrap();
            (header.asked, questions.into_iter().map(|question| question.name).collect::<Vec<_>>())
        };
        assert_eq!(names(), ("all".to_owned(), vec!["first".to_owned(), "second".to_owned()]));

        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 5]).unwrap();
        assert_eq!(names().1, ["first"]);
        fs::write(&path, &whole[..5]).unwrap();
        assert!(Journal::load(&path).unwrap().is_none());
        fs::write(&path, "no JSON\n").unwrap();
        assert!(Journal::load(&path).is_err());
        journal.end().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn another_commit_or_question_is_another_run() {
        assert!(header("abc", "all").is_same(&header("abc", "all")));
        assert!(!header("abc", "all").is_same(&header("abd", "all")));
        assert!(!header("abc", "all").is_same(&header("abc", "lines")));
    }
}
