"""What all kinds of packages share: where things are, how the Rust parts are built, archives, and checks of their content.

Each module in `kinds/` builds and checks one kind of package:

    build(quick)    writes the package's files to DIST
    check(quick)    installs each into an empty place, uses it, and removes it; raises Problem
"""

import datetime
import functools
import gzip
import hashlib
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve()
TOOLS = TARGET / "package" / "tools" / "bin"
BUILD = TARGET / "package" / "build"
CARGO_HOME = pathlib.Path(os.environ.get("CARGO_HOME") or pathlib.Path.home() / ".cargo")
HOST = f"{platform.machine()}-unknown-linux-gnu"

# The version of all packages, from the one place that states it.
VERSION = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]

# The oldest C library that released binaries for glibc support.
GLIBC = "2.28"

# The platforms of released binaries.
GLIBC_TARGETS = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"]
MUSL_TARGETS = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"]


# Where links to files of the repository lead that a package does not contain.
REPOSITORY = f"https://github.com/millstream/millstream/blob/v{VERSION}"


class Problem(Exception):
    """Why a package cannot be built, or what is wrong with it."""


def say(message: str) -> None:
    print(f"package: {message}", file=sys.stderr, flush=True)


def skip(reason: str) -> None:
    """Reports what is not done because a tool is missing: a failure in continuous integration."""
    if os.environ.get("CI") == "true":
        raise Problem(f"{reason}: see tools/setup package")
    say(f"SKIPPED, {reason}: see tools/setup package")


def has(*programs: str) -> bool:
    """Whether all programs are installed; reports the first one that is not."""
    for program in programs:
        if not shutil.which(program):
            skip(f"{program} is missing")
            return False
    return True


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


def build_environment(target: str = HOST, *, static: bool = False) -> dict[str, str]:
    """The environment for release builds: nothing in the output depends on the time or on the directories.

    Binaries for musl are libraries that its loader loads, or `static`: programs that need no other file.
    """
    replaced = {pathlib.Path.home(): "home", CARGO_HOME: "cargo", run("rustc", "--print", "sysroot").strip(): "rust",
                ROOT: "millstream", TARGET: "target"}
    flags = [f"--remap-path-prefix={old}=/{new}" for old, new in replaced.items()]
    if static:
        # Without relocations, which the program would have to process at each start.
        flags += ["-C", "target-feature=+crt-static", "-C", "relocation-model=static"]
    elif target.endswith("musl"):
        flags += ["-C", "target-feature=-crt-static"]
    return os.environ | {
        "SOURCE_DATE_EPOCH": str(commit_time()),
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(flags),
        "CARGO_INCREMENTAL": "0",
        # Released binaries contain neither debug information nor the names of functions.
        "CARGO_PROFILE_RELEASE_DEBUG": "false",
        "CARGO_PROFILE_RELEASE_STRIP": "symbols",
        "CFLAGS": " ".join(f"-ffile-prefix-map={old}=/{new}" for old, new in replaced.items()),
        "PATH": f"{TOOLS}:{os.environ['PATH']}",
    }


def needs_target(target: str) -> None:
    """Installs Rust's standard library for a target if it is missing."""
    if not pathlib.Path(run("rustc", "--print", "target-libdir", "--target", target).strip()).is_dir():
        say(f"adding the Rust target {target}")
        run("rustup", "target", "add", target)


def cargo(package: str, target: str, *options: str, quick: bool = False, static: bool = False) -> pathlib.Path:
    """Builds a crate for a target and returns the directory that contains the result.

    Release builds use zig as the C compiler and linker, so that one machine builds for every target, and binaries for
    glibc run with the oldest supported one. Quick builds are those of the tests.
    """
    if quick:
        run("cargo", "build", "--quiet", "--package", package, *options, cwd=ROOT)
        return TARGET / "debug"
    needs_target(target)
    say(f"building {package} for {target}")
    suffix = f".{GLIBC}" if target.endswith("gnu") else ""
    run("cargo", "zigbuild", "--quiet", "--locked", "--release", "--package", package, "--target", target + suffix,
        "--target-dir", BUILD, *options, cwd=ROOT, env=build_environment(target, static=static))
    return BUILD / target / "release"


