"""The variants of Rust's `Error` as a table, from its source."""

import re
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src/error/mod.rs"
PLACE = "<!-- .ci/site/hooks.py inserts the variants of src/error/mod.rs here -->"

#: A variant with its documentation and the arguments of its message.
VARIANT = re.compile(
    r"((?: {4}///[^\n]*\n)+)(?: {4}#\[cfg[^\n]*\n)*"
    r" {4}#\[error\((.*?)\)\]\n {4}([A-Z]\w+)(?= \{|\(|,)",
    re.S,
)
STRING = re.compile(r'^\s*"((?:[^"\\]|\\.)*)"', re.S)


def table() -> str:
    text = SOURCE.read_text()
    rows = ["| variant | when | message |", "| --- | --- | --- |"]
    values, types = (named(text, name) for name in ("is_wrong_value", "is_type_refusal"))
    found = 0
    for docs, arguments, name in VARIANT.findall(text):
        found += 1
        when = " ".join(line.strip().removeprefix("///").strip() for line in docs.splitlines())
        when = re.sub(r"\[`(?:crate::|Self::)?([\w:]+)`\]", r"`\1`", when)
        string = STRING.match(arguments)
        words = re.sub(r"\\\n\s*", "", string[1]).replace('\\"', '"') if string else ""
        words = re.sub(r"\{\.?(\w*)(?::\?)?\}", argument, words)
        python = "UnsupportedError" if name in types else "ValueError" if name in values else ""
        title = f"`{name}`" + (f"<br>({python})" if python else "")
        cells = [title, when, words if words.strip("…") else ""]
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    if found < 50:
        raise ValueError(f"{SOURCE} was not understood: {found} variants")
    return "\n".join(rows)


def argument(it: re.Match[str]) -> str:
    return f"<var>{it[1]}</var>" if it[1].isidentifier() else "…"


def named(text: str, function: str) -> set[str]:
    body = text[text.index(f"fn {function}") :]
    return set(re.findall(r"Self::(\w+)", body[: body.index("\n    }\n")]))
