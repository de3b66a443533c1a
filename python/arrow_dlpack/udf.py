"""Functions over tensors, in the queries of DataFusion and DuckDB.

>>> import datafusion, numpy as np
>>> from arrow_dlpack.udf import Input, tensor_udf

>>> @tensor_udf([Input("v", columns=["x", "y"])])
... def norm(v):
...     return np.sqrt((v * v).sum(axis=1))

>>> engine = datafusion.SessionContext()  # or duckdb.connect()
>>> norm.register(engine)
>>> engine.sql("SELECT norm(3, 4) AS a, norm(5, NULL) AS b").to_pydict()
{'a': [5.0], 'b': [None]}

``docs/guides/queries.md`` in the repository has models, and shapes.
"""

# ruff: noqa: PLC0415 (only queries need pyarrow and the engines)

import math
import operator
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, final

from . import _frameworks
from ._core import _dtype_name
from ._frameworks import Framework
from ._items import items_of
from .typing import Dtype, Nulls

__all__ = ["Framework", "Input", "Output", "TensorUdf", "tensor_udf"]

#: What becomes of rows with nulls: they do not reach the function, or as in `to_tensor`.
RowNulls: TypeAlias = Nulls | Literal["propagate", "mask"]

#: The elements that columns have, and what DuckDB calls them.
_DUCKDB = {
    "bool": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint8": "UTINYINT",
    "uint16": "USMALLINT",
    "uint32": "UINTEGER",
    "uint64": "UBIGINT",
    "float16": "",
    "float32": "FLOAT",
    "float64": "DOUBLE",
}

#: Values of a fixed-size list, which a row is in Arrow.
_MOST = 2**31 - 1


