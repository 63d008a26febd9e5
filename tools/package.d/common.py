"""What all kinds of packages share: where things are, how the Rust parts are built, archives, and checks of their content.

Each module in `kinds/` builds and checks one kind of package:

    build(quick)    writes the package's files to DIST
    check(quick)    installs each into an empty place, uses it, and removes it; raises Problem
"""

import gzip
import hashlib
import os
import pathlib
import platform
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve()
TOOLS = TARGET / "package" / "tools" / "bin"
HOST = f"{platform.machine()}-unknown-linux-gnu"

# The version of all packages, from the one place that states it.
VERSION = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]

# The oldest C library that released binaries for glibc support.
GLIBC = "2.28"

# The platforms of released binaries.
GLIBC_TARGETS = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"]
MUSL_TARGETS = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"]


class Problem(Exception):
    """Why a package cannot be built, or what is wrong with it."""


def say(message: str) -> None:
    print(f"package: {message}", file=sys.stderr, flush=True)


def skip(reason: str) -> None:
    """Reports what is not done because a tool is missing: a failure in continuous integration."""
    if os.environ.get("CI") == "true":
        raise Problem(f"{reason}: see tools/setup package")
    say(f"SKIPPED, {reason}: see tools/setup package")


def run(*command: object, **options) -> str:
    """Runs a command and returns its standard output. @raises Problem with its output if it fails"""
    words = [str(word) for word in command]
    result = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, **options)
    if result.returncode != 0:
        raise Problem(f"{' '.join(words)} failed with status {result.returncode}:\n{result.stdout}{result.stderr}")
    return result.stdout


def commit_time() -> int:
    """The time of the commit, which archives use for all their files, in seconds since 1970."""
    return int(run("git", "log", "-1", "--format=%ct", cwd=ROOT))


def build_environment() -> dict[str, str]:
    """The environment for release builds: nothing in the output depends on the time or on the directories."""
    home = pathlib.Path(os.environ.get("CARGO_HOME") or pathlib.Path.home() / ".cargo")
    sysroot = run("rustc", "--print", "sysroot").strip()
    replaced = {ROOT: "millstream", home: "cargo", sysroot: "rust", TARGET: "target"}
    flags = [f"--remap-path-prefix={old}=/{new}" for old, new in replaced.items()]
    c_flags = " ".join(f"-ffile-prefix-map={old}=/{new}" for old, new in replaced.items())
    return os.environ | {
        "SOURCE_DATE_EPOCH": str(commit_time()),
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(flags),
        "CFLAGS": c_flags,
        "PATH": f"{TOOLS}:{os.environ['PATH']}",
    }


def cargo(package: str, target: str, *options: str, quick: bool = False) -> pathlib.Path:
    """Builds a crate for a target and returns the directory that contains the result.

    Release builds use zig as the C compiler and linker, so that one machine builds for every target, and binaries for
    glibc run with the oldest supported one. Quick builds are those of the tests.
    """
    if quick:
        run("cargo", "build", "--quiet", "--package", package, *options, cwd=ROOT)
        return TARGET / "debug"
    directory = TARGET / "package" / "build"
    suffix = f".{GLIBC}" if target.endswith("gnu") else ""
    run("cargo", "zigbuild", "--quiet", "--locked", "--release", "--package", package, "--target", target + suffix,
        "--target-dir", directory, *options, cwd=ROOT, env=build_environment())
    return directory / target / "release"


def archive(file: pathlib.Path, folder: pathlib.Path) -> None:
    """Writes a folder to a .tar.gz in which nothing depends on the machine or the time."""
    time = commit_time()

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = time, 0, 0, "", ""
        entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
        return entry

    file.parent.mkdir(exist_ok=True)
    with file.open("wb") as raw, gzip.GzipFile("", "wb", mtime=time, fileobj=raw) as compressed:
        with tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for path in [folder, *sorted(folder.rglob("*"))]:
                tar.add(path, path.relative_to(folder.parent), recursive=False, filter=plain)


@contextmanager
def empty_place() -> Iterator[pathlib.Path]:
    """A new directory, which is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="millstream-package-") as place:
        yield pathlib.Path(place)


def bare_environment(place: pathlib.Path) -> dict[str, str]:
    """An environment with its own home and caches, without the settings of this one."""
    (place / "home").mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy") or name.startswith("SSL_")}
    return kept | {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(place / "home"), "LANG": "C.UTF-8"}


def check_no_paths(file: pathlib.Path) -> None:
    """Checks that a binary names no directory of the machine that built it."""
    content = file.read_bytes()
    home = pathlib.Path(os.environ.get("CARGO_HOME") or pathlib.Path.home() / ".cargo")
    for path in {ROOT, pathlib.Path.home(), home, TARGET}:
        at = content.find(os.fsencode(path) + b"/")
        if at >= 0:
            found = content[at : at + 120].split(b"\0")[0].decode(errors="replace")
            raise Problem(f"{file.name} contains a path of the machine that built it: {found!r} at byte {at}")


def licences(package: str, *features: str) -> str:
    """The licence texts of all crates that a crate's binary contains."""
    raise NotImplementedError


def write_sbom(file: pathlib.Path, package: str, *features: str) -> None:
    """Writes a CycloneDX SBOM of all crates that a crate's binary contains."""
    raise NotImplementedError


def write_sums() -> None:
    """Writes the SHA-256 sums of all packages, in the format of sha256sum."""
    files = sorted(file for file in DIST.rglob("*") if file.is_file() and file.name != "SHA256SUMS")
    lines = (f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.relative_to(DIST)}\n" for file in files)
    (DIST / "SHA256SUMS").write_text("".join(lines))
