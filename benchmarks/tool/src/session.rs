//! One call of the tool: it measures one definition after another, reports the results of each immediately, and records
//! them in a journal.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};

use crate::definition::{Definition, Scale};
use crate::estimate::estimate;
use crate::evaluate::question;
use crate::goal::Clock;
use crate::journal::{Header, Journal};
use crate::measure::{Place, Plan, measure};
use crate::record::Record;
use crate::results::{Outcome, Question};
use crate::watch::watch;

/// Everything that is needed in addition to the definitions.
#[derive(Debug)]
pub struct Session {
    /// How much to measure. At the quick size, only whole processes are warmed up, because a runner that times itself
    /// begins with a pass that does not count.
    pub plan: Plan,
    /// The locations of files. Each definition has its own directory for inputs, unless `inputs` is set.
    pub place: Place,
    /// The directory in which inputs are kept, if they are kept.
    pub inputs: Option<PathBuf>,
    /// Whether each runner with a correct answer is observed afterwards, to show where the time is spent.
    pub watches: bool,
}

impl Session {
    /// Measures the questions that have no results yet. The results of each are passed to `report` and, if there is a journal,
    /// recorded there.
    ///
    /// # Errors
    /// Fails if an input cannot be created, and on I/O errors. A failure of a runner is part of the results.
    pub fn measure(
        &mut self,
        definitions: &[Definition],
        mut known: Vec<Question>,
        mut journal: Option<&mut Journal>,
        report: &mut dyn FnMut(&Question),
    ) -> Result<Vec<Question>> {
        known.iter().for_each(&mut *report);
        let known_already = |one: &Definition| known.iter().any(|question| question.name == one.name);
        let open: Vec<&Definition> = definitions.iter().filter(|one| !known_already(one)).collect();
        let bar = bar(open.iter().map(|definition| self.plan(definition).turns(definition)).sum());
        for definition in open {
            let answered = self.answer(definition, &bar).with_context(|| definition.name.clone())?;
            if let Some(journal) = &mut journal {
                journal.add(&answered)?;
            }
            bar.suspend(|| report(&answered));
            known.push(answered);
        }
        bar.finish_and_clear();
        Ok(known)
    }

    /// How much to measure for a definition.
    pub fn plan(&self, definition: &Definition) -> Plan {
        let (warm_up, factor) = match self.plan.scale {
            Scale::Full => (self.plan.warm_up, definition.budget_factor.unwrap_or(1)),
            Scale::Quick => (self.plan.warm_up && definition.clock == Clock::Process, 1),
        };
        let [budget, limit] = [self.plan.budget, self.plan.limit].map(|time| time.saturating_mul(factor));
        let limit = definition.patience.map_or(limit, Duration::from_secs);
        Plan { warm_up, budget, limit, ..self.plan }
    }

    /// The estimated time of all definitions, from the times in the record.
    pub fn estimate(&self, definitions: &[Definition], record: &Record) -> Duration {
        definitions.iter().map(|definition| estimate(definition, &self.plan(definition), record)).sum()
    }

    fn answer(&mut self, definition: &Definition, bar: &ProgressBar) -> Result<Question> {
        let scratch;
        self.place.inputs = match &self.inputs {
            Some(directory) => directory.clone(),
            None => {
                // Each definition has its own directory, so that the memory is freed before the next one.
                scratch = tempfile::Builder::new().prefix("millstream-bench-").tempdir_in(memory())?;
                scratch.path().to_owned()
            }
        };
        fs::create_dir_all(&self.place.inputs)?;
        let plan = self.plan(definition);
        let outcomes = measure(definition, &plan, &self.place, &|runner| {
            bar.set_message(format!("{}: {runner}", definition.name));
            bar.inc(1);
        })?;
        let mut question = question(definition, plan.scale, outcomes);
        // A store has ended by then.
        if self.watches && definition.store.is_none() {
            // An observed run gets at most the time that the runner had for all of its runs.
            let limit = plan.budget.min(plan.limit);
            for (runner, asked) in question.runners.iter_mut().zip(&definition.runners) {
                if matches!(runner.outcome, Outcome::Measured { .. }) {
                    bar.set_message(format!("{}: {}, watched", definition.name, runner.name));
                    runner.seen = Some(bar.suspend(|| watch(asked, definition, plan.scale, &self.place, limit))?);
                }
            }
        }
        Ok(question)
    }
}

/// A progress bar on the terminal with the remaining time, estimated from the turns so far. Nothing is drawn if
/// standard error is not a terminal.
fn bar(turns: usize) -> ProgressBar {
    let bar = ProgressBar::new(turns as u64);
    let style = ProgressStyle::with_template("{bar:30} {percent:>3} %, about {eta} left  {msg}");
    bar.set_style(style.expect("the template is right"));
    bar
}

/// A directory whose files are in memory, if this machine has one.
fn memory() -> PathBuf {
    let shm = Path::new("/dev/shm");
    if shm.is_dir() { shm.to_owned() } else { env::temp_dir() }
}

/// Returns the results in the journal of an earlier run and its header, which has the machine and the start of that
/// run.
///
/// # Errors
/// Fails if there is nothing to continue or if the journal belongs to a different run.
pub fn resume(path: &Path, header: Header) -> Result<(Header, Vec<Question>)> {
    let Some((begun, known)) = Journal::load(path)? else {
        bail!("{} does not exist: there is no run to continue: omit --resume", path.display());
    };
    if !begun.is_same(&header) {
        let (was, is) = (begun.machine.commit, header.machine.commit);
        bail!(
            "{}: that run measured commit {was} and was asked {}; this is commit {is}, asked {}: leave --resume out to begin anew",
            path.display(),
            begun.asked,
            header.asked
        );
    }
    Ok((begun, known))
}
