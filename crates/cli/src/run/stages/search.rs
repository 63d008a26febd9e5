//! Finds the records that match a regular expression: `match` and `not`.
//!
//! The result is that of matching the content of each record. If all records end with one byte, a whole batch is
//! searched at once for *candidates*, by a second expression that never matches across this byte. It matches in every
//! record in which the first one matches, because it is the same except that
//!
//! - `^` and `$` match at the ends of lines instead of at the ends of the content (`$` also before a carriage return, if
//!   one before a line feed is not content), and
//! - all other assertions, such as `\b`, are omitted, because they may see bytes that are not content.
//!
//! It may match in other records too, and in bytes that are not content. So a candidate is matched once more, alone,
//! unless the two expressions are known to agree. An expression that matches nothing (the empty string), which contains
//! the byte that ends records, or which is too large is always matched record by record.

use std::ops::Range;
use std::time::Instant;

use grep_matcher::{LineMatchKind, Matcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use millstream::frame::{Batch, Framer};
use millstream::pipe::StageStats;
use regex::bytes::Regex;
use regex_syntax::hir::{Hir, HirKind, Look};

use super::text::{StageText, Work};

/// The limits for the second expression in bytes, which are the defaults of the crate `regex` for the first one.
const SIZE_LIMIT: usize = 10 << 20;
const CACHE_LIMIT: usize = 2 << 20;

/// The number of candidates after which the rest of a batch is matched record by record if they are dense.
const DENSE: usize = 32;

/// Selects the records of a batch that match, or that do not.
pub(super) struct Search {
    regex: Regex,
    /// Finds candidates in many records.
    candidates: Option<Candidates>,
    /// Whether records that do not match are selected.
    inverted: bool,
    stats: StageStats,
}

struct Candidates {
    matcher: RegexMatcher,
    /// Whether each record in which `matcher` itself matches is known to match.
    is_exact: bool,
}

impl Search {
    /// Returns the search for a stage that is one, for the records that `framer` finds.
    pub(super) fn of(asked: &StageText, framer: &dyn Framer) -> Option<Search> {
        let (regex, inverted) = match &asked.work {
            Work::Match(regex) => (regex, false),
            Work::Not(regex) => (regex, true),
            _ => return None,
        };
        let may_end_with_cr = framer.trim().carriage_return;
        let candidates = framer.separator().and_then(|byte| Candidates::new(regex.as_str(), byte, may_end_with_cr));
        let mut stats = StageStats::default();
        stats.name.clone_from(&asked.text);
        Some(Search { regex: regex.clone(), candidates, inverted, stats })
    }

    /// Replaces `selected` by the indices of the selected records, as ascending ranges that are not empty.
    pub(super) fn select(&self, batch: &Batch<'_>, selected: &mut Vec<Range<usize>>) {
        selected.clear();
        let mut selection = Selection { selected, inverted: self.inverted, at: 0 };
        let searched = match &self.candidates {
            Some(candidates) => self.search(candidates, batch, &mut selection),
            None => 0,
        };
        for record in searched..batch.len() {
            if self.matches(batch, record) {
                selection.found(record);
            }
        }
        selection.finish(batch.len());
    }

    /// Like [`select`](Search::select), and measures it.
    pub(super) fn select_measured(&mut self, batch: &Batch<'_>, selected: &mut Vec<Range<usize>>) {
        let began = Instant::now();
        self.select(batch, selected);
        self.stats.time += began.elapsed();
        for range in selected {
            self.stats.items += range.len() as u64;
            self.stats.bytes += u64::from(batch.offsets()[range.end] - batch.offsets()[range.start]);
        }
    }

    pub(super) fn stats(&self) -> &StageStats {
        &self.stats
    }

    fn matches(&self, batch: &Batch<'_>, record: usize) -> bool {
        batch.get(record).is_some_and(|content| self.regex.is_match(content))
    }

    /// Searches many records at once, and returns the number of records that were searched.
    fn search(&self, candidates: &Candidates, batch: &Batch<'_>, selection: &mut Selection<'_>) -> usize {
        let (offsets, mut at, mut found) = (batch.offsets(), 0, 0);
        let bytes = &batch.bytes()[..offsets[batch.len()] as usize];
        while at < batch.len() && (found < DENSE || found * 2 < at) {
            let start = offsets[at] as usize;
            let Some((end, is_sure)) = candidates.find(&bytes[start..]) else { return batch.len() };
            // A candidate is not empty and contains no end of a record, so its last byte is in its record.
            let record = at + index_of((start + end - 1) as u32, &offsets[at + 1..]);
            if is_sure || self.matches(batch, record) {
                selection.found(record);
            }
            at = record + 1;
            found += 1;
        }
        at
    }
}

impl Candidates {
    /// Returns `None` if records can only be matched one by one.
    fn new(expression: &str, separator: u8, may_end_with_cr: bool) -> Option<Candidates> {
        let original = regex_syntax::ParserBuilder::new().utf8(false).build().parse(expression).ok()?;
        let properties = original.properties();
        let has_assertions = !properties.look_set().is_empty();
        if properties.minimum_len().is_none_or(|len| len == 0) {
            return None;
        }
        let line_end = if may_end_with_cr { Look::EndCRLF } else { Look::EndLF };
        let line_end = Some(line_end).filter(|_| separator == b'\n');
        let matcher = RegexMatcherBuilder::new()
            .line_terminator(Some(separator))
            .size_limit(SIZE_LIMIT)
            .dfa_size_limit(CACHE_LIMIT)
            .build(&relaxed(original, line_end).to_string())
            .ok()?;
        // A carriage return that is not content may match.
        let may_match_more = may_end_with_cr && !matcher.non_matching_bytes()?.contains(b'\r');
        Some(Candidates { is_exact: !has_assertions && !may_match_more, matcher })
    }

    /// Returns the end of the first candidate, and whether its record is known to match.
    fn find(&self, bytes: &[u8]) -> Option<(usize, bool)> {
        match self.matcher.find_candidate_line(bytes).expect("this search cannot fail")? {
            LineMatchKind::Confirmed(end) => Some((end, self.is_exact)),
            LineMatchKind::Candidate(end) => Some((end, false)),
        }
    }
}

/// Returns the expression with assertions that hold wherever the original ones do, in whichever bytes follow or precede
/// the content. `line_end` holds at the end of the content of lines; other records have no such assertion.
fn relaxed(expression: Hir, line_end: Option<Look>) -> Hir {
    let all = |parts: Vec<Hir>| parts.into_iter().map(|part| relaxed(part, line_end)).collect();
    match (expression.into_kind(), line_end) {
        (HirKind::Look(Look::Start | Look::StartLF), Some(_)) => Hir::look(Look::StartLF),
        (HirKind::Look(Look::End | Look::EndLF), Some(end)) => Hir::look(end),
        (HirKind::Look(_) | HirKind::Empty, _) => Hir::empty(),
        (HirKind::Literal(literal), _) => Hir::literal(literal.0),
        (HirKind::Class(class), _) => Hir::class(class),
        (HirKind::Repetition(mut repetition), _) => {
            *repetition.sub = relaxed(*repetition.sub, line_end);
            Hir::repetition(repetition)
        }
        (HirKind::Capture(capture), _) => relaxed(*capture.sub, line_end),
        (HirKind::Concat(parts), _) => Hir::concat(all(parts)),
        (HirKind::Alternation(parts), _) => Hir::alternation(all(parts)),
    }
}

/// Returns how many of these ascending numbers are at most `number`. Most of the results are small, so comparing whole
/// blocks without branches is faster than a binary search.
fn index_of(number: u32, ends: &[u32]) -> usize {
    let mut at = 0;
    while let Some(block) = ends[at..].first_chunk::<32>() {
        let count: u32 = block.iter().map(|end| u32::from(*end <= number)).sum();
        at += count as usize;
        if count < 32 {
            return at;
        }
    }
    at + ends[at..].iter().take_while(|end| **end <= number).count()
}

/// The records that have been selected so far.
struct Selection<'s> {
    selected: &'s mut Vec<Range<usize>>,
    inverted: bool,
    /// The first record after the last match.
    at: usize,
}

