"""The crate's public API as a list: `make api` writes docs/development/public-api.txt.

    python .ci/public_api.py [check]

A line for each public item of rustdoc's JSON with all features, by its shortest path, and one for
the traits of a type, `!Send` and the like where it lacks one. Types are named without their paths.
"""

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LIST = ROOT / "docs/development/public-api.txt"
COMMAND = "cargo rustdoc -q --lib --all-features -- -Z unstable-options --output-format json"
UNSTABLE = {"Freeze", "StructuralPartialEq"}  # traits of the compiler


def listed(parts: Iterable[str], around: str = "{}", between: str = ", ") -> str:
    return around.format(between.join(parts)) if (parts := list(parts)) else ""


def path(node: Any) -> str:
    name, args = node["path"].rpartition("::")[2], node["args"] or {}
    if sig := args.get("parenthesized"):  # of Fn
        return f"{name}({listed(map(name_of, sig['inputs']))}){returns(sig)}"
    args = args.get("angle_bracketed", {"args": (), "constraints": ()})
    found = [arg.get("lifetime") or name_of(arg["type"]) for arg in args["args"]]
    equal = [(one["name"], one["binding"]["equality"]["type"]) for one in args["constraints"]]
    return name + listed(found + [f"{name} = {name_of(one)}" for name, one in equal], "<{}>")


def bounds(nodes: Any, around: str = "{}") -> str:
    traits = [one["trait_bound"] for one in nodes if "trait_bound" in one]
    found = ["?" * (one["modifier"] == "maybe") + path(one["trait"]) for one in traits]
    return listed(found + [one["outlives"] for one in nodes if "outlives" in one], around, " + ")


def generics(node: Any) -> tuple[str, str]:
    """The parameters, and what stands behind `where`."""
    kinds = [(one["name"], one["kind"].get("type", {})) for one in node["params"]]
    own = [(name, kind) for name, kind in kinds if not kind.get("is_synthetic")]
    wheres = [one["bound_predicate"] for one in node["where_predicates"]]
    params = listed((name + bounds(kind.get("bounds", ()), ": {}") for name, kind in own), "<{}>")
    return params, listed(
        (name_of(one["type"]) + bounds(one["bounds"], ": {}") for one in wheres), " where {}"
    )


def returns(sig: Any) -> str:
    return f" -> {name_of(sig['output'])}" if sig["output"] else ""


def reference(one: Any) -> str:
    return " ".join([*filter(None, [one["lifetime"]]), *["mut"] * one["is_mutable"], ""])


def function(name: str, node: Any) -> str:
    head, sig = node["header"], node["sig"]
    words = "const " * head["is_const"] + "unsafe " * head["is_unsafe"]
    params, where = generics(node.get("generics", {"params": (), "where_predicates": ()}))
    inputs = listed(f"{name}: {name_of(one)}" for name, one in sig["inputs"])
    inputs = re.sub(r"^self: (&(?:mut )?)?Self", r"\1self", inputs)
    words += 'extern "C" ' * (head["abi"] != "Rust")
    return f"{words}fn {name}{params}({inputs}){returns(sig)}{where}"


TYPES = {
    "resolved_path": path,
    "tuple": lambda one: f"({listed(map(name_of, one))})",
    "slice": lambda one: f"[{name_of(one)}]",
    "array": lambda one: f"[{name_of(one['type'])}; {one['len']}]",
    "impl_trait": lambda one: f"impl {bounds(one)}",
    "dyn_trait": lambda one: "dyn " + " + ".join(path(each["trait"]) for each in one["traits"]),
    "borrowed_ref": lambda one: f"&{reference(one)}{name_of(one['type'])}",
    "raw_pointer": lambda one: f"*{'mut' if one['is_mutable'] else 'const'} {name_of(one['type'])}",
    "function_pointer": lambda one: function("", one),
    "qualified_path": lambda one: f"<_ as {path(one['trait'])}>::{one['name']}",
}


