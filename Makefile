# The entry point: plain targets, no logic. Decisions are in tools/.

# The depth of `make test-deep`.
FUZZ_SECONDS ?= 300
PROPTEST_CASES ?= 5000

# Builds with other compiler flags get their own directory, so that they do not replace the usual one.
TARGET := $(or $(CARGO_TARGET_DIR),target)

RUST := --workspace --features millstream/async,millstream/bson,millstream/serde,millstream/tokio,millstream-cli/full

# The benchmarks are a separate workspace, which shares the target directory.
BENCHMARKS := --manifest-path benchmarks/Cargo.toml --target-dir $(TARGET)

.PHONY: test test-deep lint lint-rust lint-cpp lint-node lint-python lint-julia lint-fuzz msrv deny package package-quick package-reproducible bench benchmarks instructions setup setup-rust rust rust-built corpus loom cpp cpp-sanitized cpp-deep node python python-threads julia miri \
	miri-big-endian targets fuzz sweeps latency cluster cluster-kill cluster-deep

# With several jobs, each target runs its own jobs; its commands must not use the job server of make.
unexport MAKEFLAGS MAKELEVEL MFLAGS

# All tests. They take minutes, or a quarter of an hour in a clean clone.
test: rust-built setup loom cpp node python rust julia benchmarks

rust-built: setup-rust
	cargo test $(RUST) --no-run

rust: rust-built setup
	cargo test $(RUST) --no-fail-fast
	cargo test --package millstream-remote --no-default-features --lib

# Tests the benchmark tool and the answers of the Rust programs. With MILLSTREAM_DEEP=1, it tests the answers of all
# programs, which requires building the packages for C, Node, Python and Julia.
benchmarks: rust-built setup
	cargo test $(BENCHMARKS) --no-fail-fast

# The tests with data that the repository does not contain: MongoDB's BSON corpus, test files of BSON.jl, and the
# programs of the original in C++. SHARED is the folder that contains `corpus/` and `originals/`.
corpus: setup
	MILLSTREAM_SHARED="$(abspath $(SHARED))" cargo test $(RUST) --test bson_corpus --test bson_hostile --test bson_julia
	MILLSTREAM_ORIGINALS="$(abspath $(SHARED))/originals" tools/cpp g++ plain -R Originals

# The slow tests: counted instructions, undefined behaviour, other platforms, fuzzing, every fault at every call, many more
# random cases.
test-deep: setup cpp-deep python-threads instructions miri miri-big-endian targets fuzz sweeps latency cluster-deep msrv deny package-reproducible

lint: lint-rust lint-cpp lint-node lint-python lint-julia

lint-rust: setup-rust
	tools/layers
	cargo xtask generate --check
	cargo fmt --all --check
	cargo clippy $(RUST) --all-targets -- -D warnings
	cargo clippy -p millstream-wasm --target wasm32-unknown-unknown -- -D warnings
	cargo fmt --all --check --manifest-path benchmarks/Cargo.toml
	cargo clippy $(BENCHMARKS) --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc $(RUST) --no-deps --lib --exclude millstream-capi
	RUSTDOCFLAGS="-D warnings" cargo doc $(BENCHMARKS) --no-deps --lib

lint-cpp: setup
	tools/cpp format
	tools/cpp standards

lint-node: setup
	tools/node lint

lint-python: setup
	tools/python lint

lint-julia: setup
	tools/julia lint

# The fuzz targets compile their own variant of everything.
lint-fuzz: setup
	cargo clippy --manifest-path fuzz/Cargo.toml --target-dir $(TARGET) -- -D warnings

# Checks that the library and its packages compile with the minimum Rust version in Cargo.toml, and the tests of the command
# line without its features.
MSRV := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
msrv:
	rustup toolchain install $(MSRV) --profile minimal
	cargo +$(MSRV) check --target-dir $(TARGET)/msrv --workspace --features millstream/async,millstream/bson,millstream/serde,millstream/tokio,millstream-cli/full
	cargo +$(MSRV) check --target-dir $(TARGET)/msrv --package millstream-cli --all-targets

# Checks licences, duplicates and sources of dependencies, as configured in deny.toml. Installing cargo-deny takes
# minutes, because it must be compiled, so this is a part of `make test-deep` and of a separate job on GitHub, not of
# `make lint`.
deny:
	command -v cargo-deny >/dev/null || cargo install --locked cargo-deny
	cargo deny --all-features check licenses bans sources
	cargo deny --manifest-path benchmarks/Cargo.toml --all-features check sources