impl Selection<'_> {
    /// Adds a match, which follows all earlier ones.
    #[inline]
    fn found(&mut self, record: usize) {
        if self.inverted {
            self.push(self.at..record);
        } else {
            self.push(record..record + 1);
        }
        self.at = record + 1;
    }

    /// Ends a batch of `count` records.
    fn finish(mut self, count: usize) {
        if self.inverted {
            self.push(self.at..count);
        }
    }

    #[inline]
    fn push(&mut self, records: Range<usize>) {
        match self.selected.last_mut() {
            _ if records.is_empty() => {}
            Some(last) if last.end == records.start => last.end = records.end,
            _ => self.selected.push(records),
        }
    }
}

#[cfg(test)]
mod tests {
    use millstream::frame::{Delimiter, Fixed, Lines};
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    /// Parts of expressions. Together they contain every kind of assertion and the bytes that end records.
    const PARTS: [&str; 52] = [
        "a",
        "b",
        "ab",
        "é",
        "\\n",
        "\\r",
        "\\x00",
        ",",
        " ",
        "^",
        "$",
        "\\A",
        "\\z",
        "\\b",
        "\\B",
        ".",
        "\\s",
        "\\S",
        "\\w",
        "\\W",
        "\\d",
        "[^a]",
        "[^,]",
        "[^a\\n]",
        "[^\\x00b]",
        "[\\r\\n]",
        "(?s).",
        "(?s:.)",
        "(?s:a.b)",
        "(?m)^",
        "(?m)$",
        "(?m:^)",
        "(?m:$)",
        "(?Rm:$)",
        "(?Rm:^)",
        "(?-u:.)",
        "(?-u:[^a])",
        "(?-u:\\xff)",
        "(?-u:\\xc3)",
        "(?-u:\\b)",
        "(?-u:\\B)",
        "\\b{start}",
        "\\b{end}",
        "(?i)A",
        "*",
        "+?",
        "?",
        "{2}",
        "|",
        "(?:a|^)",
        "(b$)",
        "(a*)",
    ];

