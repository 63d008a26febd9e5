//! The `millstream` command.

fn main() -> millstream_cli::Ending {
    millstream_cli::main(std::env::args_os())
}
