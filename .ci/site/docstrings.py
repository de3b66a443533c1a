"""Docstrings of this package as Markdown: their examples as blocks, their arguments as a list."""

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe

#: "name, other: what it is", as our docstrings list arguments.
ARGUMENT = re.compile(r"^(\w+(?:, \w+)*): (?=\S)")
#: What Markdown would take for emphasis.
SPECIAL = re.compile(r"(?<![`\w.])(__\w+__|\d+\*\*\d+)(?!`)")
#: Where the keywords of a loader are written down.
OPTIONS = "_loader.options.LoaderOptions"


class Docstrings(griffe.Extension):
    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Writes out the keywords that `takes_options` gives, which happens at run time."""
        fields = [one for one in pkg[OPTIONS].members.values() if one.is_attribute]
        kind = griffe.ParameterKind.keyword_only
        keywords = [
            griffe.Parameter(one.name, annotation=one.annotation, kind=kind, default=one.value)
            for one in fields
            if one.value is not None and "init=False" not in str(one.value)
        ]
        for function in taking(pkg):
            (decorator,) = function.decorators
            plain = [one for one in function.parameters if one.name != "options"]
            given = [one for one in keywords if f"'{one.name}'" not in str(decorator.value)]
            function.parameters = griffe.Parameters(*plain, *given)

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if isinstance(obj, griffe.Attribute) and not obj.docstring and comment(obj):
            obj.docstring = griffe.Docstring(comment(obj), parent=obj)
        if obj.docstring:
            obj.docstring.value = markdown(obj.docstring.value)

    def on_members(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Makes functions of those that the stub has as overloads alone: griffe omits them."""
        for member in obj.members.values():
            if isinstance(member, griffe.Attribute):
                member.labels -= {"module-attribute", "class-attribute", "instance-attribute"}
        if isinstance(obj, griffe.Module | griffe.Class):
            for name, overloads in list(obj.overloads.items()):
                if overloads and name not in obj.members:
                    obj.set_member(name, together(overloads))
                    del obj.overloads[name]
            if "__new__" in obj.members and "__init__" not in obj.members:
                constructor = copy.copy(obj.members["__new__"])
                constructor.name = "__init__"
                obj.set_member("__init__", constructor)


def taking(thing: griffe.Object) -> Iterator[griffe.Function]:
    """The functions that `takes_options` decorates."""
    for member in thing.members.values():
        if member.is_alias:
            continue
        if isinstance(member, griffe.Function):
            if any("takes_options" in str(one.value) for one in member.decorators):
                yield member
        else:
            yield from taking(member)


def comment(attribute: griffe.Attribute) -> str:
    """The lines above an attribute that begin with `#:`."""
    lines = Path(str(attribute.filepath)).read_text().splitlines()[: (attribute.lineno or 1) - 1]
    found: list[str] = []
    while lines and lines[-1].strip().startswith("#:"):
        found.insert(0, lines.pop().strip().removeprefix("#:").strip())
    return "\n".join(found)


def together(overloads: list[griffe.Function]) -> griffe.Function:
    """One function that takes and returns what one of the overloads does."""
    function = copy.copy(next((one for one in overloads if one.docstring), overloads[0]))
    parameters = []
    for parameter in function.parameters:
        name = parameter.name
        same = [one.parameters[name] for one in overloads if name in one.parameters]
        known = [one.default for one in same if str(one.default) != "..."]
        merged = copy.copy(parameter)
        merged.annotation = union([one.annotation for one in same])
        merged.default = known[0] if known else None
        parameters.append(merged)
    function.parameters = griffe.Parameters(*parameters)
    function.returns = union([one.returns for one in overloads])
    return function


def union(types: list[str | griffe.Expr | None]) -> str | griffe.Expr | None:
    alternatives: dict[str, Any] = {}
    for one in types:
        for part in parts(one):
            alternatives.setdefault(str(part), part)
    if "Literal['C', 'F']" in alternatives:
        alternatives.pop("Literal['C']", None)
    ordered = sorted(alternatives.values(), key=lambda part: str(part) == "None")
    result = ordered[0] if ordered else None
    for part in ordered[1:]:
        result = griffe.ExprBinOp(left=result, operator="|", right=part)
    return result


def parts(one: str | griffe.Expr | None) -> list[Any]:
    if isinstance(one, griffe.ExprBinOp) and one.operator == "|":
        return parts(one.left) + parts(one.right)
    return [] if one is None else [one]


def markdown(text: str) -> str:
    lines: list[str] = []
    inside = ""  # of "example" or "list"
    for line in text.splitlines():
        if inside == "example":
            if line.strip():
                lines.append(line)
                continue
            lines.append("```")
            inside = ""
        if line.startswith(">>>"):
            lines += [*([""] if lines and lines[-1] else []), "```pycon", line]
            inside = "example"
        elif argument := ARGUMENT.match(line):
            if inside != "list":
                lines.append("")
            names = ", ".join(f"`{name}`" for name in argument[1].split(", "))
            lines.append(f"- {names}: {line[argument.end() :]}")
            inside = "list"
        else:
            if not line.strip():
                inside = ""
            lines.append(f"  {line}" if inside == "list" else line)
        if inside != "example":
            lines[-1] = SPECIAL.sub(r"`\1`", lines[-1])
    if inside == "example":
        lines.append("```")
    return "\n".join(lines)
