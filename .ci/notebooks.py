"""Runs the notebooks of docs/notebooks, each in its own interpreter, and keeps what they show.

    python .ci/notebooks.py [--check] [path ...]

Cells run from top to bottom in the notebook's folder. Their outputs are written into the file: what
is printed, the last expression, and matplotlib's figures. With --check the file stays as it is, and
the program fails where an output has other words or lines than the file: numbers may differ.
"""

import ast
import base64
import contextlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
NUMBER = re.compile(r"[-+]?\d[\d,.]*(e[-+]?\d+)?")


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--one"]:
        run(Path(arguments[1]), is_check="--check" in arguments)
        return
    paths = [path for path in arguments if path != "--check"] or sorted(FOLDER.glob("*.ipynb"))
    check = ["--check"] if "--check" in arguments else []
    environment = {"MPLBACKEND": "agg"} | os.environ
    for path in paths:
        one = [sys.executable, __file__, "--one", str(Path(path).absolute()), *check]
        subprocess.run(one, check=True, env=environment)


def run(path: Path, is_check: bool) -> None:
    notebook = json.loads(path.read_text())
    os.chdir(path.parent)
    names: dict[str, Any] = {"__name__": "__main__"}
    number = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        number += 1
        outputs = outputs_of("".join(cell["source"]), names, number)
        if is_check and texts(outputs) != texts(cell["outputs"]):
            sys.exit(
                f"{path.name}, cell {number} shows\n{texts(outputs)}\nwhere the file has\n"
                f"{texts(cell['outputs'])}\nrun python .ci/notebooks.py"
            )
        cell["execution_count"], cell["outputs"] = number, outputs
    if not is_check:
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


def outputs_of(source: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    tree = ast.parse(source)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";"):
        last = ast.Expression(tree.body.pop().value)
    place = f"cell {number}"
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, place, "exec"), names)
        value = None if last is None else eval(compile(last, place, "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        outputs.append({"output_type": "stream", "name": "stdout", "text": text})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = value._repr_html_().splitlines(keepends=True)
        result = {"output_type": "execute_result", "execution_count": number}
        outputs.append(result | {"data": data, "metadata": {}})
    return outputs + figures()


def figures() -> list[dict[str, Any]]:
    """Those that are open, which are closed."""
    if "matplotlib.pyplot" not in sys.modules:
        return []
    plt = sys.modules["matplotlib.pyplot"]
    outputs = []
    for number in plt.get_fignums():
        file = io.BytesIO()
        plt.figure(number).savefig(file, dpi=80, bbox_inches="tight", metadata={"Software": None})
        png = base64.b64encode(file.getvalue()).decode()
        data = {"image/png": png, "text/plain": ["<Figure>"]}
        outputs.append({"output_type": "display_data", "data": data, "metadata": {}})
    plt.close("all")
    return outputs


def texts(outputs: list[dict[str, Any]]) -> str:
    """Words and lines, without numbers and the spaces that align them."""
    parts = [output.get("text") or output["data"]["text/plain"] for output in outputs]
    text = "\n".join("".join(part) for part in parts)
    return re.sub(r"[ \t]+", " ", NUMBER.sub("0", text))


if __name__ == "__main__":
    main(sys.argv[1:])
