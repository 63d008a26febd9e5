"""The lines of the README that install Millstream today: each is run as it is, and what it installed is used."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import common
from common import ROOT, TARGET, VERSION, Problem, say
from kinds import julia

# What is done in the empty directory before the line, and with what the line installed. A line that starts with `#` names
# a program without which both are skipped.
STEPS = {
    "Command line": ("true", f"millstream-{VERSION}-x86_64-unknown-linux-musl/millstream --version"),
    "Debian": ("# dpkg", "root/usr/bin/millstream --version"),
    "Rust": ("cargo init --quiet --vcs none --name outside", "cargo tree --quiet --depth 1 --prefix none"),
    "C, C++": ("# pkg-config", f"pkg-config --modversion libmillstream-{VERSION}-x86_64-unknown-linux-gnu/lib/pkgconfig/millstream.pc"),
    "Python": ("python3 -m venv environment", "python -c 'import importlib.metadata, millstream; print(importlib.metadata.version(\"millstream\"))'"),
    "Node": ("# npm", "node -e 'require(\"millstream\"); console.log(require(\"millstream/package.json\").version)'"),
    "Julia": (f"# {julia.program()}", "julia -e 'using Millstream; println(Millstream.library_version())'"),
}


def lines() -> dict[str, str]:
    """The line for each row of the table in the section "Install"."""
    section = (ROOT / "README.md").read_text().split("## Install\n")[1].split("\n## ")[0]
    return dict(re.findall(r"^\| ([^|`]+) \| `([^`|]+)` \|", section, re.MULTILINE))


def check_rows() -> None:
    """Checks that every row of the table is run, and that every line is for this version."""
    if set(lines()) != set(STEPS):
        raise Problem(f"README.md has install lines for {sorted(lines())}; expected {sorted(STEPS)}")
    for line in lines().values():
        if "dist/" in line and VERSION not in line:
            raise Problem(f"README.md has an install line for another version than {VERSION}: {line}")


def check(quick: bool) -> None:
    check_rows()
    for name, line in lines().items():
        before, after = STEPS[name]
        if before.startswith("# ") and not common.has(before[2:]):
            continue
        with common.empty_place() as place:
            (place / "millstream").symlink_to(ROOT)
            project = place / "project"
            project.mkdir()
            environment = environment_for(place, project)
            for command in [before, line]:
                run(command, project, environment)
            printed = run(after, project, environment)
            if VERSION not in printed:
                raise Problem(f"after {line!r}, {after!r} printed {printed!r}; expected version {VERSION}")
        say(f"README: {line}")


def environment_for(place: Path, project: Path) -> dict[str, str]:
    """An environment with its own home and packages, and a `sudo` that installs into a directory of the project."""
    root = project / "root"
    (root / "var/lib/dpkg/info").mkdir(parents=True)
    (root / "var/lib/dpkg/updates").mkdir()
    (root / "var/lib/dpkg/status").touch()
    sudo = place / "bin" / "sudo"
    sudo.parent.mkdir()
    # Its arguments are `dpkg -i FILE`.
    sudo.write_text(f"#!/bin/sh\nshift\nexec {' '.join(common.as_root())} dpkg --root={root} --log=/dev/null \"$@\"\n")
    sudo.chmod(0o755)
    toolchain = common.run("rustc", "--print", "sysroot").strip()
    found = [str(Path(program).parent) for name in ("node", julia.program()) if (program := shutil.which(name))]
    julia.new_depot(place / "julia")
    return common.bare_environment(place) | {
        "PATH": os.pathsep.join([str(sudo.parent), str(project / "environment/bin"), f"{toolchain}/bin",
                                 *found, os.environ["PATH"]]),
        "CARGO_HOME": str(common.CARGO_HOME), "CARGO_TARGET_DIR": str(TARGET / "package" / "readme"),
        "JULIA_PROJECT": str(project), "JULIA_DEPOT_PATH": str(place / "julia"), "PIP_NO_INDEX": "1",
    }


def run(line: str, project: Path, environment: dict[str, str]) -> str:
    result = subprocess.run(["sh", "-c", line], cwd=project, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if result.returncode != 0:
        raise Problem(f"{line!r} failed with status {result.returncode}:\n{result.stdout}{result.stderr}")
    return result.stdout