def archive(file: pathlib.Path, folder: pathlib.Path, level: int = 9) -> None:
    """Writes a folder to a .tar.gz in which nothing depends on the machine or the time."""
    time = commit_time()

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = time, 0, 0, "", ""
        entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
        return entry

    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as raw, gzip.GzipFile("", "wb", level, raw, time) as compressed:
        with tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for path in [folder, *sorted(folder.rglob("*"))]:
                tar.add(path, path.relative_to(folder.parent), recursive=False, filter=plain)


def unpack(file: pathlib.Path, place: pathlib.Path) -> None:
    if not file.is_file():
        raise Problem(f"{file} is missing: build it first")
    with tarfile.open(file) as tar:
        tar.extractall(place, filter="data")


def check_files(folder: pathlib.Path, expected: set[str], ignored: str | None = None) -> None:
    """Checks that a folder contains exactly these files, except for one folder in it."""
    found = {str(file.relative_to(folder)) for file in folder.rglob("*") if not file.is_dir() or file.is_symlink()}
    found = {file for file in found if ignored is None or not file.startswith(f"{ignored}/")}
    if missing := expected - found:
        raise Problem(f"{folder.name} lacks {', '.join(sorted(missing))}")
    if unknown := found - expected:
        raise Problem(f"{folder.name} contains files that it should not: {', '.join(sorted(unknown))}")


# A link of Markdown to a file: its path, and what follows the path. Blocks of code contain none.
LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^)#]+)(#[^)]*)?(?=\))")
CODE = re.compile(r"(^```.*?^```|^    .*?$)", re.MULTILINE | re.DOTALL)


def replace_links(text: str, link: Callable[[re.Match], str]) -> str:
    """The text of a page in which each link to a file is replaced with what `link` returns for it."""
    return "".join(part if CODE.match(part) else LINK.sub(link, part) for part in CODE.split(text))


def put_page(source: pathlib.Path, file: pathlib.Path, moved: dict[str, str] | None = None) -> None:
    """Copies a page of the repository into a package, with the links that lead out of it as links to this version.

    `moved` names files that the package contains at another place: the path in the repository, and that in the package.
    """
    def link(found: re.Match) -> str:
        target = (source.parent / found[1]).resolve().relative_to(ROOT)
        if inside := (moved or {}).get(str(target)):
            return inside + (found[2] or "")
        if (file.parent / found[1]).exists():
            return found[0]
        return f"{REPOSITORY}/{target}{found[2] or ''}"

    file.write_text(replace_links(source.read_text(), link))


def check_links(folder: pathlib.Path) -> None:
    """Checks that each link of a package's pages to a file leads to a file of the package."""
    for page in sorted(folder.rglob("*.md")):
        def check(found: re.Match) -> str:
            target = (page.parent / found[1]).resolve()
            if not target.exists() or not target.is_relative_to(folder.resolve()):
                raise Problem(f"{page.relative_to(folder)} has a link to {found[1]}, which the package does not contain")
            return found[0]

        replace_links(page.read_text(), check)


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


# Where the C library is, and its loader as programs name it.
LIBC_FILES = ["libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0"]
LIBC = {
    "x86_64-unknown-linux-gnu": ("/lib/x86_64-linux-gnu", "lib64/ld-linux-x86-64.so.2"),
    "aarch64-unknown-linux-gnu": ("/usr/aarch64-linux-gnu/lib", "lib/ld-linux-aarch64.so.1"),
}


def root_files(target: str) -> set[str]:
    """The files of an empty root: a shell, an empty file as /dev/null, the C library if programs for the target need one, an emulator."""
    files = {"bin/sh", "dev/null"}
    if target in LIBC:
        files |= {LIBC[target][1], *(f"lib/{name}" for name in LIBC_FILES)}
    if not target.startswith(platform.machine()):
        files.add("bin/emulator")
    return files