def name_of(node: Any) -> str:
    """A type."""
    ((kind, one),) = node.items()
    return TYPES.get(kind, str)(one)


def item(kind: str, at: str, node: Any) -> str:
    if kind == "function":
        return function(at, node)
    if kind in ("struct_field", "constant", "assoc_const"):
        return f"{kind} {at}: {name_of(node.get('type', node))}"
    if kind in ("type_alias", "assoc_type"):
        return f"type {at}" + (f" = {name_of(node['type'])}" if node["type"] else "")
    params, where = generics(node.get("generics", {"params": (), "where_predicates": ()}))
    return f"{kind} {at}{params}{bounds(node.get('bounds', ()), ': {}')}{where}"


def children(kind: str, node: Any) -> list[int]:
    found = node.get("items") or node.get("variants") or node.get("kind") or []
    if isinstance(found, dict):  # the fields of a struct or a variant
        ((_, found),) = found.items()
        found = found if isinstance(found, list) else found["fields"]
    return [one for one in found if one is not None] if isinstance(found, list) else []


def lines(items: dict[int, Any]) -> Iterator[tuple[str, str]]:
    """Each with the path that it is sorted by."""
    paths: dict[int, str] = {}
    waiting = [(next(key for key, one in items.items() if one["name"] == "arrow_dlpack"), "")]
    for key, at in waiting:  # which grows: what is nearer to the root comes first
        if key in paths:
            yield at, f"use {at} = {paths[key]}"
            continue
        paths[key], ((kind, node),) = at, items[key]["inner"].items()
        open_ended = "#[non_exhaustive] " * ("non_exhaustive" in items[key]["attrs"])
        if at:
            yield at, open_ended + item(kind, at, node)
        for child in children(kind, node):
            one = items.get(child, {"name": "", "inner": {}})
            use = one["inner"].get("use", {"name": one["name"], "id": child})
            below = f"{at}::{use['name']}".removeprefix("::")
            if use["id"] in items:
                waiting.append((use["id"], below))
            elif "source" in use:  # of another crate
                yield below, f"use {below} = {use['source']}"
    traits = defaultdict(set)
    for impl in (one["inner"]["impl"] for one in items.values() if "impl" in one["inner"]):
        own, (params, where) = name_of(impl["for"]), generics(impl["generics"])
        at = paths.get(impl["for"].get("resolved_path", {}).get("id"), own)
        for child in impl["items"] if impl["trait"] is None else ():
            ((kind, node),) = items[child]["inner"].items()
            yield f"{at}::{items[child]['name']}", item(kind, f"{at}::{items[child]['name']}", node)
        listed_here = impl["is_negative"] or not impl["is_synthetic"]
        if impl["trait"] and listed_here and not impl["blanket_impl"]:
            name = "!" * impl["is_negative"] + path(impl["trait"])
            traits[at, f"impl{params} {{}} for {own}{where}"] |= {name} - UNSTABLE - {"!Freeze"}
    for (at, text), names in traits.items():
        yield f"{at} ", text.format(", ".join(sorted(names)))


if __name__ == "__main__":
    # JSON is for nightly: the wrapper lets the toolchain at hand write it.
    env = os.environ | {"RUSTDOC": str(ROOT / ".ci/unstable-rustdoc")}
    subprocess.run(COMMAND.split(), cwd=ROOT, check=True, env=env)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    made = target / "doc/arrow_dlpack.json"
    index = json.loads(made.read_text("utf-8"))["index"].values()
    made.unlink()  # or it becomes part of the site
    found = sorted(set(lines({one["id"]: one for one in index if one["crate_id"] == 0})))
    text = "".join(f"{line}\n" for _, line in found)
    if "check" in sys.argv and text != LIST.read_text("utf-8"):
        sys.exit(f"{LIST.name} is not the public API: `make api`, and read the difference")
    LIST.write_text(text, "utf-8")
