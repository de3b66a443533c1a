"""What notebooks show of an Array, a Tensor or a Plan: ``_repr_html_``.

A notebook imports it when it shows the first one. Texts are escaped and cut. Colours are the page's
own, or such as can be read on white and on black.
"""

from collections.abc import Iterable, Sequence
from html import escape
from math import isfinite

from ._core import Array, Plan, Tensor

ROWS, COLUMNS, STEPS, REASONS, LONGEST = 5, 6, 8, 4, 160
SHARED, COPIED = "#2e9e5b", "#d07a1c"
CELL = "border:1px solid #8886;padding:2px 8px;text-align:"


def cut(text: str) -> str:
    """A text from a schema, which can be of any length, escaped."""
    return escape(text if len(text) <= LONGEST else text[: LONGEST - 1] + "…")


def nbytes(count: int) -> str:
    """As Plan has it, and in larger units where there are many."""
    text = f"{count:,} byte{'' if count == 1 else 's'}"
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.1f} {unit} ({text})"
    return text


def table(rows: Iterable[Sequence[str]]) -> str:
    """A table whose cells are HTML already."""
    lines = ("".join(f'<td style="{CELL}right">{cell}</td>' for cell in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<table style="border-collapse:collapse;font-family:monospace">{body}</table>'


def block(title: str, facts: Iterable[str], below: str = "") -> str:
    line = " · ".join(fact for fact in facts if fact)
    return f'<div style="margin:4px 0"><b>{escape(title)}</b> {line}{below}</div>'


def counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def of_array(array: Array) -> str:
    kind, name = array.type, array.field.name
    facts = [cut(kind), counted(len(array), "value")]
    if array.null_count:
        facts.append(counted(array.null_count, "null"))
    if name:
        facts.insert(0, f"<i>{cut(name)}</i>")
    # The first values are in the text, behind the type, which can have any characters.
    first = repr(array).partition(f"{kind}, ")[2].partition(": ")[2][:-1]
    below = f'<div style="font-family:monospace">{escape(first)}</div>' if first else ""
    return block(type(array).__name__, facts, below)


def number(value: object) -> str:
    if isinstance(value, float) and isfinite(value):
        return f"{value:.6g}"
    return escape(str(value))


def lines(tensor: Tensor) -> list[list[str]]:
    """The first numbers of the first matrix: of memory that is the CPU's alone, or nothing."""
    if tensor.device != "cpu" or tensor.size == 0 or len(tensor.shape) == 0:
        if tensor.device == "cpu" and tensor.size == 1:
            return [[number(tensor.item())]]
        return []
    while len(tensor.shape) > 2:
        tensor = tensor[0]
    wide = tensor.shape[-1] > COLUMNS
    if len(tensor.shape) == 1:
        return [[*map(number, tensor[:COLUMNS].tolist()), *(["…"] if wide else [])]]
    rows = [
        [*map(number, row), *(["…"] if wide else [])] for row in tensor[:ROWS, :COLUMNS].tolist()
    ]
    return rows if tensor.shape[0] <= ROWS else [*rows, ["…"] * len(rows[0])]


def of_tensor(tensor: Tensor) -> str:
    facts = [
        escape(tensor.dtype),
        f"shape {cut(str(tensor.shape))}",
        "" if tensor.is_contiguous else f"strides {cut(str(tensor.strides))}",
        escape(tensor.device),
        nbytes(tensor.nbytes),
        "read-only" if tensor.readonly else "writable",
    ]
    if tensor.field is not None:
        facts.insert(1, cut(tensor.field.type))
    try:
        first = lines(tensor)
    except BufferError:  # of a dtype that Python has no numbers for
        first = []
    return block(type(tensor).__name__, facts, table(first) if first else "")


def box(colour: str, *parts: str) -> str:
    style = f"border:2px solid {colour};border-radius:6px;padding:4px 10px;margin:2px"
    return f'<div style="{style}">{"<br>".join(parts)}</div>'


def of_plan(plan: Plan) -> str:
    """Boxes: the memory that both sides share, or that of the source, and what is written."""
    if plan.zero_copy:
        drawing = box(SHARED, "<b>source = result</b>", "the memory is shared, 0 bytes are copied")
    else:
        steps, written = plan.steps, []
        for step in steps[:STEPS]:
            reasons = [cut(reason) for reason in step.reasons]
            more = [f"and {len(reasons) - REASONS:,} more reasons"] * (len(reasons) > REASONS)
            written.append(
                box(COPIED, f"<b>{nbytes(step.nbytes)}</b> are written", *reasons[:REASONS], *more)
            )
        if rest := steps[STEPS:]:
            written.append(
                box(
                    COPIED,
                    f"{counted(len(rest), 'more step')}",
                    nbytes(sum(s.nbytes for s in rest)),
                )
            )
        arrow = '<div style="padding:0 8px">copied →</div>'
        drawing = f"{box('currentColor', '<b>source</b>')}{arrow}<div>{''.join(written)}</div>"
    row = f'<div style="display:flex;align-items:center">{drawing}</div>'
    return block(
        "Plan", ["zero-copy" if plan.zero_copy else f"copies {nbytes(plan.bytes_copied)}"], row
    )


def html(thing: Array | Tensor | Plan) -> str:
    if isinstance(thing, Array):
        return of_array(thing)
    return of_tensor(thing) if isinstance(thing, Tensor) else of_plan(thing)
