"""Builds the wheels of a release, for every platform, on Linux x86-64: `make wheels`.

    python .ci/wheels.py build [NAME...]       builds these, or all, into target/wheels
    python .ci/wheels.py table                 checks what is there, and writes it down
    python .ci/wheels.py tidy TARGET WHEEL...  takes out what differs from machine to machine
    python .ci/wheels.py repeat                builds one in two folders: one hash
    python .ci/wheels.py rustflags             what hides this machine's folders in a build

Cargo, rustup and the tools of the dependency group `release` have to be there; zig, one of those,
links for all platforms. A release's workflow builds on machines of their kind instead, and tidies
what they have built. The table is in docs/development/wheels.md.
"""

import base64
import csv
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import licences

ROOT = Path(__file__).parents[1]
OUT = ROOT / "target" / "wheels"
PAGE = ROOT / "docs" / "development" / "wheels.md"
TOOLS = Path(sys.executable).parent


@dataclass(frozen=True)
class Wheel:
    name: str
    target: str
    #: How the file's name ends, by which it is found again.
    tag: str
    options: tuple[str, ...] = ()
    rustflags: str = ""


ZIG = "--zig"
MANYLINUX = (ZIG, "--compatibility", "manylinux2014")
MUSLLINUX = (ZIG, "--compatibility", "musllinux_1_2")
MACOS = (ZIG, "--interpreter", "python3.11")
#: Where zig finds the one framework that is linked with.
FRAMEWORKS = f"-Clink-arg=-F{ROOT / '.ci' / 'macos'}"
WHEELS = [
    Wheel("linux-x86_64", "x86_64-unknown-linux-gnu", "abi3-manylinux*_x86_64", MANYLINUX),
    Wheel("linux-aarch64", "aarch64-unknown-linux-gnu", "abi3-manylinux*_aarch64", MANYLINUX),
    Wheel("linux-i686", "i686-unknown-linux-gnu", "abi3-manylinux*_i686", MANYLINUX),
    Wheel("musl-x86_64", "x86_64-unknown-linux-musl", "abi3-musllinux*_x86_64", MUSLLINUX),
    Wheel("musl-aarch64", "aarch64-unknown-linux-musl", "abi3-musllinux*_aarch64", MUSLLINUX),
    Wheel("macos-arm64", "aarch64-apple-darwin", "abi3-macosx*_arm64", MACOS, FRAMEWORKS),
    Wheel("macos-x86_64", "x86_64-apple-darwin", "abi3-macosx*_x86_64", MACOS, FRAMEWORKS),
    Wheel("windows-x86_64", "x86_64-pc-windows-gnullvm", "abi3-win_amd64"),
    Wheel("windows-arm64", "aarch64-pc-windows-gnullvm", "abi3-win_arm64"),
    # For interpreters without a GIL: 3.14, and from 3.15 on the stable ABI of both kinds. The
    # latter is not released before a 3.15 has run the suite.
    Wheel(
        "linux-x86_64-3.14t",
        "x86_64-unknown-linux-gnu",
        "cp314t-manylinux*_x86_64",
        (*MANYLINUX, "--interpreter", "python3.14t"),
    ),
    Wheel(
        "linux-x86_64-abi3t",
        "x86_64-unknown-linux-gnu",
        "abi3.abi3t-manylinux*_x86_64",
        (*MANYLINUX, "--interpreter", "python3.15t", "--features", "pyo3/abi3t-py315"),
    ),
]


def run(*command: object, cwd: Path = ROOT, **variables: str) -> None:
    words = [str(word) for word in command]
    subprocess.run(words, cwd=cwd, env=os.environ | variables, check=True)


def said(*command: object, cwd: Path = ROOT) -> str:
    words = [str(word) for word in command]
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=True).stdout.strip()


def epoch() -> str:
    """The time that files in a wheel have, and its SBOM: that of the commit."""
    return os.environ.get("SOURCE_DATE_EPOCH") or said("git", "log", "-1", "--format=%ct")


def remapped(root: Path) -> str:
    """What rustc is to write for the folders of this machine, in the messages of panics."""
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    registries = sorted((home / "registry" / "src").glob("*"))
    folders = [(root, "arrow-dlpack"), *((registry, "crates") for registry in registries)]
    return " ".join(f"--remap-path-prefix={folder}={name}" for folder, name in folders)


