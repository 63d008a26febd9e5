"""`python -m millstream` and the script `millstream` run the command-line tool in this process."""

import os
import signal
import sys

from ._native import command_line


def main() -> int:
    """Runs the command line as the `millstream` command does, and returns the exit status."""
    # Signals get the dispositions that they had before Python started, for the tool and for the commands that it
    # starts.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    # Python has no object for a stream that was closed at startup.
    closed = (sys.__stdin__ is None, sys.__stdout__ is None, sys.__stderr__ is None)
    # Standard output may have been closed: the first file that the tool opens must not get its number.
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    return command_line(["millstream", *sys.argv[1:]], closed)


if __name__ == "__main__":
    sys.exit(main())
