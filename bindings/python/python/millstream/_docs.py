"""What `help` says about options. The library's own options come from its table."""

from __future__ import annotations

from collections.abc import Iterable

from ._native import options_help

_READER = """\
encoding: str
    The records are text in this encoding: `str`. Every method has text then. Without it, they are `bytes`.
errors: str
    How bytes that are not text are handled: "strict" (the default), "replace", or another error handler of Python.
framer: Framer
    How records are found: lines by default.
delimiter: bytes, str or int
    Records end with this instead of a line feed.
keep_delimiter: bool
    Whether records include their delimiter. By default only lines of text in an iteration do.
observer: a tqdm bar, or a function
    Called while the reader is used, a function with the bytes read, the total (or `None`) and the records.
observer_interval: seconds
    How often the observer is called: every 0.1 s by default.
"""

_COMMAND = """\
current_dir: path
    The directory in which the command runs: that of this process by default.
env: mapping
    The whole environment of the command: that of this process by default.
stdin: "null" (the default), "inherit", bytes, a file, a reader, or an iterable of bytes and text
    The standard input of the command. A separate thread takes the pieces from an iterable, each as soon as the
    command accepts it; if it raises an exception, the reader raises that after the command's output. For text, use
    [text].
stderr: "forward" (the default), "capture", "inherit", "null"
    Standard error is shown, and its last bytes (`stderr_limit`) are kept for errors; or only kept; or neither.
allow_failure: bool
    Whether every exit status and every signal is a success.
"""


def add_options(functions: Iterable[object], *kinds: str) -> None:
    """Appends the options of these kinds to the documentation: of a reader, a command, a writer or a remote object."""
    texts = {
        "reader": lambda: _READER + options_help("reader"),
        "command": lambda: _COMMAND + options_help("command"),
        "writer": lambda: options_help("writer"),
        "remote": lambda: options_help("remote"),
    }
    options = "".join(texts[kind]() for kind in kinds).splitlines()
    for function in functions:
        doc = (function.__doc__ or "").rstrip()
        # Python removes the indentation that all lines but the first have.
        indented = [line.startswith("    ") for line in doc.splitlines()[1:] if line]
        margin = "    " if indented and all(indented) else ""
        lines = "\n".join(f"{margin}    {line}" for line in options)
        function.__doc__ = f"{doc}\n\n{margin}Options:\n\n{lines}\n"