def build(wheel: Wheel, root: Path = ROOT, out: Path = OUT) -> Path:
    """Its folder is deleted afterwards: all of them are many gigabytes."""
    folder = root / "target" / "wheels-build" / wheel.name
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob(f"*-{wheel.tag}.whl"):
        old.unlink()
    run("rustup", "target", "add", wheel.target)
    # By its own command, because maturin would add nothing to a registry that is empty yet.
    run("cargo", "fetch", "--locked", "--target", wheel.target, cwd=root)
    linker = {} if ZIG in wheel.options else zig_as_linker(wheel.target)
    run(
        *(TOOLS / "maturin", "build", "--release", "--locked", "--compression-level", "9"),
        *("--target", wheel.target, *wheel.options),
        *("--manifest-path", root / "python" / "Cargo.toml", "--out", out),
        cwd=root,
        CARGO_TARGET_DIR=str(folder),
        RUSTFLAGS=f"{remapped(root)} {wheel.rustflags}".strip(),
        SOURCE_DATE_EPOCH=epoch(),
        PATH=f"{TOOLS}{os.pathsep}{os.environ['PATH']}",
        **linker,
    )
    shutil.rmtree(folder)
    (built,) = out.glob(f"*-{wheel.tag}.whl")
    tidy(built, wheel.target)
    return built


def zig_as_linker(target: str) -> dict[str, str]:
    """As maturin's --zig, which for Windows exports PyInit_arrow_dlpack._core, a function that no
    module of a package has."""
    script = ROOT / "target" / f"zig-{target}"
    zig_target = target.replace("-pc-windows-gnullvm", "-windows-gnu")
    zig = f'exec "{TOOLS}/maturin" zig cc -- -fno-sanitize=all -target {zig_target} "$@"'
    script.write_text(f"#!/bin/sh\n{zig}\n", "utf-8")
    script.chmod(0o755)
    name = target.upper().replace("-", "_")
    return {f"CARGO_TARGET_{name}_LINKER": str(script)}


def tidy(path: Path, target: str) -> None:
    """Files in one order, and an SBOM that says the same wherever and whenever it was made."""
    with zipfile.ZipFile(path) as archive:
        infos = sorted(archive.infolist(), key=lambda info: info.filename)
        files = {info.filename: archive.read(info) for info in infos}
    (sbom,) = (name for name in files if "/sboms/" in name)
    (record,) = (name for name in files if name.endswith(".dist-info/RECORD"))
    files[sbom] = tidy_sbom(files[sbom], target)
    files[record] = record_of(files, record)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for info in infos:
            archive.writestr(info, files[info.filename], zipfile.ZIP_DEFLATED, 9)


def tidy_sbom(data: bytes, target: str) -> bytes:
    """Without its serial number, which is random, the time and folders of the build, and crates
    that are in the lockfile but not in this wheel."""
    sbom = json.loads(data)
    sbom.pop("serialNumber", None)
    time = datetime.fromtimestamp(int(epoch()), UTC)
    sbom["metadata"]["timestamp"] = time.strftime("%Y-%m-%dT%H:%M:%SZ")
    own = sbom["metadata"]["component"]
    crates = licences.linked(target) - {(own["name"], own["version"])}
    parts = [part for part in sbom["components"] if (part["name"], part["version"]) in crates]
    if missing := crates - {(part["name"], part["version"]) for part in parts}:
        sys.exit(f"the SBOM for {target} lacks {sorted(missing)}")
    names = {part["bom-ref"] for part in [own, *parts]}
    sbom["components"] = parts
    sbom["dependencies"] = [
        dependency | {"dependsOn": sorted(names.intersection(dependency.get("dependsOn", [])))}
        for dependency in sbom["dependencies"]
        if dependency["ref"] in names
    ]
    # A crate of this repository is named by its folder: path+file:///home/me/arrow-dlpack/python
    (folder,) = re.findall(r"^path\+file://(.*)/python#", own["bom-ref"])
    text = json.dumps(sbom, indent=2)
    return text.replace(f"path+file://{folder}", "path+file:///arrow-dlpack").encode() + b"\n"


def record_of(files: dict[str, bytes], record: str) -> bytes:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    for name, data in files.items():
        if name != record:
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.writerow([name, f"sha256={digest}", len(data)])
    rows.writerow([record, "", ""])
    return text.getvalue().encode()


def found(wheel: Wheel, out: Path = OUT) -> Path | None:
    return next(iter(sorted(out.glob(f"*-{wheel.tag}.whl"))), None)


def checked(path: Path) -> dict[str, str]:
    """What each checker says of it, in a word or two; one that refuses it ends this."""
    said_by = {"abi3audit": "-", "auditwheel": "-"}
    if "-abi3" in path.name:
        said_by["abi3audit"] = abi3audit(path)
    said(TOOLS / "check-wheel-contents", path)
    said(TOOLS / "twine", "check", "--strict", path)
    if "-manylinux" in path.name:
        said_by["auditwheel"] = auditwheel(path)
    if paths := paths_of_this_machine(path):
        sys.exit(f"{path.name}: has the paths {', '.join(sorted(paths)[:5])}")
    if "abi3t" not in path.name:  # which is not released yet
        run(sys.executable, ROOT / "python" / "check_package.py", path)
    return said_by | {"check-wheel-contents": "ok", "twine": "ok"}