    /// Data contains every byte that ends records, text, and invalid UTF-8.
    const DATA: [&[u8]; 16] = [
        b"a",
        b"b",
        b"a",
        b"ab",
        b"\n",
        b"\n",
        b"\r\n",
        b"\r",
        b"\0",
        b",",
        b" ",
        b"\xc3\xa9",
        b"\xc3",
        b"\xff",
        b"1",
        b";;",
    ];

    const FRAMERS: usize = 10;

    fn framers() -> [Box<dyn Framer>; FRAMERS] {
        [
            Box::new(Lines::new()),
            Box::new(Delimiter::byte(b'\n')),
            Box::new(Delimiter::byte(0)),
            Box::new(Delimiter::byte(b',')),
            Box::new(Delimiter::byte(b'a')),
            Box::new(Delimiter::byte(b' ')),
            Box::new(Delimiter::byte(0xff)),
            Box::new(Delimiter::byte(0xc3)),
            Box::new(Delimiter::bytes(b";;".as_slice()).unwrap()),
            Box::new(Fixed::new(3).unwrap()),
        ]
    }

    /// Returns the indices of the selected records, and those that are selected one by one.
    fn both(stage: &str, framer: &mut dyn Framer, data: &[u8]) -> (Vec<usize>, Vec<usize>) {
        let asked = StageText::parse(stage).unwrap();
        let (Work::Match(regex) | Work::Not(regex)) = &asked.work else { panic!("{stage}") };
        let mut offsets = vec![0];
        // Records of a fixed size may lack bytes at the end, which is an error after the others.
        let terminated = framer.batch(data, true, usize::MAX, &mut offsets).unwrap_or(true);
        let batch = Batch::new(data, &offsets, framer.trim(), terminated);
        let mut search = Search::of(&asked, framer).unwrap();
        let (mut selected, mut measured) = (Vec::new(), Vec::new());
        search.select(&batch, &mut selected);
        search.select_measured(&batch, &mut measured);
        assert_eq!(selected, measured);
        assert!(selected.iter().all(|range| !range.is_empty()));
        assert!(selected.windows(2).all(|pair| pair[0].end < pair[1].start));
        let selected: Vec<_> = selected.into_iter().flatten().collect();
        assert_eq!(search.stats().items, selected.len() as u64);
        let is_match = |record: &usize| regex.is_match(batch.get(*record).unwrap()) != stage.starts_with("not");
        (selected, (0..batch.len()).filter(is_match).collect())
    }

    proptest! {
        #[test]
        fn a_search_selects_what_matching_each_record_selects(
            expression in prop::collection::vec(select(&PARTS[..]), 1..6)
                .prop_map(|parts| parts.concat())
                .prop_filter("an expression", |expression| Regex::new(expression).is_ok()),
            data in prop::collection::vec(select(&DATA[..]), 0..200),
            framer in 0..FRAMERS,
        ) {
            let data = data.concat();
            for stage in ["match", "not"] {
                let (found, expected) = both(&format!("{stage}:{expression}"), &mut *framers()[framer], &data);
                prop_assert_eq!(found, expected, "{} {:?} {:?}", stage, expression, framers()[framer].separator());
            }
        }

        #[test]
        fn an_index_is_the_number_of_smaller_ends(gaps in prop::collection::vec(1_u32..5, 1..100), number in 0_u32..500) {
            let ends: Vec<u32> = gaps.iter().scan(0, |end, gap| { *end += gap; Some(*end) }).collect();
            prop_assert_eq!(index_of(number, &ends), ends.iter().filter(|end| **end <= number).count());
        }
    }

    #[test]
    fn ordinary_expressions_are_searched_in_whole_batches() {
        let candidates = |expression: &str, separator| Candidates::new(expression, separator, separator == b'\n');
        for (expression, is_exact) in [
            ("error", true),
            ("a|bc", true),
            ("(?i)error", true),
            ("[0-9]{4}-[0-9]{2}", true),
            ("^#", false),
            ("a$", false),
            (r"\berror\b", false),
            ("a.b", false),
            (r"\s+a", false),
            ("[^,]a", false),
        ] {
            assert_eq!(candidates(expression, b'\n').map(|found| found.is_exact), Some(is_exact), "{expression}");
        }
        assert!(candidates("a.b", b',').unwrap().is_exact);
        for expression in ["", "^", "^$", "a*", r"\b", r"a\nb", r"\n", r"[a&&b]", r"[\n]"] {
            assert!(candidates(expression, b'\n').is_none(), "{expression}");
        }
        assert!(candidates("a.b", 0xff).is_none());
    }
}
