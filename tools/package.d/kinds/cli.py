"""The command line: one static program for each processor, with manual pages and completions, in a .tar.gz."""

import functools
import gzip
import platform
import shutil
from pathlib import Path

import common
from common import DIST, MUSL_TARGETS, ROOT, VERSION, Problem

PAGES = ["run", "bson", "convert", "index", "split", "commit", "uploads", "bench", "completions", "man"]
COMPLETIONS = {"bash": "millstream.bash", "zsh": "_millstream", "fish": "millstream.fish"}
LICENCES = {"LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY-LICENSES.txt"}

# A document {"total": 7}, and 1000 lines.
DOCUMENT = b"\x10\0\0\0\x10total\0\7\0\0\0\0"
LINES = b"".join(b"%d\n" % number for number in range(1000))

# What the checks leave behind.
USED = {"lines.txt.gz", "one.bson", "out.txt", "one.parquet"}


@functools.cache
def program(target: str) -> Path:
    return common.cargo("millstream-cli", target, "--features", "full", static=True) / "millstream"


def pages() -> dict[str, str]:
    """The manual pages by file name, which the program for this machine prints."""
    native = program(f"{platform.machine()}-unknown-linux-musl")
    return {f"{'-'.join(['millstream', *page])}.1": common.run(native, "man", *page) for page in [[], *([page] for page in PAGES)]}


def completions() -> dict[str, str]:
    """The scripts that complete the command's arguments, by shell."""
    native = program(f"{platform.machine()}-unknown-linux-musl")
    return {shell: common.run(native, "completions", shell) for shell in COMPLETIONS}


def build(quick: bool) -> None:
    for target in MUSL_TARGETS:
        name = f"millstream-{VERSION}-{target}"
        with common.empty_place() as place:
            folder = place / name
            folder.mkdir()
            shutil.copy(program(target), folder / "millstream")
            (folder / "man" / "man1").mkdir(parents=True)
            for page, text in pages().items():
                (folder / "man" / "man1" / page).write_text(text)
            (folder / "completions").mkdir()
            for shell, script in completions().items():
                (folder / "completions" / COMPLETIONS[shell]).write_text(script)
            common.put_page(ROOT / "docs" / "cli.md", folder / "README.md")
            common.put_licences(folder, "millstream-cli", "full")
            common.archive(DIST / f"{name}.tar.gz", folder)
        common.write_sbom(DIST / f"{name}.cdx.json", "millstream-cli", "full")


def expected() -> set[str]:
    """The files that an unpacked archive contains."""
    manuals = {"man/man1/millstream.1"} | {f"man/man1/millstream-{page}.1" for page in PAGES}
    return manuals | LICENCES | {"millstream", "README.md"} | {f"completions/{file}" for file in COMPLETIONS.values()}


def check(quick: bool) -> None:
    for target in MUSL_TARGETS:
        name = f"millstream-{VERSION}-{target}"
        with common.empty_root(target) as root:
            # The archive is unpacked, its program is copied: the whole installation.
            common.unpack(DIST / f"{name}.tar.gz", root)
            folder = root / name
            common.check_files(folder, expected())
            common.check_links(folder)
            check_pages(folder / "man" / "man1")
            check_completions(folder / "completions")
            (root / "usr" / "bin").mkdir(parents=True)
            shutil.copy(folder / "millstream", root / "usr" / "bin" / "millstream")
            check_program(root, target)
            shutil.rmtree(folder)
            (root / "usr" / "bin" / "millstream").unlink()
            common.check_files(root, common.root_files(target) | USED)
        common.say(f"{name}: works in an empty root")


def check_pages(folder: Path) -> None:
    for page in folder.iterdir():
        text = gzip.open(page, "rt").read() if page.suffix == ".gz" else page.read_text()
        if ".TH millstream" not in text or VERSION not in text:
            raise Problem(f"{page.name} is not a manual page of version {VERSION}")


def check_completions(folder: Path) -> None:
    for script in folder.rglob("*millstream*"):
        if script.is_file() and "flush-policy" not in script.read_text():
            raise Problem(f"{script.name} does not complete the option --flush-policy")


def check_program(root: Path, target: str) -> None:
    """Uses the installed program in a root that contains nothing else but a shell."""
    common.check_binary(root / "usr" / "bin" / "millstream", target)
    (root / "lines.txt.gz").write_bytes(gzip.compress(LINES))
    (root / "one.bson").write_bytes(DOCUMENT)

    def millstream(*arguments: str, status: int = 0) -> tuple[str, str]:
        return common.run_in(root, target, "/usr/bin/millstream", *arguments, status=status)

    def equal(found: object, wanted: object, what: str) -> None:
        if found != wanted:
            raise Problem(f"{what}: found {found!r}, expected {wanted!r}")

    equal(millstream("--version")[0], f"millstream {VERSION}\n", "--version")
    printed, error = millstream("run", "--", "sh", "-c", "echo one; exit 3", status=1)
    equal(printed, "one\n", "the output of a command that fails")
    if "3" not in error:
        raise Problem(f"the error of a command that exits with status 3 does not say so: {error!r}")
    millstream("run", "-o", "/out.txt", "--", "sh", "-c", "echo one; exit 3", status=1)
    equal((root / "out.txt").exists(), False, "out.txt after a command that fails")
    millstream("run", "-o", "/out.txt", "--", "sh", "-c", "echo whole")
    equal((root / "out.txt").read_text(), "whole\n", "out.txt")
    equal(millstream("run", "/lines.txt.gz")[0], LINES.decode(), "lines.txt.gz")
    equal(millstream("bson", "cat", "/one.bson")[0], '{"total":7}\n', "one.bson")
    millstream("bson", "convert", "/one.bson", "--to", "parquet", "-o", "/one.parquet")
    equal((root / "one.parquet").read_bytes()[:4], b"PAR1", "one.parquet")
