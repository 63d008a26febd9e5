"""Python: wheels for the stable ABI of Python 3.11 and later, and the sources as an sdist."""

import itertools
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import common
from common import BUILD, DIST, GLIBC, GLIBC_TARGETS, HOST, MUSL_TARGETS, ROOT, TARGET, TOOLS, VERSION, Problem

PACKAGE = ROOT / "bindings" / "python"
PROMISE = Path(__file__).resolve().parents[1] / "outside" / "python" / "promise.py"

# In every wheel and in the sdist, where maturin takes it from this file, which does not belong to the sources.
LICENCES = PACKAGE / "THIRD-PARTY-LICENSES.txt"

# In every wheel.
SBOM = BUILD / "millstream-python.cyclonedx.json"

# The oldest supported Python, whose stable ABI the wheels use.
OLDEST = (3, 11)


def platform_tag(target: str) -> str:
    """The platform that a wheel's name states: the oldest C library that it supports."""
    machine = target.split("-")[0]
    return f"musllinux_1_2_{machine}" if target.endswith("musl") else f"manylinux_{GLIBC.replace('.', '_')}_{machine}"


def wheels(quick: bool) -> dict[str, Path]:
    """The file of each platform's wheel. Wheels that are only for this machine are not called as if they were for all."""
    if quick:
        return {HOST: DIST / f"millstream-{VERSION}-cp311-abi3-linux_{HOST.split('-')[0]}.whl"}
    return {target: DIST / f"millstream-{VERSION}-cp311-abi3-{platform_tag(target)}.whl" for target in GLIBC_TARGETS + MUSL_TARGETS}


SDIST = DIST / f"millstream-{VERSION}.tar.gz"


def build(quick: bool) -> None:
    DIST.mkdir(parents=True, exist_ok=True)
    LICENCES.write_text(common.licences("millstream-python"))
    common.write_sbom(SBOM, "millstream-python")
    try:
        for target, wheel in wheels(quick).items():
            build_wheel(target, wheel, quick)
        if not quick:
            maturin("sdist", "--out", DIST)
    finally:
        LICENCES.unlink()
    if not quick and not shutil.which("python3.14t"):
        common.say("python: no wheel for free-threaded Python, which is not installed (python3.14t); NOT BUILT")


def build_wheel(target: str, wheel: Path, quick: bool) -> None:
    if quick:
        # What `tools/python test` has compiled. Without names of functions and lines the wheel has a tenth of the size.
        maturin("build", "--quiet", "--profile", "dev", "--strip", "--compatibility", "linux", "--out", DIST, "--interpreter", sys.executable,
                "--sbom-include", SBOM)
    else:
        common.needs_target(target)
        common.say(f"building the wheel for {platform_tag(target)}")
        maturin("build", "--quiet", "--release", "--locked", "--zig", "--target", target, "--target-dir", BUILD, "--out", DIST,
                "--compatibility", platform_tag(target).removesuffix(f"_{target.split('-')[0]}"), "--auditwheel", "check",
                "--interpreter", f"python{OLDEST[0]}.{OLDEST[1]}", "--sbom-include", SBOM, env=common.build_environment(target))
    if not wheel.is_file():
        raise Problem(f"maturin has not written {wheel.name}")


def maturin(*arguments: object, **options) -> None:
    common.run(TOOLS / "maturin", *arguments, cwd=PACKAGE, **options)


def check(quick: bool) -> None:
    for target, wheel in wheels(quick).items():
        if not wheel.is_file():
            raise Problem(f"{wheel} is missing: build it first")
        check_content(wheel, target, quick)
        if target != HOST:
            common.say(f"{wheel.name}: built and its content checked, NOT TESTED: no Python for {target}")
            continue
        for python in pythons():
            check_installed(wheel, python)
    if not quick:
        check_sdist()


def expected() -> set[str]:
    """The files that a wheel contains, apart from the tools' own."""
    sources = {str(file.relative_to(PACKAGE / "python")) for pattern in ["*.py", "*.pyi", "py.typed"]
               for file in (PACKAGE / "python").rglob(pattern)}
    about = f"millstream-{VERSION}.dist-info"
    own = {f"{about}/{name}" for name in ["METADATA", "WHEEL", "RECORD", "entry_points.txt",
                                          "sboms/millstream-python.cyclonedx.json"]}
    licences = {f"{about}/licenses/{name}" for name in ["LICENSE-MIT", "LICENSE-APACHE", LICENCES.name]}
    return sources | own | licences | {"millstream/_native.abi3.so"}


