# The two commands are `make demo` and `make test`. Everything they make is in .venv and target.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python
GROUP := $(INSTALL) --group python/pyproject.toml

.PHONY: demo test test-rust test-python lint docs build clean
.DELETE_ON_ERROR:

# Real Arrow columns into tensors and back, in front of your eyes.
demo: build
	$(BIN)/python examples/flights.py

# The proof, against the real libraries.
test: test-rust test-python

# The Python rooms need an interpreter around them: they are tested from Python.
test-rust: $(VENV)/.test
	cargo test --all-targets
	cargo test --doc
	cargo run --quiet --example flights

test-python: $(VENV)/.test build
	PYO3_BUILD_EXTENSION_MODULE=1 PYO3_PYTHON=$(abspath $(BIN)/python) \
		cargo build --example extension --features pyo3
	$(BIN)/pytest --config-file python/pyproject.toml python/tests

lint: $(VENV)/.test
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --all-features -- --deny warnings
	$(BIN)/ruff check --config python/pyproject.toml python examples
	$(BIN)/ruff format --check --config python/pyproject.toml python examples

docs: $(VENV)/bin/uv
	RUSTDOCFLAGS="--deny warnings" cargo doc --no-deps --all-features

# The package as users get it, release build, installed in .venv. Cargo knows whether there is work.
build: $(VENV)/.demo
	. $(BIN)/activate && maturin develop --quiet --release --uv --manifest-path python/Cargo.toml

$(VENV)/.test: python/pyproject.toml $(VENV)/bin/uv
	$(GROUP):test
	touch $@

$(VENV)/.demo: python/pyproject.toml $(VENV)/bin/uv
	$(GROUP):demo
	touch $@

$(VENV)/bin/uv:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv

clean:
	rm -rf $(VENV) target