@contextmanager
def empty_root(target: str) -> Iterator[pathlib.Path]:
    """The root directory of a system that contains nothing but `root_files`. @raises Problem if a tool is missing"""
    # Creating a device needs the rights of an administrator; an empty file can be read as well.
    sources = {"bin/sh": shutil.which("busybox"), "bin/emulator": shutil.which(f"qemu-{target.split('-')[0]}-static")}
    if target in LIBC:
        library, loader = LIBC[target]
        sources |= {loader: f"{library}/{pathlib.Path(loader).name}"}
        sources |= {f"lib/{name}": f"{library}/{name}" for name in LIBC_FILES}
    with empty_place() as root:
        for name in root_files(target):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            if name == "dev/null":
                (root / name).touch()
            elif (source := sources[name]) and os.path.exists(source):
                shutil.copy(source, root / name)
            else:
                raise Problem(f"{sources[name] or f'the program for {name}'} is missing: see tools/setup package")
        yield root


@functools.cache
def as_root() -> list[str]:
    """The words before a command that has to be root, or to believe it."""
    for words in [], ["unshare", "--map-root-user"], ["sudo", "-n"]:
        if subprocess.run([*words, "unshare", "--root=/", "true"], stderr=subprocess.DEVNULL).returncode == 0:
            return words
    raise Problem("this user can use neither chroot nor user namespaces nor sudo without a password")


def run_in(root: pathlib.Path, target: str, *command: str, status: int = 0) -> tuple[str, str]:
    """Runs a program in an empty root, and returns its output and standard error. @raises Problem for another status"""
    emulator = ["/bin/emulator"] if "bin/emulator" in root_files(target) else []
    words = [*as_root(), "env", "-i", "PATH=/bin", "HOME=/", "LD_LIBRARY_PATH=/lib",
             "/usr/bin/unshare", f"--root={root}", "--wd=/", *emulator, *command]
    result = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if result.returncode != status:
        raise Problem(f"in an empty root, {' '.join(command)} exited with status {result.returncode}, expected {status}:\n"
                      f"{result.stdout[:2000]}{result.stderr[:2000]}")
    return result.stdout, result.stderr


def check_binary(file: pathlib.Path, target: str) -> None:
    """Checks that a program or library is for a target, needs no newer C library than it says, and names no paths."""
    check_no_paths(file)
    machine = {62: "x86_64", 183: "aarch64"}.get(int.from_bytes(file.read_bytes()[18:20], "little"), "another processor")
    if machine != target.split("-")[0]:
        raise Problem(f"{file.name} is for {machine}; expected {target}")
    versions = {tuple(map(int, version.split("."))) for version in
                re.findall(r"Name: GLIBC_(\d+\.\d+)", run("readelf", "--wide", "--version-info", file))}
    if target.endswith("musl") and versions:
        raise Problem(f"{file.name} needs glibc; expected {target}")
    if max(versions, default=(0, 0)) > tuple(map(int, GLIBC.split("."))):
        raise Problem(f"{file.name} needs glibc {'.'.join(map(str, max(versions)))}; expected at most {GLIBC}")


def check_no_paths(file: pathlib.Path) -> None:
    """Checks that a binary names no directory of the machine that built it."""
    content = file.read_bytes()
    for path in {ROOT, pathlib.Path.home(), CARGO_HOME, TARGET}:
        at = content.find(os.fsencode(path) + b"/")
        if at >= 0:
            found = content[at : at + 120].split(b"\0")[0].decode(errors="replace")
            raise Problem(f"{file.name} contains a path of the machine that built it: {found!r} at byte {at}")


