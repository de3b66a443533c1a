#!/usr/bin/env bash
# The tests of the fast tier and of the Rust neighbours, built to count the lines that they run; then coverage.py.
# By `make coverage`, which has the tools, and says in LEFT_OUT which libraries the tests do without.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=$PWD/target/coverage CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0
eval "$(cargo llvm-cov show-env --sh)"
cargo llvm-cov clean --workspace

# The words of the stable compiler are not those of a nightly one.
cargo test --features ndarray --all-targets -- --skip the_compiler_names_what_to_write
cargo test --package arrow-dlpack-neighbours

# Not into .venv, but before it on the path.
path=target/coverage/python
cargo build --package arrow-dlpack-python --package arrow-dlpack-example-extension
rm -rf $path && mkdir -p $path
cp -r python/arrow_dlpack $path
cp target/coverage/debug/lib_core.so $path/arrow_dlpack/_core.abi3.so
cp target/coverage/debug/libextension.so $path/extension.abi3.so
# xdist ends a worker that takes more than ten seconds to stop, and what that ran would count as not run.
tests='import pytest, sys, xdist.workermanage as w; w.NodeManager.EXIT_TIMEOUT = 600; sys.exit(pytest.main())'
# Such a build is too slow to end a long chunk within a second.
PYTHONPATH=$PWD/$path python -c "$tests" --config-file python/pyproject.toml \
    --numprocesses 2 --dist loadfile -k "not test_ctrl_c_ends_a_long_chunk" python/tests

cargo llvm-cov report --lcov --output-path target/coverage/lcov.info
python .ci/coverage.py target/coverage/lcov.info
