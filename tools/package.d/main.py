"""Builds or checks the packages: the command line of tools/package, which describes it."""

import argparse
import importlib
import os
import sys

import common
from common import ROOT, Problem, run, say
from kinds import readme

NAMES = ["cli", "deb", "rust", "python", "node", "c", "julia"]
# Those that have a quick form, which continuous integration builds and checks.
QUICK = ["rust", "python", "node", "c", "julia"]


def main() -> None:
    parser = argparse.ArgumentParser(prog="tools/package")
    parser.add_argument("--quick", action="store_true", help="for this machine only, without optimisation")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--check", action="store_true", help="check the packages in dist/ instead of building them")
    action.add_argument("--reproducible", action="store_true", help="build again in another directory, and compare")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(NAMES)}; all by default")
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in NAMES:
            parser.error(f"unknown package {name!r}; choose from {', '.join(NAMES)}")
        if arguments.quick and name not in QUICK:
            parser.error(f"{name} has no quick form; choose from {', '.join(QUICK)}")
    names = arguments.names or (QUICK if arguments.quick else NAMES)
    if arguments.check and not arguments.quick and not arguments.names:
        # Last, the lines of the README, which need all packages.
        names = [*names, "readme"]
    if arguments.quick:
        # Apart from those for release, which have the same names. Some modules in kinds/ are imported later.
        common.DIST = common.TARGET / "package" / "quick"
    try:
        common.check_versions()
        readme.check_rows()
        if arguments.check:
            common.check_sums()
        if arguments.reproducible:
            reproducible(names)
            return
    except Problem as problem:
        sys.exit(f"package: {problem}")
    for name in names:
        try:
            kind = importlib.import_module(f"kinds.{name}")
            if arguments.check:
                kind.check(quick=arguments.quick)
            else:
                kind.build(quick=arguments.quick)
        except Problem as problem:
            sys.exit(f"package: {name}: {problem}")
    if not arguments.check:
        (common.DIST / "SHA256SUMS").write_text(common.sums())


def reproducible(names: list[str]) -> None:
    """Builds the packages of this commit once more in a clone elsewhere. @raises Problem if a file in DIST differs"""
    if run("git", "status", "--porcelain", cwd=ROOT):
        raise Problem("there are changes that are not committed, which a clone would not have")
    before = {file.relative_to(common.DIST): file.read_bytes() for file in common.packages()}
    with common.empty_place() as place:
        clone = place / "another" / "directory"
        run("git", "clone", "--quiet", ROOT, clone)
        environment = {name: value for name, value in os.environ.items() if name != "CARGO_TARGET_DIR"}
        run(clone / "tools" / "package", *names, cwd=clone, env=environment)
        files = sorted(file for file in (clone / "dist").rglob("*") if file.is_file() and file.name != "SHA256SUMS")
        again = {file.relative_to(clone / "dist"): file.read_bytes() for file in files}
    missing = [str(name) for name in again if name not in before]
    if missing:
        raise Problem(f"build the packages first; dist/ lacks {', '.join(missing)}")
    different = [str(name) for name in again if again[name] != before[name]]
    if different:
        raise Problem(f"built in another directory, these differ: {', '.join(different)}")
    say(f"built in another directory, all {len(again)} files are the same")


if __name__ == "__main__":
    main()