# Builds all packages for release in dist/, and uses each in an empty place.
package:
	tools/setup package
	tools/package
	tools/package --check

# The packages that exist in a quick form, from what the tests have compiled; for continuous integration.
package-quick: setup
	tools/package --quick
	tools/package --quick --check

# Checks that a build of the same commit in another directory results in the same packages. It takes as long as
# `make package`.
package-reproducible: package
	tools/package --reproducible

# Measures against competitors. ONLY=NAME measures one definition; ARGUMENTS=… passes other arguments to the tool.
bench:
	tools/setup bench
	cargo build --release --package millstream-capi
	tools/python wheel
	cargo run --release $(BENCHMARKS) --bin millstream-bench -- $(if $(ONLY),--only $(ONLY)) $(ARGUMENTS)

# Counts instructions, which noise does not affect. It fails if a runner needs more than in benchmarks/baseline.
# WRITE=--write stores new counts. The tool is the one that the tests have built; the counted programs are release
# builds.
instructions: setup
	cargo test $(BENCHMARKS) --no-run
	$(TARGET)/debug/millstream-bench instructions $(WRITE)

# Installs missing tools. This is quick and silent if none is missing. What only Rust needs comes first, so that compiling can
# start while the other tools are installed.
setup: setup-rust
	tools/setup test

setup-rust:
	tools/setup rust

# Checks the hand-over between the filler thread and the consumer in every possible order of two threads, which takes
# seconds.
loom: setup-rust
	RUSTFLAGS="--cfg loom" cargo test --release --target-dir $(TARGET)/loom --package millstream-loom --lib handover

# The C++ front end; `cpp-deep` uses the other compiler and the sanitizers.
cpp: setup
	tools/cpp g++ plain

cpp-sanitized: setup
	tools/cpp clang++ sanitized

# The package for Node and browsers.
node: setup
	tools/node test

# The package for Python: builds a wheel, installs it into a separate environment and tests it there.
python: setup
	tools/python test

# The modules of the package for Python for Ray, Dask, Daft, polars, DuckDB and Spark, which are installed into a separate
# environment.
cluster: setup
	tools/setup cluster
	tools/cluster test

# Kills processes and nodes of Ray, Dask and Spark at random times, with the wheel that `make python` has built.
cluster-kill:
	tools/setup cluster
	tools/cluster kill

# The same with many more processes that are killed, and with the oldest versions of the engines.
cluster-deep: setup
	tools/setup cluster
	MILLSTREAM_DEEP=1 tools/cluster test
	tools/cluster test --oldest

# The package for Julia.
julia: setup
	tools/julia test

# The tests with threads of the package for Python, under ThreadSanitizer. Those that import polars crash in it.
python-threads: setup
	tools/setup miri
	tools/python threads tests/test_threads.py tests/test_pipe.py tests/test_aio.py tests/test_splits.py

cpp-deep: cpp-sanitized
	tools/cpp standards-deep
	tools/cpp clang++ plain
	tools/cpp g++ sanitized
	tools/cpp clang++ threads

miri: setup
	tools/setup miri
	tools/miri

miri-big-endian:
	tools/setup miri
	tools/miri big-endian

# The crates that need no operating system, on WebAssembly, Windows and aarch64.
targets:
	tools/setup targets
	tools/targets

fuzz: lint-fuzz
	tools/setup fuzz
	tools/fuzz $(FUZZ_SECONDS)

# The whole test suite again, with every fault at every system call and many more random cases.
sweeps:
	MILLSTREAM_DEEP=1 MILLSTREAM_CASES=$(PROPTEST_CASES) tools/node test
	MILLSTREAM_DEEP=1 tools/julia test
	MILLSTREAM_DEEP=1 MILLSTREAM_CASES=$(PROPTEST_CASES) tools/python test
	MILLSTREAM_DEEP=1 PROPTEST_CASES=$(PROPTEST_CASES) cargo test $(RUST) --no-fail-fast
	MILLSTREAM_DEEP=1 cargo test $(BENCHMARKS) --no-fail-fast

# Prints how long a record takes from its last byte to the consumer, at a trickle.
latency:
	cargo run --release --package millstream --example trickle_latency
