//! `millstream completions SHELL` and `millstream man [COMMAND]`: generated with clap's own tools from the arguments,
//! so that they always agree with `--help`.

use clap_complete::Shell;

use crate::Ending;
use crate::arguments::{Page, command};
use crate::message;

/// Prints the completion script of `shell`.
pub(crate) fn completions(shell: Shell) -> Ending {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "millstream", &mut script);
    message::print(&script)
}

/// Prints the manual page of one subcommand, or of the command itself, as roff.
pub(crate) fn man(page: Option<Page>) -> Ending {
    let mut command = command();
    command.build();
    if let Some(page) = page {
        command = command.find_subcommand(page.name()).expect("a page is named after its subcommand").clone();
    }
    let mut roff = Vec::new();
    let source = concat!("millstream ", env!("CARGO_PKG_VERSION"));
    let man = clap_mangen::Man::new(command).source(source).manual("Millstream");
    man.render(&mut roff).expect("writing to memory cannot fail");
    message::print(&roff)
}