def crates(package: str, *features: str) -> list[dict]:
    """The crates that a crate's binary contains on any platform of released binaries, itself included.

    Each is described as by `cargo metadata`; `"uses"` names the crates that it uses, `"sha256"` is its registry's sum.
    """
    targets = [word for target in GLIBC_TARGETS + MUSL_TARGETS for word in ("--target", target)]
    lines = run("cargo", "tree", "--locked", "--package", package, "--features", ",".join(features), *targets,
                "--edges", "normal,no-proc-macro", "--prefix", "none", "--no-dedupe", "--format", "{p}", cwd=ROOT)
    contained = {tuple(line.split()[:2]) for line in lines.splitlines() if line}
    metadata = json.loads(run("cargo", "metadata", "--locked", "--format-version", "1", cwd=ROOT))
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    sums = {(entry["name"], entry["version"]): entry.get("checksum") for entry in lock["package"]}
    found = {entry["id"]: entry for entry in metadata["packages"] if (entry["name"], f"v{entry['version']}") in contained}
    for node in metadata["resolve"]["nodes"]:
        if entry := found.get(node["id"]):
            normal = [use["pkg"] for use in node["deps"] if any(kind["kind"] is None for kind in use["dep_kinds"])]
            entry["uses"] = sorted(use for use in normal if use in found)
            entry["sha256"] = sums[entry["name"], entry["version"]]
    # First the package itself.
    return sorted(found.values(), key=lambda entry: (entry["name"] != package, entry["name"], entry["version"]))


# Licence texts of C code that a crate compiles, which are not in the crate's main directory.
INNER_LICENCES = {"liblzma-sys": ["xz/COPYING", "xz/COPYING.0BSD"], "libmimalloc-sys": ["c_src/mimalloc/LICENSE"],
                  "regex-syntax": ["src/unicode_tables/LICENSE-UNICODE"], "zstd-sys": ["zstd/LICENSE"]}


def licence_texts(crate: dict) -> list[str]:
    """The licence texts in a crate's folder. @raises Problem if it has none and its licence needs none of them"""
    folder = pathlib.Path(crate["manifest_path"]).parent
    if folder.is_relative_to(ROOT):
        folder = ROOT
    name = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)
    files = sorted(file for file in folder.iterdir() if name.match(file.name) and file.is_file())
    if crate["license_file"]:
        files.append(folder / crate["license_file"])
    files += [folder / inner for inner in INNER_LICENCES.get(crate["name"], [])]
    texts = [file.read_text(errors="replace").strip() for file in files]
    if crate["links"] and crate["name"].endswith("-sys") and any(folder.rglob("*.c")) and crate["name"] not in INNER_LICENCES:
        raise Problem(f"{crate['name']} compiles C code; name its licence in INNER_LICENCES")
    if not texts and crate["license"] in ("MIT", "Apache-2.0"):
        # The crate states its licence, but does not contain the text.
        text = (ROOT / f"LICENSE-{crate['license'].split('-')[0].upper()}").read_text().strip()
        texts = [re.sub(r"Copyright \(c\).*", f"Copyright (c) {', '.join(crate['authors'])}", text)]
    if not texts:
        raise Problem(f"{crate['name']} {crate['version']} ({crate['license']}) contains no licence text in {folder}")
    return list(dict.fromkeys(texts))


def licences(package: str, *features: str) -> str:
    """The licence texts of everything that a crate's binary contains; each text once, with the crates it is for."""
    owners: dict[str, list[str]] = {}
    texts: dict[str, str] = {}

    def add(text: str, owner: str) -> None:
        # The same text is often wrapped differently.
        words = " ".join(text.split())
        texts.setdefault(words, text)
        owners.setdefault(words, []).append(owner)

    for crate in crates(package, *features):
        for text in licence_texts(crate):
            add(text, f"{crate['name']} {crate['version']} ({crate['license']})")
    # What is in every binary, but is no crate.
    doc = pathlib.Path(run("rustc", "--print", "sysroot").strip()) / "share" / "doc" / "rust"
    version = run("rustc", "--version").split()[1]
    for text in ["MIT", "Apache-2.0", "LLVM-exception", "NCSA", "Unicode-3.0"]:
        add((doc / "licenses" / f"{text}.txt").read_text().strip(),
            f"Rust's standard library {version}, https://github.com/rust-lang/rust")
    musl = next(TOOLS.parent.glob("lib/python3*/site-packages/ziglang/lib/libc/musl/COPYRIGHT"))
    add(musl.read_text().strip(), "musl, if this is a static program")
    rule = "=" * 80
    parts = [f"{rule}\n{chr(10).join(names)}\n{rule}\n\n{texts[words]}\n" for words, names in owners.items()]
    return f"The licences of {package} {VERSION} and of everything that it contains\n\n" + "\n".join(parts)


