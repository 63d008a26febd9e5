//! Small files of CSV that some programs misread, and the right answers.
//!
//! Every record has two fields. A trap is between plain records, `before` and `after` of them, so that the large form
//! of a file has it in the middle of many others. The right answer follows from the table in `docs/csv.md`.

use std::fmt::Write as _;
use std::io::{self, Write};

/// A record of a trap.
pub type Pair = [String; 2];

/// A file that some programs misread.
pub struct Trap {
    /// A short description.
    pub name: &'static str,
    /// What is special about the file, as text.
    pub shown: &'static str,
    text: String,
    /// The right answer.
    pub right: Right,
    /// Whether plain records follow.
    has_end: bool,
}

/// The right answer for the records of a trap.
pub enum Right {
    /// These records.
    Records(Vec<Pair>),
    /// An error. Programs that read on without one must give this number of records for the trap, so that no record is
    /// lost or joined.
    Error(u64),
}

/// The size of a file.
#[derive(Clone, Copy)]
pub struct Form {
    /// The number of plain records before a trap, and after it.
    pub plain: u64,
    /// The number of lines in a long field.
    pub lines: usize,
    /// The number of long fields, if the file consists of them.
    pub fields: usize,
}

impl Form {
    /// A few records, all of which are compared.
    pub const SMALL: Form = Form { plain: 3, lines: 8, fields: 3 };
    /// About 100 MB, of which the records are counted.
    pub const LARGE: Form = Form { plain: 3_300_000, lines: 6_000_000, fields: 330 };
}

fn records<const N: usize>(records: [[&str; 2]; N]) -> Right {
    Right::Records(records.map(|record| record.map(str::to_owned)).into())
}

/// Returns a field with lines of 10 bytes, which look like records.
fn lines(count: usize) -> String {
    (0..count).fold(String::new(), |mut field, line| {
        writeln!(field, "{:07},1", line % 10_000_000).expect("a string can be written");
        field
    })
}

impl Trap {
    /// Returns all traps.
    pub fn all(form: Form) -> Vec<Trap> {
        let trap = |name, shown, text: &str, right| Trap { name, shown, text: text.to_owned(), right, has_end: true };
        let long = lines(form.lines);
        // Longer than what a thread reads at a time.
        let each = lines(form.lines.min(30_000));
        let all: String = (0..form.fields).map(|number| format!("\"{each}\",{number}\n")).collect();
        let all_right = (0..form.fields).map(|number| [each.clone(), number.to_string()]).collect();
        vec![
            trap("a quote in an unquoted field", r#"`a"b,c`"#, "a\"b,c\n", Right::Error(1)),
            trap("two of them, in two records", r#"`a,b"c` LF `d,e"f`"#, "a,b\"c\nd,e\"f\n", Right::Error(2)),
            trap("text after a closing quote", r#"`"a"b,c`"#, "\"a\"b,c\n", Right::Error(1)),
            trap("a CR as line end", "`a,b` CR `c,d` LF", "a,b\rc,d\n", records([["a", "b"], ["c", "d"]])),
            trap("a CR in a quoted field", r#"`"a` CR `b",c`"#, "\"a\rb\",c\n", records([["a\rb", "c"]])),
            trap(
                "mixed line ends",
                "LF, CRLF and LF",
                "a,b\nc,d\r\ne,f\n",
                records([["a", "b"], ["c", "d"], ["e", "f"]]),
            ),
            trap(
                "doubled quotes next to delimiters and line ends",
                r#"`"a"",""b","c""` LF `""d"`"#,
                "\"a\"\",\"\"b\",\"c\"\"\n\"\"d\"\n",
                records([["a\",\"b", "c\"\n\"d"]]),
            ),
            trap(
                "quotes that first appear in the second half",
                r#"`"a,b","c` LF `d"`"#,
                "\"a,b\",\"c\nd\"\n",
                records([["a,b", "c\nd"]]),
            ),
            Trap {
                has_end: false,
                ..trap("a quote that is left open", r#"`x,"d""` at the end"#, "x,\"d\"\"", Right::Error(1))
            },
            trap(
                "a long quoted field full of lines",
                "60 MB in the large form",
                &format!("\"{long}\",c\n"),
                Right::Records(vec![[long, "c".to_owned()]]),
            ),
            trap(
                "nearly every byte inside quotes",
                "fields of 300 KB in the large form",
                &all,
                Right::Records(all_right),
            ),
        ]
    }

    /// Writes the file.
    ///
    /// # Errors
    /// Returns the errors of `out`.
    pub fn write(&self, form: Form, out: &mut impl Write) -> io::Result<()> {
        for number in 0..self.before(form) {
            writeln!(out, "before,{number}")?;
        }
        out.write_all(self.text.as_bytes())?;
        for number in 0..self.after(form) {
            writeln!(out, "after,{number}")?;
        }
        Ok(())
    }

    /// The right number of records, also for a program that reads on where an error is right.
    pub fn count(&self, form: Form) -> u64 {
        let own = match &self.right {
            Right::Records(records) => records.len() as u64,
            Right::Error(count) => *count,
        };
        self.before(form) + own + self.after(form)
    }

    /// The right records, or `None` if an error is right.
    pub fn records(&self, form: Form) -> Option<Vec<Pair>> {
        let Right::Records(own) = &self.right else { return None };
        let plain =
            |text: &'static str, count| (0..count).map(move |number: u64| [text.to_owned(), number.to_string()]);
        Some(
            plain("before", self.before(form))
                .chain(own.iter().cloned())
                .chain(plain("after", self.after(form)))
                .collect(),
        )
    }

    /// The records of the file that are not part of the trap: those before it, and those after it.
    pub fn plain(&self, form: Form) -> [u64; 2] {
        [self.before(form), self.after(form)]
    }

    /// A file with long fields has no plain records in its large form, because it is large without them.
    fn before(&self, form: Form) -> u64 {
        if self.text.len() > 1 << 20 { 3 } else { form.plain }
    }

    fn after(&self, form: Form) -> u64 {
        if self.has_end { self.before(form) } else { 0 }
    }
}