def check_content(wheel: Path, target: str, quick: bool) -> None:
    """Checks a wheel's files and tags, and what its library needs."""
    about = f"millstream-{VERSION}.dist-info"
    with common.empty_place() as place, zipfile.ZipFile(wheel) as content:
        content.extractall(place)
        found = {name for name in content.namelist() if not name.endswith("/")}
        if found != expected():
            raise Problem(f"{wheel.name}: missing: {sorted(expected() - found)}, unexpected: {sorted(found - expected())}")
        tags = re.findall(r"^Tag: (.+)$", (place / about / "WHEEL").read_text(), re.MULTILINE)
        if tags != ["-".join(wheel.stem.split("-")[2:])]:
            raise Problem(f"{wheel.name} states the tags {tags}")
        metadata = (place / about / "METADATA").read_text()
        for line in [f"Version: {VERSION}", f"Requires-Python: >={OLDEST[0]}.{OLDEST[1]}", "License-Expression: MIT OR Apache-2.0"]:
            if f"\n{line}\n" not in metadata:
                raise Problem(f"{wheel.name}: its METADATA lacks {line!r}")
        licences = (place / about / "licenses" / LICENCES.name).read_text()
        for crate in ["pyo3", "memchr", "zstd-sys", "Rust's standard library"]:
            if f"\n{crate} " not in licences:
                raise Problem(f"{wheel.name}: {LICENCES.name} lacks the licence of {crate}")
        # A quick build has debug information with paths.
        for name in found - {"millstream/_native.abi3.so"}:
            if str(ROOT).encode() in content.read(name):
                raise Problem(f"{wheel.name}: {name} has the path of the checkout")
        if quick:
            return
        library = place / "millstream" / "_native.abi3.so"
        common.check_binary(library, target)
        # auditwheel looks at the versions of the symbols that the library needs, and at the libraries.
        if target.endswith("gnu"):
            report = common.run(TOOLS / "auditwheel", "show", wheel)
            consistent = re.search(r'tag:\s+"([^"]+)"', report)
            best = re.search(r"manylinux_(\d+)_(\d+)_", consistent[1]) if consistent else None
            if best is None or tuple(map(int, best.groups())) > tuple(map(int, GLIBC.split("."))):
                raise Problem(f"auditwheel does not find {wheel.name} consistent with glibc {GLIBC}:\n{report}")
        else:
            needed = re.findall(r"NEEDED.*\[(.+)\]", common.run("readelf", "--dynamic", library))
            if wrong := set(needed) - {"libc.so", f"libc.musl-{target.split('-')[0]}.so.1"}:
                raise Problem(f"{wheel.name} needs {', '.join(sorted(wrong))}; expected only musl's libc")


def pythons() -> Iterator[Path]:
    """The oldest and the newest supported Python on this machine."""
    folders = [*os.environ["PATH"].split(":"), *sorted(map(str, Path.home().glob(".pyenv/versions/*/bin")))]
    found = {}
    for folder, minor in itertools.product(folders, range(OLDEST[1], 30)):
        python = Path(folder, f"python3.{minor}")
        if minor not in found and "shims" not in folder and os.access(python, os.X_OK):
            works = subprocess.run([python, "-c", "import ensurepip, venv"], capture_output=True, check=False)
            if works.returncode == 0:
                found[minor] = python
    if OLDEST[1] not in found:
        common.skip(f"python{OLDEST[0]}.{OLDEST[1]} with venv is missing")
    if len(found) < 2:
        common.say("python: only one version of Python is installed, so NOT TESTED with others")
    for minor in sorted({min(found, default=None), max(found, default=None)} - {None}):
        yield found[minor]


def files_of(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if "__pycache__" not in file.parts}


def check_installed(wheel: Path, python: Path) -> None:
    """Installs a wheel in an empty environment, uses it there, and removes it."""
    with common.empty_place() as place:
        environment = common.bare_environment(place) | {"PYTHONDONTWRITEBYTECODE": "1"}
        alone = place / "environment"
        common.run(python, "-m", "venv", alone, env=environment)
        before = files_of(alone)
        pip = [alone / "bin" / "python", "-m", "pip", "--disable-pip-version-check"]
        common.run(*pip, "install", "--no-index", "--no-cache-dir", wheel, env=environment)
        work = place / "work"
        work.mkdir()
        printed = common.run(alone / "bin" / "python", "-W", "error", PROMISE, VERSION, cwd=work, env=environment)
        if printed != "all as promised\n":
            raise Problem(f"{PROMISE.name} printed {printed!r}")
        script = common.run(alone / "bin" / "millstream", "--version", cwd=work, env=environment)
        if script != f"millstream {VERSION}\n":
            raise Problem(f"the script `millstream` printed {script!r}")
        common.run(*pip, "uninstall", "--yes", "millstream", env=environment)
        if left := files_of(alone) - before:
            raise Problem(f"pip uninstall leaves {', '.join(sorted(left))}")
        common.say(f"{wheel.name}: works with {python}")


def check_sdist() -> None:
    """Builds a wheel from the sdist in an empty environment, as pip does, and uses it."""
    with common.empty_place() as place:
        with tarfile.open(SDIST) as content:
            names = content.getnames()
        for name in ["PKG-INFO", "Cargo.lock", "LICENSE-MIT", "LICENSE-APACHE"]:
            if f"millstream-{VERSION}/{name}" not in names:
                raise Problem(f"{SDIST.name} lacks {name}")
        environment = common.bare_environment(place)
        cargo = Path(shutil.which("cargo")).parent
        environment |= {"PATH": f"{cargo}:{environment['PATH']}", "CARGO_HOME": str(common.CARGO_HOME),
                        "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(Path.home() / ".rustup")),
                        # The sources are what is tested, so it does not have to be optimised.
                        "MATURIN_PEP517_ARGS": "--profile dev", "CARGO_TARGET_DIR": str(TARGET / "package" / "sdist")}
        alone = place / "environment"
        venv.create(alone, with_pip=True)
        pip = [alone / "bin" / "python", "-m", "pip", "--disable-pip-version-check"]
        common.run(*pip, "wheel", "--no-deps", "--wheel-dir", place / "built", SDIST, cwd=place, env=environment)
        [wheel] = (place / "built").glob("*.whl")
        check_installed(wheel, next(pythons()))
