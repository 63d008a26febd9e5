# The front door: plain targets, no logic. What needs a decision is in tools/.

# How deep `make test-deep` goes.
FUZZ_SECONDS ?= 300
PROPTEST_CASES ?= 5000

# Builds with other compiler flags get their own directory, so that they do not push out the usual one.
TARGET := $(or $(CARGO_TARGET_DIR),target)

RUST := --workspace --features millstream/async

.PHONY: test test-deep lint bench instructions header setup rust rust-built loom cpp cpp-sanitized cpp-deep node python julia miri \
	miri-big-endian fuzz sweeps latency

# With several jobs, each target has its own; what it starts is not to look for jobs of make's.
unexport MAKEFLAGS MAKELEVEL MFLAGS

# All tests: minutes, and a quarter of an hour where nothing is built yet. This is the test command.
test: rust-built loom cpp node python rust julia

rust-built: setup
	cargo test $(RUST) --no-run

# The benchmarks' test runs the packages for Node and Python as well.
rust: rust-built cpp node python
	cargo test $(RUST) --no-fail-fast

# What takes longer: undefined behaviour, fuzzing, every fault at every call, many more random cases.
test-deep: setup cpp-deep miri miri-big-endian fuzz sweeps latency

lint: setup
	cargo fmt --all --check
	cargo clippy $(RUST) --all-targets -- -D warnings
	cargo clippy --manifest-path fuzz/Cargo.toml --target-dir $(TARGET) -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc $(RUST) --no-deps --lib --exclude millstream-capi
	tools/cpp format
	tools/node lint
	tools/python lint

bench:
	tools/setup bench
	cargo build --release --package millstream-capi
	tools/python wheel
	cargo run --release --package millstream-bench

# Counts instructions, which no noise disturbs: fails where a runner needs more than bench/baseline says. WRITE=--write stores.
# The tool is the one that the tests have built; what it counts is built for release.
instructions: setup
	cargo build --profile test $(RUST) --bin millstream-bench
	$(TARGET)/debug/millstream-bench instructions $(WRITE)

# Writes crates/capi/include/millstream.h anew, from the sources of that crate.
header:
	MILLSTREAM_HEADER=write cargo test --package millstream-capi --test header

# Installs what this machine lacks; quiet and quick when it lacks nothing.
setup:
	tools/setup test

# The hand-over between the filler thread and the consumer, in every order that two threads can take: all of them,
# since that takes seconds.
loom: setup
	RUSTFLAGS="--cfg loom" cargo test --release --target-dir $(TARGET)/loom --package millstream-loom --lib handover

# The C++ front end; `cpp-deep` has the other compiler and the sanitizers.
cpp: setup
	tools/cpp g++ plain

cpp-sanitized: setup
	tools/cpp clang++ sanitized

# The package for Node and browsers.
node: setup
	tools/node test

# The package for Python: a wheel, installed into an environment of its own and tested there.
python: setup
	tools/python test

# The package for Julia.
julia: setup
	tools/julia test

cpp-deep: cpp-sanitized
	tools/cpp clang++ plain
	tools/cpp g++ sanitized
	tools/cpp clang++ threads

miri: setup
	tools/setup miri
	tools/miri

miri-big-endian:
	tools/setup miri
	tools/miri big-endian

fuzz:
	tools/setup fuzz
	tools/fuzz $(FUZZ_SECONDS)

# The whole test suite again, with every fault at every system call and many more random cases.
sweeps:
	MILLSTREAM_DEEP=1 MILLSTREAM_CASES=$(PROPTEST_CASES) tools/node test
	MILLSTREAM_DEEP=1 tools/julia test
	MILLSTREAM_DEEP=1 MILLSTREAM_CASES=$(PROPTEST_CASES) tools/python test
	MILLSTREAM_DEEP=1 PROPTEST_CASES=$(PROPTEST_CASES) cargo test --workspace --no-fail-fast

# Prints how long a record takes from its last byte to the consumer, at a trickle.
latency:
	cargo run --release --package millstream --example trickle_latency
