"""C and C++: an archive with the headers, the shared and the static library, pkg-config's file and a CMake package."""

import gzip
import shutil
from pathlib import Path

import common
from common import DIST, GLIBC_TARGETS, HOST, ROOT, VERSION, Problem
from kinds import cli

OUTSIDE = Path(__file__).resolve().parents[1] / "outside" / "c"


def name(target: str) -> str:
    return f"libmillstream-{VERSION}-{target}"


def targets(quick: bool) -> list[str]:
    return [HOST] if quick else GLIBC_TARGETS


def build(quick: bool) -> None:
    if not common.has("cmake"):
        return
    for target in targets(quick):
        libraries = common.cargo("millstream-capi", target, "--features", "remote", quick=quick)
        with common.empty_place() as place:
            folder = place / name(target)
            # Only files are installed, so the compiler that CMake finds does not matter.
            common.run("cmake", "-S", ROOT / "bindings" / "cpp", "-B", place / "build", "-D", "MILLSTREAM_TESTS=OFF",
                       "-D", f"MILLSTREAM_LIBRARY={libraries / 'libmillstream.so'}", "-D", "CMAKE_INSTALL_LIBDIR=lib")
            common.run("cmake", "--install", place / "build", "--prefix", folder)
            shutil.copytree(ROOT / "bindings" / "cpp" / "single", folder / "single")
            common.put_page(ROOT / "docs" / "c.md", folder / "README.md", {"crates/capi/include/millstream.h": "include/millstream.h"})
            common.put_licences(folder, "millstream-capi", "remote")
            common.archive(DIST / f"{name(target)}.tar.gz", folder, level=1 if quick else 9)
        common.write_sbom(DIST / f"{name(target)}.cdx.json", "millstream-capi", "remote")


def expected() -> set[str]:
    """The files that an unpacked archive contains."""
    include = {f"include/{file.relative_to(folder)}"
               for folder in [ROOT / "crates/capi/include", ROOT / "bindings/cpp/include"]
               for file in folder.rglob("*.h*")}
    single = {f"single/{file.name}" for file in (ROOT / "bindings/cpp/single").iterdir()}
    cmake = {f"lib/cmake/millstream/millstream{part}.cmake" for part in ["Config", "ConfigVersion", "Targets"]}
    library = {f"lib/libmillstream.{end}" for end in ["a", "so", "so.0", f"so.{VERSION}"]}
    return include | single | cmake | library | cli.LICENCES | {"README.md", "lib/pkgconfig/millstream.pc"}


def check(quick: bool) -> None:
    for target in targets(quick):
        native = target == HOST
        gcc = "gcc" if native else f"{target.split('-')[0]}-linux-gnu-gcc"
        if not common.has("cmake", "pkg-config", "clang++", "x86_64-w64-mingw32-g++", gcc, gcc.replace("gcc", "g++")):
            return
        with common.empty_root(target) as root:
            common.unpack(DIST / f"{name(target)}.tar.gz", root)
            folder = root / name(target)
            common.check_files(folder, expected())
            common.check_links(folder)
            if not quick:
                # In static libraries, too, since their code becomes a part of programs.
                for file in folder.rglob("*"):
                    if file.is_file():
                        common.check_no_paths(file)
                common.check_binary(folder / "lib" / f"libmillstream.so.{VERSION}", target)
            else:
                # Only released libraries contain what they need of the compiler's library.
                shutil.copy(common.run(gcc, "-print-file-name=libgcc_s.so.1").strip(), root / "lib")
            with common.empty_place() as place:
                check_programs(place, root, target, folder, gcc)
            if native:
                check_single(folder)
            shutil.rmtree(folder)
        common.say(f"{name(target)}: works with CMake and pkg-config, and in an empty root")


def check_programs(place: Path, root: Path, target: str, folder: Path, gcc: str) -> None:
    """Builds programs with nothing of Millstream but the unpacked archive, and runs them in the empty root."""
    shutil.copytree(OUTSIDE, place / "project")
    environment = common.bare_environment(place) | {"PKG_CONFIG_PATH": str(folder / "lib" / "pkgconfig")}
    # The compilers for the other processor find their own C library, so the project needs no toolchain file.
    common.run("cmake", "-S", place / "project", "-B", place / "build", "-D", f"CMAKE_PREFIX_PATH={folder}",
               "-D", f"VERSION={VERSION}", "-D", f"CMAKE_C_COMPILER={gcc}", "-D",
               f"CMAKE_CXX_COMPILER={gcc.replace('gcc', 'g++')}", "-D", "CMAKE_EXE_LINKER_FLAGS=-static-libgcc -static-libstdc++",
               env=environment)
    common.run("cmake", "--build", place / "build", env=environment)
    flags = common.run("pkg-config", "--cflags", "--libs", "millstream", env=environment).split()
    common.run(gcc, place / "project" / "promise.c", *flags, "-o", place / "build" / "promise_pkg_config", env=environment)
    if common.run("pkg-config", "--modversion", "millstream", env=environment).strip() != VERSION:
        raise Problem("pkg-config states another version")
    (root / "lines.txt.gz").write_bytes(gzip.compress(cli.LINES))
    (root / "one.bson").write_bytes(cli.DOCUMENT)
    for form in ["promise_millstream", "promise_static", "promise_pkg_config", "cpp_millstream", "cpp_static", "headers"]:
        shutil.copy(place / "build" / form, root / form)
        # The dynamic programs find the library next to the C library, as they do once it is installed.
        if form in ("promise_static", "cpp_static", "headers"):
            (root / "lib" / "libmillstream.so.0").unlink(missing_ok=True)
        else:
            shutil.copy(folder / "lib" / f"libmillstream.so.{VERSION}", root / "lib" / "libmillstream.so.0")
        printed, _ = common.run_in(root, target, f"/{form}", *([VERSION] if form.startswith("promise") else []))
        if not form.startswith("cpp") and printed != "all as promised\n":
            raise Problem(f"{form} printed {printed!r}")
        (root / "out.txt").unlink(missing_ok=True)


def check_single(folder: Path) -> None:
    """Compiles the single header, alone, with each compiler."""
    for form in ["millstream_stdio.hpp", "millstream_stdio_minified.hpp"]:
        with common.empty_place() as place:
            shutil.copy(folder / "single" / form, place / "millstream_stdio.hpp")
            shutil.copy(OUTSIDE / "headers.cpp", place)
            for compiler in ["g++", "clang++", "x86_64-w64-mingw32-g++"]:
                common.run(compiler, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-D", "SINGLE", "headers.cpp", "-o", "headers",
                           cwd=place)
                if not compiler.endswith("mingw32-g++") and common.run(place / "headers") != "all as promised\n":
                    raise Problem(f"{form} compiled by {compiler} does not work")