def put_licences(folder: pathlib.Path, package: str, *features: str) -> None:
    """Writes Millstream's own licences and those of everything that a crate's binary contains."""
    for name in ["LICENSE-MIT", "LICENSE-APACHE"]:
        shutil.copy(ROOT / name, folder / name)
    (folder / "THIRD-PARTY-LICENSES.txt").write_text(licences(package, *features))


def write_sbom(file: pathlib.Path, package: str, *features: str) -> None:
    """Writes a CycloneDX SBOM of all crates that a crate's binary contains."""
    entries = crates(package, *features)
    components = {}
    for entry in entries:
        url = PackageURL("cargo", name=entry["name"], version=entry["version"])
        components[entry["id"]] = Component(
            name=entry["name"], version=entry["version"], purl=url, bom_ref=str(url), description=entry["description"],
            type=ComponentType.LIBRARY if entry["name"] != "millstream-cli" else ComponentType.APPLICATION,
            licenses=[LicenseExpression(entry["license"].replace("/", " OR "))],
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=entry["sha256"])] if entry["sha256"] else None)
    main = components[entries[0]["id"]]
    time = datetime.datetime.fromtimestamp(commit_time(), datetime.UTC)
    # The same package of the same commit has the same number.
    number = uuid.uuid5(uuid.NAMESPACE_URL, f"{main.purl}?{','.join(features)}#{run('git', 'rev-parse', 'HEAD', cwd=ROOT)}")
    bom = Bom(serial_number=number, metadata=BomMetaData(component=main, timestamp=time),
              components=[component for component in components.values() if component is not main])
    for entry in entries:
        bom.register_dependency(components[entry["id"]], [components[use] for use in entry["uses"]])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(JsonV1Dot6(bom).output_as_string(indent=2) + "\n")


def check_versions() -> None:
    """Checks that every file that states the packages' version agrees with Cargo.toml."""
    found = {}
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text())
    for name, use in manifest["workspace"]["dependencies"].items():
        if "path" in use:
            found[f"Cargo.toml, the dependency {name}"] = use["version"]
    for file in ROOT.glob("bindings/*/package.json"):
        content = json.loads(file.read_text())
        found[file.relative_to(ROOT)] = content["version"]
        for name, version in content.get("optionalDependencies", {}).items():
            found[f"{file.relative_to(ROOT)}, the dependency {name}"] = version
    found["bindings/julia/Project.toml"] = tomllib.loads((ROOT / "bindings/julia/Project.toml").read_text())["version"]
    project = tomllib.loads((ROOT / "bindings/python/pyproject.toml").read_text())["project"]
    if "version" in project:
        found["bindings/python/pyproject.toml"] = project["version"]
    for place, version in found.items():
        if version != VERSION:
            raise Problem(f"{place} has version {version!r}; expected {VERSION!r}, the version in Cargo.toml")


def packages() -> list[pathlib.Path]:
    """The files in DIST, except for their sums."""
    return sorted(file for file in DIST.rglob("*") if file.is_file() and file.name != "SHA256SUMS")


def sums() -> str:
    """The SHA-256 sums of all packages, in the format of sha256sum."""
    return "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.relative_to(DIST)}\n" for file in packages())


def check_sums() -> None:
    """Checks that the sums are those of the packages, and that every SBOM names the version and has dependencies."""
    file = DIST / "SHA256SUMS"
    if not file.exists() or file.read_text() != sums():
        raise Problem(f"{file} does not have the sums of the files beside it: build the packages again")
    for sbom in DIST.rglob("*.cdx.json"):
        content = json.loads(sbom.read_text())
        if content["metadata"]["component"]["version"] != VERSION or not content["components"]:
            raise Problem(f"{sbom.name} is not the SBOM of version {VERSION}")
