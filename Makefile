# The front door: plain targets, no logic. What needs a decision is in tools/.

# How deep `make test-deep` goes.
FUZZ_SECONDS ?= 300
PROPTEST_CASES ?= 5000

# Builds with other compiler flags get their own directory, so that they do not push out the usual one.
TARGET := $(or $(CARGO_TARGET_DIR),target)

.PHONY: test test-deep lint bench instructions header setup loom cpp cpp-deep node python julia miri miri-big-endian fuzz sweeps latency
.NOTPARALLEL:

# All tests: minutes, and a quarter of an hour where nothing is built yet. This is the test command.
test: setup loom cpp node python julia
	cargo test --workspace --no-fail-fast --features millstream/async

# What takes longer: undefined behaviour, fuzzing, every fault at every call, many more random cases.
test-deep: setup cpp-deep miri miri-big-endian fuzz sweeps latency

lint: setup
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --features millstream/async -- -D warnings
	cargo clippy --manifest-path fuzz/Cargo.toml --target-dir $(TARGET) -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --lib --exclude millstream-capi --features millstream/async
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
	cargo run --profile test --package millstream-bench -- instructions $(WRITE)

# Writes crates/capi/include/millstream.h anew, from the sources of that crate.
header:
	MILLSTREAM_HEADER=write cargo test --package millstream-capi --test header

# Installs what this machine lacks; quiet and quick when it lacks nothing.
setup:
	tools/setup test

# The hand-over between the filler thread and the consumer, in every order that two threads can take: all of them,
# since that takes seconds.
loom:
	RUSTFLAGS="--cfg loom" cargo test --release --target-dir $(TARGET)/loom --package millstream-loom --lib handover

# The C++ front end; `cpp-deep` has the other compiler and the sanitizers.
cpp:
	tools/cpp g++ plain

# The package for Node and browsers.
node: setup
	tools/node test

# The package for Python: a wheel, installed into an environment of its own and tested there.
python: setup
	tools/python test

# The package for Julia.
julia: setup
	tools/julia test

cpp-deep:
	tools/cpp clang++ plain
	tools/cpp clang++ sanitized
	tools/cpp g++ sanitized
	tools/cpp clang++ threads

miri:
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
