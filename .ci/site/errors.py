"""The variants of Rust's `Error` as a table, from its source."""

import re
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src/error/mod.rs"
KINDS = SOURCE.with_name("kind.rs")
PLACE = "<!-- .ci/site/hooks.py inserts the variants of src/error/mod.rs here -->"

#: A variant with its documentation and the arguments of its message.
VARIANT = re.compile(
    r"((?: {4}///[^\n]*\n)+)(?: {4}#\[cfg[^\n]*\n)*"
    r" {4}#\[error\((.*?)\)\]\n {4}([A-Z]\w+)(?= \{|\(|,)",
    re.S,
)
#: The exceptions of Python that kinds of errors become, where that is not BufferError.
EXCEPTIONS = {
    "Nulls": "UnsupportedError",
    "Type": "UnsupportedError",
    "Value": "ValueError",
    "Name": "KeyError",
    "Memory": "MemoryError",
    "System": "RuntimeError",
}
STRING = re.compile(r'^\s*"((?:[^"\\]|\\.)*)"', re.S)


def table() -> str:
    text = SOURCE.read_text()
    rows = ["| variant | when | message |", "| --- | --- | --- |"]
    kinds = kinds_of(KINDS.read_text())
    found = 0
    for docs, arguments, name in VARIANT.findall(text):
        found += 1
        when = " ".join(line.strip().removeprefix("///").strip() for line in docs.splitlines())
        when = re.sub(r"\[`(?:crate::|Self::)?([\w:]+)`\]", r"`\1`", when)
        string = STRING.match(arguments)
        words = re.sub(r"\\\n\s*", "", string[1]).replace('\\"', '"') if string else ""
        words = re.sub(r"\{\.?(\w*)(?::\?)?\}", argument, words)
        python = EXCEPTIONS.get(kinds[name], "")
        title = f"`{name}`" + (f"<br>({python})" if python else "")
        cells = [title, when, words if words.strip("…") else ""]
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    if found < 50:
        raise ValueError(f"{SOURCE} was not understood: {found} variants")
    return "\n".join(rows)


def argument(it: re.Match[str]) -> str:
    return f"<var>{it[1]}</var>" if it[1].isidentifier() else "…"


def kinds_of(text: str) -> dict[str, str]:
    """The kind of each variant, by the arms of `ErrorKind::of`."""
    body = text[text.index("match error {") :]
    arms = re.findall(
        r"((?:\|?\s*Error::\w+(?:\([^)]*\)| \{ \.\. \})?\s*)+)=> \{?\s*Self::(\w+)", body
    )
    return {name: kind for names, kind in arms for name in re.findall(r"Error::(\w+)", names)}
