"""The crates: what `cargo publish` would upload, used by an outside program that has no other sources of them."""

import gzip
import hashlib
import json
import pathlib
import shutil
import tomllib

import common
from common import (CARGO_HOME, DIST, ROOT, TARGET, VERSION, Problem, bare_environment, check_no_paths, empty_place, run,
                    say)

# What an outside program needs to work in the directory that it is run in.
INPUTS = {"lines.txt.gz": gzip.compress(b"alpha\nbeta\n", mtime=0), "one.bson": bytes.fromhex("0c000000106e000500000000")}

# The sets of features that the outside program is built with.
MINIMAL = ["--no-default-features"]
SETS = [[], [*MINIMAL, "--features", "bson"], ["--features", "async,arrow"]]


def members() -> dict[str, pathlib.Path]:
    """The folders of the crates that are published, by name."""
    metadata = json.loads(run("cargo", "metadata", "--locked", "--no-deps", "--format-version", "1", cwd=ROOT))
    # An empty list means `publish = false`.
    return {entry["name"]: pathlib.Path(entry["manifest_path"]).parent for entry in metadata["packages"] if entry["publish"] != []}


def build(quick: bool) -> None:
    """Packages the crates, in the order of their dependencies; by default also compiles each from its package alone."""
    names = list(members())
    chosen = [word for name in names for word in ("--package", name)]
    # A quick build packages what is there, and compiles nothing: the check does.
    run("cargo", "package", "--quiet", "--locked", *chosen, *(["--no-verify", "--allow-dirty"] if quick else []), cwd=ROOT)
    (DIST / "crates").mkdir(parents=True, exist_ok=True)
    for old in (DIST / "crates").iterdir():
        old.unlink()
    for name in names:
        shutil.copy(TARGET / "package" / f"{name}-{VERSION}.crate", DIST / "crates")


def unpack(file: pathlib.Path, place: pathlib.Path) -> pathlib.Path:
    """Unpacks a crate as a source that cargo accepts in place of crates.io."""
    common.unpack(file, place)
    folder = place / file.name.removesuffix(".crate")
    sums = {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in folder.rglob("*") if path.is_file()}
    (folder / ".cargo-checksum.json").write_text(
        json.dumps({"files": sums, "package": hashlib.sha256(file.read_bytes()).hexdigest()}))
    return folder


def check_content(name: str, folder: pathlib.Path, source: pathlib.Path) -> None:
    """Checks that a crate has its licences, its documentation and all of its sources, and nothing of this machine."""
    for file in ["LICENSE-MIT", "LICENSE-APACHE", "README.md"]:
        if not (folder / file).is_file() or (folder / file).read_bytes() != (ROOT / file).read_bytes():
            raise Problem(f"the crate {name} lacks {file}, or has another one than the repository")
    manifest = tomllib.loads((folder / "Cargo.toml").read_text())
    for key in ["description", "license", "repository", "rust-version", "keywords"]:
        if not manifest["package"].get(key):
            raise Problem(f"the crate {name} does not state its {key}")
    for kind in ["dependencies", "build-dependencies", "dev-dependencies"]:
        for other, use in manifest.get(kind, {}).items():
            if "path" in use:
                raise Problem(f"the crate {name} depends on a path: {other}")
    listed = run("git", "ls-files", "--", "src", "include", "build.rs", cwd=source).splitlines()
    if missing := [file for file in listed if not (folder / file).is_file()]:
        raise Problem(f"the crate {name} lacks {', '.join(missing)}")
    for file in folder.rglob("*"):
        if file.is_file():
            check_no_paths(file)
        # Tests need files of the repository, so they could not be run.
        if file.is_relative_to(folder / "tests"):
            raise Problem(f"the crate {name} contains tests: {file.relative_to(folder)}")


def check(quick: bool) -> None:
    """Builds and runs an outside program with an empty Cargo home: every dependency comes from a package."""
    with empty_place() as place:
        vendor = place / "vendor"
        # The crates of others; those of the workspace are not among them.
        run("cargo", "vendor", "--quiet", "--locked", "--versioned-dirs", vendor, cwd=ROOT)
        folders = {}
        for name, source in members().items():
            folders[name] = unpack(DIST / "crates" / f"{name}-{VERSION}.crate", vendor)
            check_content(name, folders[name], source)
        environment = outside_environment(place, vendor)
        program = place / "program"
        shutil.copytree(ROOT / "tools" / "package.d" / "outside" / "rust", program)
        for name, content in INPUTS.items():
            (program / name).write_bytes(content)
        for features in [MINIMAL, *([] if quick else SETS)]:
            say(f"a program with the crates and {' '.join(features) or 'default features'}")
            (program / "written.txt").unlink(missing_ok=True)
            run("cargo", "run", "--quiet", "--offline", *features, cwd=program, env=environment)
            tree = run("cargo", "tree", "--offline", "--edges", "normal,build", "--prefix", "none", *features, cwd=program,
                       env=environment)
            say(f"it has {len({line.split()[0] for line in tree.splitlines() if line}) - 1} dependencies")
        if not quick:
            for features in [[], ["--features", "full"]]:
                check_command(place, folders["millstream-cli"], features, environment)


def outside_environment(place: pathlib.Path, vendor: pathlib.Path) -> dict[str, str]:
    """An environment in which cargo has an empty home, and finds crates only in a folder."""
    home = place / "cargo"
    home.mkdir()
    (home / "config.toml").write_text(
        f'[source.crates-io]\nreplace-with = "packages"\n[source.packages]\ndirectory = "{vendor}"\n')
    environment = bare_environment(place)
    toolchain = run("rustc", "--print", "sysroot").strip()
    return environment | {"CARGO_HOME": str(home), "CARGO_TARGET_DIR": str(place / "target"),
                          "PATH": f"{toolchain}/bin:{environment['PATH']}", "CARGO_PROFILE_DEV_DEBUG": "false"}


def check_command(place: pathlib.Path, folder: pathlib.Path, features: list[str], environment: dict[str, str]) -> None:
    """Installs the command from its crate, runs it, and removes it."""
    say(f"cargo install millstream-cli with {' '.join(features) or 'default features'}")
    root = place / "root"
    run("cargo", "install", "--quiet", "--offline", "--locked", "--debug", "--path", folder, "--root", root, *features,
        env=environment, cwd=place)
    version = run(root / "bin" / "millstream", "--version", env=environment)
    if VERSION not in version:
        raise Problem(f"the installed command has version {version!r}; expected {VERSION}")
    run("cargo", "uninstall", "--quiet", "--root", root, "millstream-cli", env=environment, cwd=place)
    if (root / "bin" / "millstream").exists():
        raise Problem("cargo uninstall left the command")
