# The two commands are `make demo` and `make test`. Everything they make is in .venv and target.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python
GROUP := $(INSTALL) --group python/pyproject.toml

.PHONY: demo test test-rust test-python models lint types compatibility cases bench count count-update docs \
	package free-threaded free-threaded-test build clean
.DELETE_ON_ERROR:

# Real Arrow columns into tensors and back, in front of your eyes.
demo: build
	$(BIN)/python examples/flights.py

# The proof, against the real libraries.
test: test-rust test-python

# The Python rooms need an interpreter around them: they are tested from Python.
test-rust: $(VENV)/.test models
	cargo test --features ndarray --all-targets
	cargo test --features ndarray --doc
	cargo run --features ndarray --quiet --example flights

# Every order in which threads can get at our atomics, by loom: a few seconds.
models:
	cargo test --package arrow-dlpack-models

test-python: $(VENV)/.test build
	. $(BIN)/activate && maturin develop --quiet --uv --manifest-path examples/extension/Cargo.toml
	$(BIN)/pytest --config-file python/pyproject.toml python/tests

lint: $(VENV)/.test
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --all-features -- --deny warnings
	$(BIN)/ruff check --config python/pyproject.toml python examples benches
	$(BIN)/ruff format --check --config python/pyproject.toml python examples benches

# The stubs against mypy and against the built module.
types: $(VENV)/.test build
	cd python && ../$(BIN)/mypy
	cd python && ../$(BIN)/stubtest arrow_dlpack --mypy-config-file pyproject.toml \
		--allowlist stubtest-allowlist.txt --ignore-unused-allowlist

# Measures what works with every neighbour, records it, and writes the README's tables.
compatibility: $(VENV)/.test build
	$(BIN)/python python/tests/compatibility.py

# What every Arrow type and every dtype becomes, by pyarrow and NumPy, and the README's tables of it.
cases: $(VENV)/.test
	$(BIN)/python python/tests/make_cases.py

# Every case against its peers, on a machine that does nothing else: a table, benches/results.json and .svg.
bench: $(VENV)/.bench build
	CRITERION_HOME=$(abspath target/criterion) cargo bench --package arrow-dlpack-benches -- --quiet
	$(BIN)/python benches/bench.py

# The instructions of the small calls, held against benches/instructions.json; needs valgrind.
count count-update: $(VENV)/.demo build
	cargo build --profile bench --package arrow-dlpack-benches --bin count
	$(BIN)/python benches/count.py $(if $(findstring update,$@),--update)

# target/doc/arrow_dlpack is the crate's, target/doc/python the package's.
docs: $(VENV)/.test build
	RUSTDOCFLAGS="--deny warnings" cargo doc --no-deps --all-features
	$(BIN)/pdoc arrow_dlpack --output-directory target/doc/python

# What goes to the registries: the crate, the sdist, and the wheel, which is built from the sdist, for
# any Linux of the last ten years (zig links against an old glibc), and tried in an empty environment.
DIST := target/dist
package: $(VENV)/.test
	rm -rf $(DIST)
	cargo package --allow-dirty --all-features --package arrow-dlpack
	$(BIN)/maturin sdist --manifest-path python/Cargo.toml --out $(DIST)
	mkdir $(DIST)/sdist && tar -xzf $(DIST)/*.tar.gz -C $(DIST)/sdist --strip-components 1
	. $(BIN)/activate && CARGO_TARGET_DIR=$(abspath target/package-build) \
		maturin build --release --zig --compatibility manylinux2014 \
		--manifest-path $(DIST)/sdist/python/Cargo.toml --out $(DIST)
	$(BIN)/python python/check_package.py $(DIST)/*.whl README.md

# The wheel for free-threaded interpreters, which have no stable ABI. It takes none to build: PyO3 reads
# what it would ask one from the .cfg file.
free-threaded: $(VENV)/.test
	. $(BIN)/activate && PYO3_CONFIG_FILE=$(abspath python/free-threaded.cfg) \
		CARGO_TARGET_DIR=$(abspath target/package-build) \
		maturin build --release --zig --compatibility manylinux2014 --interpreter python3.14t \
		--manifest-path python/Cargo.toml --out $(DIST)

# The suite on an interpreter without a GIL, which is built from Debian's source of CPython (two minutes) as
# the wheel for it is. Left out is what needs a library that has no wheel for it.
FREE := target/free-threaded
free-threaded-test: free-threaded $(FREE)/.test
	$(BIN)/uv pip install --quiet --python $(FREE)/venv --reinstall --no-deps $(DIST)/*-cp314t-*.whl
	VIRTUAL_ENV=$(abspath $(FREE)/venv) CARGO_TARGET_DIR=$(abspath target/package-build) \
		$(FREE)/venv/bin/maturin develop --quiet --uv --manifest-path examples/extension/Cargo.toml
	PYTHON_GIL=0 $(FREE)/venv/bin/python -m pytest --config-file python/pyproject.toml python/tests \
		--leave-out duckdb,minarrow,paddle,polars,tensorflow

$(FREE)/.test: python/pyproject.toml python/free_threaded.sh $(VENV)/bin/uv
	python/free_threaded.sh
	$(BIN)/uv venv --quiet --clear --python $(FREE)/bin/python3.14t $(FREE)/venv
	$(BIN)/uv pip install --quiet --no-build --python $(FREE)/venv --group python/pyproject.toml:free-threaded
	touch $@

# The package as users get it, release build, installed in .venv. Cargo knows whether there is work.
build: $(VENV)/.demo
	. $(BIN)/activate && maturin develop --quiet --release --uv --manifest-path python/Cargo.toml

$(VENV)/.test: python/pyproject.toml $(VENV)/bin/uv
	$(GROUP):test
	touch $@

$(VENV)/.demo: python/pyproject.toml $(VENV)/bin/uv
	$(GROUP):demo
	touch $@

$(VENV)/.bench: python/pyproject.toml $(VENV)/bin/uv
	$(GROUP):bench
	touch $@

$(VENV)/bin/uv:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv

clean:
	rm -rf $(VENV) target
