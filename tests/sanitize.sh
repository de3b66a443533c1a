#!/usr/bin/env bash
# The tests under memory checkers: a verb for each tool. `make sanitize` runs all of them with a
# nightly of its own, `make sanitize-changed` what a change calls for. Builds are in target/VERB.
set -euo pipefail
cd "$(dirname "$0")/.."

host=$(rustc -vV | sed -n 's/^host: //p')
# Backtraces of the panics that tests expect cost Miri minutes; in reports, files and lines are enough.
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=line-tables-only RUST_BACKTRACE=0

# The core of the Python suite: what reaches the unsafe modules. None of it imports PyTorch or its like, for
# which valgrind would take half an hour.
core=(python/tests/test_{capsules,exchange,malformed,protocol,sources,ffi_import}.py)

# Undefined behaviour of any kind, step by step: use after free, out of bounds, aliasing, what was never
# written, races, leaks. Pointers made of addresses are let pass, for the tests' sake. Tests read files.
miri() {
    export CARGO_TARGET_DIR=target/miri MIRI_SYSROOT=$PWD/target/miri/sysroot
    export MIRIFLAGS="-Zmiri-permissive-provenance -Zmiri-disable-isolation"
    [ -d "$MIRI_SYSROOT" ] || cargo miri setup --quiet
    cargo miri test --features ndarray "$@"
}

miri-lib() {
    miri --lib
}

miri-tests() {
    miri --test '*'
}

miri-docs() {
    miri --doc
}

# Out of bounds, use after free, freed twice, left behind: in Rust and from Python. Frame pointers tell who
# allocated what; some tests ask for more memory than there is.
address() {
    address_rust
    python
}

python() {
    instrumented
    # An extension module looks for the runtime in the interpreter, where LD_PRELOAD puts it. Rust has it as
    # an archive, which takes offence at being a library if that is called libasan.so.
    package "$host/debug" --target "$host"
    local runtime=$PWD/target/address/runtime archive=target/address/runtime.a
    cp "$(rustc --print sysroot)/lib/rustlib/$host/lib/"librustc-*_rt.asan.a $archive
    ar d $archive asan_preinit.cpp.o # is for executables
    cc -shared -o "$runtime" -Wl,--whole-archive $archive -Wl,--no-whole-archive -lm -lgcc_s
    ASAN_OPTIONS+=:abort_on_error=1:exitcode=0:log_path=$PWD/$CARGO_TARGET_DIR/report
    # A test calls itself a thousand levels deep, and these frames have margins around everything.
    ulimit -s 65536
    suite env LD_PRELOAD="$runtime"
}

address_rust() {
    instrumented
    cargo test --features ndarray --tests --target "$host"
}

instrumented() {
    export CARGO_TARGET_DIR=target/address RUSTFLAGS="-Zsanitizer=address -Cforce-frame-pointers=yes"
    export ASAN_OPTIONS=allocator_may_return_null=1
}

# Memory that two threads use at once. The standard library is built along, because it is what
# synchronises; not so the interpreter: this is for Rust only. The kernels' own tests know no threads.
thread() {
    export CARGO_TARGET_DIR=target/thread RUSTFLAGS=-Zsanitizer=thread
    export TSAN_OPTIONS=allocator_may_return_null=1
    cargo test -Zbuild-std --features ndarray --tests --target "$host" -- --skip kernels::
}

# Out of bounds, use after free, left behind, and decisions on what was never written: also where the
# interpreter and its libraries do it with memory of ours. What they do by themselves is in valgrind.supp,
# but for CPython, whose memory is written to as soon as it is allocated: it looks at digits of ints that
# have none.
valgrind() {
    export CARGO_TARGET_DIR=target/valgrind
    package debug
    suite env PYTHONMALLOC=malloc_debug \
        valgrind --quiet --fair-sched=yes --num-callers=40 --suppressions=tests/valgrind.supp \
        --error-exitcode=9 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=none \
        --log-file="$CARGO_TARGET_DIR/report.%p"
}

# The modules that are all pointers, step by step.
memory() {
    miri --lib -- tensor:: alloc:: kernels::simd
    miri --test adopt
}

# What every change has: the tools that look at unsafe modules, where something in them, or under them, is new since
# the commit that the slow tier's part passed at.
changed() {
    if is_new sanitize-miri-lib src/tensor src/alloc src/kernels/simd.rs src/{ffi,layout,fence}.rs tests/adopt.rs; then
        make sanitize-memory
    fi
    local unsafe
    mapfile -t unsafe < <(grep -rl --include=*.rs 'expect(unsafe_code' src/python)
    if is_new sanitize-address "${unsafe[@]}"; then
        make sanitize-python
    fi
}

# is_new PART PATH...: it says why, or why not.
is_new() {
    local since files
    since=$(.venv/bin/python .ci/slow.py commit "$1")
    if [ -z "$since" ]; then
        echo "sanitize-changed: docs/development/slow-tier.md has no commit that $1 passed at and git knows: all of it"
        return 0
    fi
    files=$(git diff --name-only "$since" -- "${@:2}") || files="what git does not say"
    if [ -z "$files" ]; then
        echo "sanitize-changed: nothing new for $1 since $since"
        return 1
    fi
    echo "sanitize-changed: new for $1 since $since: ${files//$'\n'/ }"
}

# Builds the extension module and puts the package together: `package FOLDER OPTIONS...`
package() {
    export PYTHONPATH=$PWD/$CARGO_TARGET_DIR/site
    PYO3_BUILD_EXTENSION_MODULE=1 PYO3_PYTHON=.venv/bin/python \
        cargo build --package arrow-dlpack-python "${@:2}"
    mkdir -p "$PYTHONPATH"
    cp -r python/arrow_dlpack "$PYTHONPATH"
    cp "$CARGO_TARGET_DIR/$1/lib_core.so" "$PYTHONPATH/arrow_dlpack/_core.abi3.so"
}

# Runs the core of the Python suite under a command that writes reports. The interpreter and others leave
# things behind: a leak counts if one of our frames is on its stack.
suite() {
    local reports=(find "$CARGO_TARGET_DIR" -maxdepth 1 -name "report.*")
    "${reports[@]}" -delete
    # Left out: a test that has addresses used again, which these tools put off.
    PYTHONMALLOC=malloc PYTHONDONTWRITEBYTECODE=1 "$@" .venv/bin/python -m pytest \
        --config-file python/pyproject.toml -p no:cacheprovider "${core[@]}" \
        -k "not at_a_dead_ones_address" || { "${reports[@]}" -exec head --lines 100 {} +; return 1; }
    "${reports[@]}" -exec sed 's/^==[0-9]*== *//' {} + |
        awk 'BEGIN { RS = "" }
            /definitely lost|leak of/ && /arrow_dlpack(::|[0-9]|\/_core)/ { print $0 "\n"; lost = 1 }
            END { exit lost }'
}

"$@"
