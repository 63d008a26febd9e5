//! The `millstream` command.

mod at_start;

fn main() -> millstream_cli::Ending {
    millstream_cli::main_with(std::env::args_os(), at_start::closed())
}
