"""Values of every Arrow type: what rules on all types go through."""

from decimal import Decimal
from typing import Any

from dlpack_conformance.abi.arrow import NULLABLE
from dlpack_conformance.kit.arrow_field import Field

KEY_VALUE = Field("+s", "entries", (Field("u", "key", flags=0), Field("i", "value")), flags=0)
TEXTS = ["a", None, "a text of more than twelve bytes", "", "and one of these"]
BYTES = [None if text is None else text.encode() for text in TEXTS]
LISTED = [[1, 2], None, [], [3, None, 4]]
DECIMALS = [Decimal("1.25"), None, Decimal("-3.50")]


def arrow_cases() -> list[tuple[Field, list[Any]]]:
    """(type, values)."""
    item, x, y = Field("i", "item"), Field("i", "x"), Field("u", "y")
    runs = (Field("i", "run_ends", flags=0), Field("u", "values"))
    flat: list[tuple[str, list[Any]]] = [("n", [None] * 4), ("b", [True, None, False, True])]
    flat += [(form, [1, None, 3, 4]) for form in "cCsSiIlL"]
    flat += [(form, [1.0, None, 3.5, 2.0]) for form in "efg"]
    flat += [(form, TEXTS) for form in ("u", "U", "vu")]
    flat += [(form, BYTES) for form in ("z", "Z", "vz")]
    flat += [("w:3", [b"abc", None, b"xyz"]), ("tin", [(1, 2, 3000), None, (4, 5, 6000)])]
    flat += [("tiM", [1, None, 3]), ("tiD", [(1, 2), None, (3, 4)])]
    flat += [(f"d:{size}", DECIMALS) for size in ("19,2", "9,2,32", "18,2,64", "40,2,256")]
    flat += [("tdm", [86400000, None, 0]), ("tdD", [1, None, 5])]
    flat += [(form, [1, None, 5]) for form in ("tts", "ttm", "ttu", "ttn")]
    flat += [(form, [1, None, 5]) for form in ("tss:", "tsm:", "tsu:", "tsn:", "tsu:UTC")]
    flat += [(form, [1, None, 5]) for form in ("tDs", "tDm", "tDu", "tDn")]
    cases = [(Field(form), values) for form, values in flat]
    cases += [(Field(form, children=(item,)), LISTED) for form in ("+l", "+L", "+vl", "+vL")]
    cases += [(Field("+w:2", children=(item,)), [[1, 2], None, [3, 4], [5, None]])]
    pairs = [[("a", 1), ("b", None)], None, [], [("c", 3)]]
    cases += [(Field("+m", children=(KEY_VALUE,)), pairs)]
    rows = [{"x": 1, "y": "a"}, None, {"x": 2, "y": None}, {"x": 3, "y": "b"}]
    cases += [(Field("+s", children=(x, y)), rows)]
    cases += [(Field("+r", children=runs), ["a", "a", None, None, "b", "b", "c"])]
    unions = [Field(form, children=(x, y), flags=NULLABLE) for form in ("+us:4,5", "+ud:4,5")]
    cases += [(union, [1, "a", 2, "b", None]) for union in unions]
    cases += [(Field(form, dictionary=Field("u")), ["x", None, "y", "x"]) for form in "ci"]
    return cases
