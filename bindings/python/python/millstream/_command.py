"""How a command ended, and the exception if it failed.

This module is imported when it is first used: the modules that it needs take longer to import than the package."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

from ._errors import Error


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """How a command ended."""

    argv: tuple[str, ...]
    #: As in `subprocess`: negative for a signal; `None` if the system does not report it.
    status: int | None
    #: The last bytes of its standard error (4 KiB by default), if Millstream reads it.
    stderr_tail: bytes


class CommandFailed(Error, subprocess.CalledProcessError):
    """A command exited with a non-zero status or was killed by a signal. Everything it wrote was delivered.

    The attributes are those of `subprocess.CalledProcessError`: `returncode`, which is negative for a signal, `cmd`,
    the words of the command, and `stderr`, the last bytes of its standard error. `output` is `None`, because the output
    was delivered."""

    returncode: int
    cmd: tuple[str, ...]
    stderr: bytes

    @property
    def argv(self) -> tuple[str, ...]:
        """The same as `cmd`: its name in every language of Millstream, and in `CommandEnd`."""
        return self.cmd

    @property
    def status(self) -> int:
        """The same as `returncode`: its name in every language of Millstream, and in `CommandEnd`."""
        return self.returncode

    @property
    def stderr_tail(self) -> bytes:
        """The same as `stderr`: its name in every language of Millstream, and in `CommandEnd`."""
        return self.stderr