#: Where an interpreter from 3.15 on begins with a module (PEP 793), for abi3audit 0.0.26 a call.
EXPORT = "PyModExport__core"


def abi3audit(path: Path) -> str:
    command = [TOOLS / "abi3audit", "--report", path]
    audit = subprocess.run(command, capture_output=True, text=True, check=False)
    ((_, one),) = json.loads(audit.stdout)["specs"].items()
    found = [module["result"] for module in one["wheel"]]
    violations = {symbol for module in found for symbol in module["non_abi3_symbols"]} - {EXPORT}
    if violations or not all(module["is_abi3_baseline_compatible"] for module in found):
        sys.exit(f"{path.name}: abi3audit says {audit.stdout}")
    return f"0 violations, computed {found[0]['computed']}"


def auditwheel(path: Path) -> str:
    words = " ".join(said(TOOLS / "auditwheel", "show", path).split())
    return re.search(r'following platform tag: "([\w.]+)"', words)[1]


def paths_of_this_machine(path: Path) -> set[str]:
    """Folders of this repository, of this user and of Cargo's registry in any file of the wheel."""
    folders = "|".join(re.escape(str(folder)) for folder in (ROOT, Path.home()))
    pattern = re.compile(rf"(?:{folders}|[\w./-]*/registry/src)[\w./-]*".encode())
    with zipfile.ZipFile(path) as archive:
        return {
            match.decode()
            for name in archive.namelist()
            for match in pattern.findall(archive.read(name))
        }


def parts_of(path: Path) -> int:
    """How many crates its SBOM has."""
    with zipfile.ZipFile(path) as archive:
        (sbom,) = (name for name in archive.namelist() if "/sboms/" in name)
        return len(json.loads(archive.read(sbom))["components"])


def table(out: Path = OUT) -> str:
    lines = [
        "| wheel | bytes | abi3audit | auditwheel | check-wheel-contents, twine | crates |",
        "|---|---|---|---|---|---|",
    ]
    for wheel in WHEELS:
        if path := found(wheel, out):
            says = checked(path)
            cells = [says["abi3audit"], says["auditwheel"], says["twine"], str(parts_of(path))]
            lines.append(f"| `{path.name}` | {path.stat().st_size:,} | {' | '.join(cells)} |")
        else:
            lines.append(f"| {wheel.name} | not built | | | | |")
    return "\n".join(lines)


def repeat() -> None:
    """Clones of the last commit: what is not committed is no part of a release."""
    wheel, hashes = WHEELS[0], set()
    for folder in ("one", "two/deeper"):
        root = ROOT / "target" / "repeat" / folder
        shutil.rmtree(root, ignore_errors=True)
        run("git", "clone", "--quiet", "--no-hardlinks", ROOT, root)
        built = build(wheel, root, root / "wheels")
        if paths := paths_of_this_machine(built):
            sys.exit(f"{built}: has the paths {sorted(paths)}")
        digest = hashlib.sha256(built.read_bytes()).hexdigest()
        print(f"{digest}  {built}", flush=True)
        hashes.add(digest)
    if len(hashes) > 1:
        sys.exit("wheels: two builds, two hashes")


def write(name: str, text: str) -> None:
    """Puts a table into the page, between the two comments that it has for it."""
    page = PAGE.read_text("utf-8")
    begin, end = f"<!-- made by `make {name}` -->\n", "\n<!-- until here -->"
    head, _, rest = page.partition(begin)
    _, _, tail = rest.partition(end)
    if not tail:
        sys.exit(f"{PAGE.name} has no place for what `make {name}` makes")
    PAGE.write_text(f"{head}{begin}\n{text}\n{end}{tail}", "utf-8")


def main(verb: str, *names: str) -> None:
    if verb == "build":
        wanted = [wheel for wheel in WHEELS if not names or wheel.name in names]
        for wheel in wanted:
            print(f"{build(wheel).name}", flush=True)
    elif verb == "table":
        made = table()
        print(made)
        write("wheels", made)
        if "not built" in made:
            sys.exit("wheels: not all are built")
    elif verb == "tidy":
        target, *paths = names
        for path in paths:
            tidy(Path(path), target)
    elif verb == "repeat":
        repeat()
    elif verb == "rustflags":
        print(remapped(ROOT))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
