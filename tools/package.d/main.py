"""Builds or checks the packages: the command line of tools/package, which describes it."""

import argparse
import importlib
import sys

import common

NAMES = ["cli", "deb", "rust", "python", "node", "c", "julia"]


def main() -> None:
    parser = argparse.ArgumentParser(prog="tools/package")
    parser.add_argument("--quick", action="store_true", help="for this machine only, without optimisation")
    parser.add_argument("--check", action="store_true", help="check the packages in dist/ instead of building them")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(NAMES)}; all by default")
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in NAMES:
            parser.error(f"unknown package {name!r}; choose from {', '.join(NAMES)}")
    names = arguments.names or NAMES
    kinds = {name: importlib.import_module(f"kinds.{name}") for name in names}
    try:
        common.check_versions()
    except common.Problem as problem:
        sys.exit(f"package: {problem}")
    for name, kind in kinds.items():
        try:
            if arguments.check:
                kind.check(quick=arguments.quick)
            else:
                kind.build(quick=arguments.quick)
        except common.Problem as problem:
            sys.exit(f"package: {name}: {problem}")
    if not arguments.check:
        common.write_sums()


if __name__ == "__main__":
    main()