class Input(NamedTuple):
    """One tensor that a function takes, and the arguments of SQL that it is made of.

    name: what error messages call the input, and the name of its argument if there are no columns.
    dtype: of the tensor: "float32", or any other dtype that to_tensor takes.
    shape: the extents of one row, without the axis of rows, which the tensor has before these. ()
    for one number a row.
    columns: the names of as many arguments. Each is a number; they are put side by side to a
    matrix (rows, columns), which is a copy. If there are none, the input is one argument: a number,
    or a row with `shape`, which is no copy for NumPy.
    accepts: the dtype of the arguments, where it is not that of the tensor: with "float64" columns
    of doubles are taken, and converted. None: dtype. The engine casts other columns to it where it
    casts by itself, and refuses the rest.
    kind: the Arrow type of arguments with a shape of several axes in DataFusion. DuckDB has lists:
    (2, 3) is ``FLOAT[3][2]``.
    """

    name: str
    dtype: Dtype = "float32"
    shape: Sequence[int] = ()
    columns: Sequence[str] = ()
    accepts: Dtype = None
    kind: Literal["fixed_shape_tensor", "fixed_size_list"] = "fixed_shape_tensor"

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of its arguments."""
        return tuple(self.columns) or (self.name,)

    @property
    def row(self) -> tuple[int, ...]:
        """The extents of one row of an argument."""
        return () if self.columns else tuple(self.shape)


class Output(NamedTuple):
    """The tensor that a function returns, and the column that it becomes.

    dtype: of the tensor. Nothing is converted: a tensor of another dtype is an error.
    shape: the extents of one row, without the axis of rows; () for one number a row.
    kind: the Arrow type of rows with a shape in DataFusion. DuckDB has lists.
    """

    dtype: Dtype = "float32"
    shape: Sequence[int] = ()
    kind: Literal["fixed_shape_tensor", "fixed_size_list"] = "fixed_shape_tensor"


def tensor_udf(
    inputs: Sequence[Input],
    output: Output | None = None,
    *,
    framework: Framework = "numpy",
    nulls: RowNulls = "propagate",
    state: Callable[[], Any] | None = None,
    batch_rows: int | None = None,
    volatile: bool = False,
    name: str | None = None,
) -> "Callable[[Callable[..., Any]], TensorUdf]":
    """Makes a function of tensors a scalar function of SQL.

    >>> import numpy as np
    >>> from arrow_dlpack.udf import Input, tensor_udf
    >>> from datafusion import SessionContext

    >>> def load():  # a model, say: once, when the first batch comes
    ...     return np.array([0.01, 0.5], np.float32)

    >>> @tensor_udf([Input("features", columns=["distance", "hour"])], state=load)
    ... def delay(weights, features):
    ...     return features @ weights

    >>> context = SessionContext()
    >>> delay.register(context)
    >>> query = "SELECT delay(d, h) AS delay FROM (VALUES (200, 6), (NULL, 7)) AS t (d, h)"
    >>> context.sql(query).to_pydict()
    {'delay': [5.0, None]}

    The function gets a tensor of each batch's rows for each input, after what `state` made, if
    that is given. Those of NumPy share the batch's memory where that is possible, read-only; those
    of others are copies, to which the function may write. It returns a tensor of as many rows, in
    the dtype and the shape of `output`: a float32 a row if that is not given. That becomes the
    column, where possible without a copy: it is not to be written to again. Several threads may
    call the function at once.

    Null in, null out: a row with a null anywhere in its arguments, within a list too, does not
    reach the function, and its result is null. With ``nulls="error"``, ``"nan"`` or a number, nulls
    are refused or filled; with ``"mask"`` each input is a pair of tensors, values and a mask that
    is True where they are valid.

    `framework` says whose the tensors are; it is imported when the first batch comes. A function
    that takes no more rows at a time than `batch_rows` gets larger batches in slices. One that has
    other results for the same rows is `volatile`. `name` is what SQL calls it, if not what Python
    does; a name that the engine reads as a built-in function is refused by `register`.
    """

    # An Input is a tuple itself.
    is_list = isinstance(inputs, Iterable) and not isinstance(inputs, Input)
    described = tuple(items_of("inputs", inputs)) if is_list else ()
    if not is_list or not all(isinstance(input, Input) for input in described):
        raise TypeError(f"inputs must be a list of Input, got {inputs!r}")
    if output is not None and not isinstance(output, Output):
        raise TypeError(f'output must be an Output, as Output("float32") is one, got {output!r}')
    if state is not None and not callable(state):
        raise TypeError(f"state must be a function that makes the first argument, got {state!r}")

    def decorate(function: Callable[..., Any]) -> TensorUdf:
        return TensorUdf(
            function,
            name=name or function.__name__,
            inputs=described,
            output=output or Output(),
            framework=framework,
            nulls=nulls,
            state=state,
            batch_rows=batch_rows,
            volatile=volatile,
        )

    return decorate


@final
class TensorUdf:
    """What `tensor_udf` makes of a function. It takes Arrow columns and returns a pyarrow array."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str,
        inputs: Sequence[Input],
        output: Output,
        framework: Framework,
        nulls: RowNulls,
        state: Callable[[], Any] | None,
        batch_rows: int | None,
        volatile: bool,
    ) -> None:
        if not inputs:
            raise ValueError(f"{name}: a function of tensors needs an input")
        if batch_rows is not None and not isinstance(batch_rows, int):
            raise TypeError(f"{name}: batch_rows must be a number of rows, got {batch_rows!r}")
        if batch_rows is not None and batch_rows < 1:
            raise ValueError(f"{name}: batch_rows must be at least 1, not {batch_rows}")
        #: What SQL calls it.
        self.name = name
        #: The function as it was, of tensors.
        self.function = function
        self.inputs = tuple(_judged(input, f'{name}: "{input.name}"') for input in inputs)
        #: The names of its arguments.
        self.arguments = [argument for input in self.inputs for argument in input.arguments]
        if len(set(self.arguments)) < len(self.arguments):
            raise ValueError(f"{name}: two arguments of one name: {', '.join(self.arguments)}")
        where = f"{name}: its output"
        dtype, shape = _element(output.dtype, where), _extents(output.shape, where)
        _check_kind(output.kind, where)
        self.output = output._replace(dtype=dtype, shape=shape)
        if not callable(framework) and framework not in _frameworks.NAMES:
            known = ", ".join(_frameworks.NAMES)
            raise ValueError(f"{name}: no framework {framework!r}, but {known}, or any from_dlpack")
        self.framework = framework
        self.nulls = nulls
        self.state = _Once(state) if state else None
        self.batch_rows = batch_rows
        self.volatile = volatile
        self.__doc__ = function.__doc__

    def __repr__(self) -> str:
        return f"<arrow_dlpack.TensorUdf {self.name}({', '.join(self.arguments)})>"

    def __call__(self, *columns: Any) -> Any:
        from ._columns import results

        return results(self, columns, self.output.kind)

    def register(self, engine: Any) -> None:
        """Makes it known to DataFusion's `SessionContext`, or to a connection of DuckDB."""
        if hasattr(engine, "register_udf"):
            engine.register_udf(self.datafusion())
        elif hasattr(engine, "create_function"):
            self._create_in_duckdb(engine)
        else:
            engines = "a SessionContext of datafusion or a connection of duckdb"
            raise TypeError(f"{self.name} is for {engines}, not for {type(engine).__name__}")

    def datafusion(self) -> Any:
        """The function as a `datafusion.ScalarUDF`, for expressions: ``udf(col("x"), lit(6))``."""
        import datafusion

        from ._columns import arrow_type, judge

        judge(self)
        # Where names are not quoted its SQL reads them in lower case.
        if self.name != (own := self.name.lower()) and hasattr(datafusion.functions, own):
            raise ValueError(
                f"{self.name}: SQL calls DataFusion's own {own} by that name, give another name="
            )
        types = [
            arrow_type(input.accepts, input.row, input.kind)
            for input in self.inputs
            for _ in input.arguments
        ]
        result = arrow_type(self.output.dtype, self.output.shape, self.output.kind)
        volatility = "volatile" if self.volatile else "immutable"
        return datafusion.udf(self, types, result, volatility, self.name)

    def _create_in_duckdb(self, connection: Any) -> None:
        import inspect

        from ._columns import judge, results

        def call(*columns: Any) -> Any:
            return results(self, columns, "fixed_size_list")

        # DuckDB counts the parameters.
        call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [
                inspect.Parameter(f"_{n}", inspect.Parameter.POSITIONAL_ONLY)
                for n, _ in enumerate(self.arguments)
            ]
        )
        judge(self)
        types = [
            _duckdb_type(input.accepts, input.row, f'{self.name}: "{input.name}"')
            for input in self.inputs
            for _ in input.arguments
        ]
        result = _duckdb_type(self.output.dtype, self.output.shape, f"{self.name}: its output")
        # Of two functions DuckDB calls its own for the types that it takes, and a macro or what its
        # grammar knows for all.
        own = (
            "select lower(function_name) as name from duckdb_functions() "
            "where internal or function_type = 'macro' union all "
            "select keyword_name from duckdb_keywords() where keyword_category = 'column_name'"
        )
        is_known = f"select 1 from ({own}) where name = lower(?)"
        if connection.cursor().execute(is_known, [self.name]).fetchone() is not None:
            raise ValueError(f"{self.name}: DuckDB has a function of that name, give another name=")
        connection.create_function(
            self.name,
            call,
            types,
            result,
            type="arrow",
            # Otherwise DuckDB takes out rows that are null, but not those with a null in a list.
            null_handling="special",
            side_effects=self.volatile,
        )


