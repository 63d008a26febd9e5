"""Julia: the package's folder, which finds the library of the C archive that is unpacked next to it."""

import gzip
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import common
from common import HOST, ROOT, VERSION, Problem

PACKAGE = ROOT / "bindings" / "julia"
NAME = f"millstream-julia-{VERSION}"
CONTENT = ["Project.toml", "README.md", "docs", "src"]
LICENCES = ["LICENSE-MIT", "LICENSE-APACHE"]
LIBRARY = f"libmillstream-{VERSION}-{HOST}"
PROMISE = Path(__file__).resolve().parents[1] / "outside" / "julia" / "promise.jl"

# So that `Pkg.develop` does not download the general registry, which the package does not need.
REGISTRY = 'name = "Empty"\nuuid = "00000000-0000-4000-8000-000000000000"\nrepo = ""\n[packages]\n'


def build(quick: bool) -> None:
    with common.empty_place() as place:
        folder = place / NAME
        folder.mkdir()
        for name in CONTENT:
            source = PACKAGE / name
            shutil.copytree(source, folder / name) if source.is_dir() else shutil.copy(source, folder / name)
        common.put_page(PACKAGE / "README.md", folder / "README.md")
        for name in LICENCES:
            shutil.copy(ROOT / name, folder / name)
        common.archive(common.DIST / f"{NAME}.tar.gz", folder)


def program() -> str:
    """The program that tools/julia uses."""
    return next(filter(None, [os.environ.get("JULIA"), shutil.which("julia"), "/opt/julia/bin/julia"]))


def new_depot(folder: Path) -> None:
    """Makes a depot with an empty registry. Without any, Julia would download the general one."""
    (folder / "registries" / "Empty").mkdir(parents=True)
    (folder / "registries" / "Empty" / "Registry.toml").write_text(REGISTRY)


def check(quick: bool) -> None:
    julia = program()
    if not common.has(julia):
        return
    with common.empty_place() as place:
        environment = common.bare_environment(place) | {
            "JULIA_DEPOT_PATH": str(place / "depot"), "JULIA_PROJECT": str(place / "environment")}
        new_depot(place / "depot")
        (place / "environment").mkdir()

        def run(program: str) -> str:
            # It compiles for most of the time, which is quicker without optimisation.
            command = [julia, "--startup-file=no", "-O0", "-e", program]
            return common.run(*command, cwd=place / "first", env=environment)

        def develop(folder: Path) -> None:
            run(f'import Pkg; Pkg.develop(Pkg.PackageSpec(path = "{folder}"))')

        first, second = place / "first", place / "second"
        first.mkdir()
        common.unpack(common.DIST / f"{NAME}.tar.gz", first)
        common.check_files(first / NAME, expected())
        common.check_links(first / NAME)
        develop(first / NAME)
        # It loads without the library, and says where it looked.
        told = run("using Millstream; try; Millstream.library_version(); catch e; print(e.msg); end")
        if str(first / "libmillstream-") not in told:
            raise Problem(f"without its library, the package does not say where it looked: {told!r}")
        # Nothing has to be set or compiled again once the library is there.
        common.unpack(common.DIST / f"{LIBRARY}.tar.gz", first)
        (first / "lines.txt.gz").write_bytes(gzip.compress(b"".join(b"%d\n" % number for number in range(1000))))
        promise(run, first)
        # The precompiled package does not look in the first folder once it is moved.
        first.rename(second)
        first.mkdir()
        shutil.move(second / "lines.txt.gz", first)
        develop(second / NAME)
        promise(run, second)
        run('import Pkg; Pkg.rm("Millstream")')
        if "Millstream" in (place / "environment" / "Manifest.toml").read_text():
            raise Problem("Pkg.rm leaves the package in the environment")
    common.say(f"{NAME}: works with {common.run(julia, '--version').strip()}")


def promise(run: Callable[[str], str], folder: Path) -> None:
    printed = run(f'include("{PROMISE}")')
    wanted = f"{folder / LIBRARY / 'lib'}\n{VERSION}\nall as promised\n"
    if printed != wanted:
        raise Problem(f"{PROMISE.name} printed {printed!r}; expected {wanted!r}")


def expected() -> set[str]:
    """The files that the unpacked archive contains."""
    sources = [file for name in CONTENT for file in [PACKAGE / name, *(PACKAGE / name).rglob("*")] if file.is_file()]
    return {str(file.relative_to(PACKAGE)) for file in sources} | set(LICENCES)
