"""Debian's package of the command line, with the same program as the .tar.gz."""

import gzip
import hashlib
import shutil
from pathlib import Path

import common
from common import DIST, MUSL_TARGETS, ROOT, VERSION, Problem
from kinds import cli

ARCHITECTURES = {"x86_64-unknown-linux-musl": "amd64", "aarch64-unknown-linux-musl": "arm64"}
COMPLETIONS = {"bash": "usr/share/bash-completion/completions/millstream",
               "zsh": "usr/share/zsh/vendor-completions/_millstream",
               "fish": "usr/share/fish/vendor_completions.d/millstream.fish"}

LINTIAN = ["statically-linked-binary", "embedded-library", "copyright-file-contains-full-apache-2-license",
           "copyright-not-using-common-license-for-lgpl"]


def file_name(target: str) -> str:
    return f"millstream_{VERSION}-1_{ARCHITECTURES[target]}.deb"


def put(file: Path, content: str | bytes, mode: int = 0o644) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    file.chmod(mode)


def compressed(text: str) -> bytes:
    """What `gzip -9n` writes."""
    return gzip.compress(text.encode(), 9, mtime=0)


def build(quick: bool) -> None:
    if not common.has("dpkg-deb"):
        return
    for target in MUSL_TARGETS:
        with common.empty_place() as place:
            root = place / "root"
            put(root / "usr/bin/millstream", cli.program(target).read_bytes(), 0o755)
            for page, text in cli.pages().items():
                put(root / "usr/share/man/man1" / f"{page}.gz", compressed(text))
            for shell, script in cli.completions().items():
                put(root / COMPLETIONS[shell], script)
            doc = root / "usr/share/doc/millstream"
            put(doc / "copyright", common.licences("millstream-cli", "full"))
            put(doc / "changelog.gz", compressed((ROOT / "CHANGELOG.md").read_text()))
            put(doc / "changelog.Debian.gz", compressed(changelog()))
            for folder in [root, *root.rglob("*")]:
                if folder.is_dir():
                    folder.chmod(0o755)
            size = sum(file.stat().st_size for file in root.rglob("*") if file.is_file()) // 1024
            files = sorted(file for file in root.rglob("*") if file.is_file())
            put(root / "DEBIAN/md5sums", "".join(f"{hashlib.md5(file.read_bytes()).hexdigest()}  {file.relative_to(root)}\n" for file in files))
            put(root / "DEBIAN/control", control(ARCHITECTURES[target], size))
            (root / "DEBIAN").chmod(0o755)
            DIST.mkdir(exist_ok=True)
            common.run("dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, DIST / file_name(target),
                       env=common.build_environment(target))
        common.write_sbom(DIST / f"{file_name(target)}.cdx.json", "millstream-cli", "full")


def control(architecture: str, size: int) -> str:
    return f"""\
Package: millstream
Version: {VERSION}-1
Architecture: {architecture}
Maintainer: The Millstream contributors <millstream@users.noreply.github.com>
Installed-Size: {size}
Section: utils
Priority: optional
Homepage: https://github.com/millstream/millstream
Description: move streams of records, and know that every record arrived
 The command reads lines, numbers and BSON documents from files, commands and
 sockets, and writes them to others. If a command fails halfway or a file is
 damaged, everything before is delivered, and then an error is reported, never
 a shorter result that looks complete.
"""


def changelog() -> str:
    day = common.run("date", "--utc", "--rfc-email", f"--date=@{common.commit_time()}").strip()
    return f"""\
millstream ({VERSION}-1) unstable; urgency=medium

  * See changelog.gz.

 -- The Millstream contributors <millstream@users.noreply.github.com>  {day}
"""


def expected() -> set[str]:
    manuals = {f"usr/share/man/man1/millstream{page}.1.gz" for page in ["", *(f"-{page}" for page in cli.PAGES)]}
    doc = {f"usr/share/doc/millstream/{file}" for file in ["copyright", "changelog.gz", "changelog.Debian.gz"]}
    return manuals | doc | set(COMPLETIONS.values()) | {"usr/bin/millstream"}


def check(quick: bool) -> None:
    if not common.has("dpkg", "dpkg-deb"):
        return
    for target in MUSL_TARGETS:
        file = DIST / file_name(target)
        with common.empty_root(target) as root:
            database = root / "var/lib/dpkg"
            (database / "info").mkdir(parents=True)
            (database / "updates").mkdir()
            (database / "status").write_text("")
            dpkg = [*common.as_root(), "dpkg", f"--root={root}", "--force-architecture", "--log=/dev/null"]
            common.run(*dpkg, "--install", file)
            common.check_files(root, expected() | common.root_files(target), ignored="var")
            fields = common.run("dpkg-deb", "--field", file)
            if f"Version: {VERSION}-1\n" not in fields or f"Architecture: {ARCHITECTURES[target]}\n" not in fields:
                raise Problem(f"{file.name} has another version or architecture:\n{fields}")
            cli.check_pages(root / "usr/share/man/man1")
            for script in COMPLETIONS.values():
                cli.check_completions((root / script).parent)
            cli.check_program(root, target)
            common.run(*dpkg, "--purge", "millstream")
            common.check_files(root, common.root_files(target) | cli.USED, ignored="var")
        if shutil.which("lintian"):
            # The program is static on purpose, and its licence texts are complete wherever it is copied to.
            common.run("lintian", "--fail-on", "error", "--suppress-tags", ",".join(LINTIAN), file)
        common.say(f"{file.name}: works in an empty root")