class _Once:
    """A value that is made when it is first asked for, and asked for again if that fails."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._made: list[Any] = []
        self._making = threading.Lock()

    def get(self) -> Any:
        if not self._made:
            with self._making:
                if not self._made:
                    self._made.append(self._make())
        return self._made[0]


def _judged(input: Input, where: str) -> Input:
    if not isinstance(input.name, str):
        raise TypeError(f"{where}: the name of an input is a text, got {input.name!r}")
    columns = _column_names(input.columns, where)
    dtype = _element(input.dtype, where)
    accepts = _element(input.accepts, where) if input.accepts else dtype
    shape, width = _extents(input.shape, where), len(columns)
    _check_kind(input.kind, where)
    if width and shape not in ((), (width,)):
        raise ValueError(f"{where}: {width} columns have shape ({width},), not {shape}")
    return input._replace(
        dtype=dtype,
        accepts=accepts,
        shape=(width,) if width else shape,
        columns=columns,
    )


def _column_names(columns: Sequence[str], where: str) -> tuple[str, ...]:
    """The names in their order: a text would be one of each letter, and a set has no order."""
    hint = f": did you mean [{columns!r}]?" if isinstance(columns, str) else ""
    is_list = isinstance(columns, Iterable) and not isinstance(columns, (str, set, frozenset))
    names = tuple(items_of("columns", columns)) if is_list else None
    if names is None or not all(isinstance(name, str) for name in names):
        raise TypeError(f"{where}: columns must be a list of names, got {columns!r}{hint}")
    return names


def _element(dtype: Dtype, where: str) -> str:
    """The name of a dtype, however it is given."""
    try:
        name = _dtype_name(dtype)
    except (TypeError, ValueError):
        name = str(dtype)
    if name not in _DUCKDB:
        raise ValueError(f"{where}: columns have elements of {', '.join(_DUCKDB)}, not {name}")
    return name


def _extents(shape: Sequence[int], where: str) -> tuple[int, ...]:
    try:
        extents = tuple(map(operator.index, items_of(f"{where}: shape", shape)))
    except TypeError:
        must = "shape must be the extents of one row, such as (3,)"
        raise TypeError(f"{where}: {must}, got {shape!r}") from None
    if any(extent < 1 for extent in extents):
        raise ValueError(f"{where}: rows of shape {extents} have nothing in them")
    if math.prod(extents) > _MOST:
        raise ValueError(f"{where}: a row of shape {extents} has more than {_MOST} values")
    return extents


def _check_kind(kind: str, where: str) -> None:
    known = "fixed_shape_tensor", "fixed_size_list"
    if kind not in known:
        raise ValueError(f"{where}: kind must be {' or '.join(map(repr, known))}, got {kind!r}")


def _duckdb_type(dtype: str, shape: Sequence[int], where: str) -> str:
    if dtype == "float16":
        raise ValueError(f"{where}: DuckDB has no float16")
    return _DUCKDB[dtype] + "".join(f"[{extent}]" for extent in reversed(shape))
