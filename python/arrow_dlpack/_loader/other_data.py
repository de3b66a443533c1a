"""Whether a state is of the data that a source has, and the errors where it is of other data.

Each part of what identity.py tells is compared where both sides have it. Between files and tables,
or formats of files, the first and last rows are compared.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .identity import ONE_GROUP, REPLACED

#: What is one name for the same moments, and for the same values in lists and structs.
_ZONES = (re.compile(r"(timestamp\[\w+), tz=[^\]]*\]"), r"\1, tz=UTC]")
_WITHIN = (
    (re.compile(r"(timestamp|duration)\[\w+"), r"\1[ns"),
    (re.compile(r"\b(time|date)\d+\[\w+\]"), r"\1"),
    (re.compile(r"\bdecimal\d+\([\d, -]+\)"), "decimal"),
    (re.compile(r"\bfixed_size_binary\[\d+\]"), "large_binary"),
)


def _comparable(name: str, told: Any, is_physical: bool) -> Any:
    """What a state says of its data: of types, less what changes no value; physical times have the
    numbers of their unit.
    """
    if name != "columns" or not isinstance(told, Mapping):
        return told
    patterns = (_ZONES, *(() if is_physical else _WITHIN))

    def common(kind: str) -> str:
        for pattern, one in patterns:
            kind = pattern.sub(one, kind)
        return kind

    # In what an extension type says of itself all counts.
    kinds = {of: str(kind) for of, kind in told.items()}
    return {of: kind if "extension<" in kind else common(kind) for of, kind in kinds.items()}


class OtherDataError(ValueError):
    """A state is of other data than the source."""


def refusal(difference: str) -> OtherDataError:
    """The error for a state of data that differs from the source's."""
    return OtherDataError(
        f"the state is of other data: {difference}. Its batches would be others: load no state, or "
        "begin another epoch by set_epoch()"
    )


#: Digests of which one kind tells data from all other data of that kind.
_KINDS = ("footers", "snapshot", "sample")


@dataclass(frozen=True)
class Comparison:
    """What matters of data to the batches that are to come.

    is_ordered: whether batches with columns in another order are others.
    is_shuffled: whether row groups are put in order, if there are some.
    is_shared: whether ranks or workers divide them then.
    is_begun: whether batches were made, of which the order is to be the same.
    is_physical: whether batches have the numbers by which Arrow stores values.
    """

    is_ordered: bool
    is_shuffled: bool
    is_shared: bool
    is_begun: bool
    is_physical: bool

    def check(self, saved: Any, ours: Mapping[str, Any], where: str = "the source") -> None:
        """An error for a state of other data."""
        if not (saved := _of_state(saved, self.is_begun)):
            return
        order = ["order"] if self.is_ordered else []
        drawn = ["node", "drawn"] if self.is_begun else []
        names = ["columns", *order, "filter", "rows", "keys", "codes", *drawn, "files", *_KINDS]
        for name in names:
            if name not in saved or name not in ours:
                continue
            one, other = (_comparable(name, told[name], self.is_physical) for told in (saved, ours))
            if one != other:
                raise refusal(f"{_difference(name, one, other)} in {where}")
        ends, is_one_kind = ours.get("ends"), any(name in saved and name in ours for name in _KINDS)
        # Of files they are read only where nothing else tells: the options of a format say which
        # rows and values the bytes of a file are.
        if "ends" in saved and not (callable(ends) and is_one_kind):
            _check_ends(saved["ends"], ends() if callable(ends) else ends, where)
        self._check_groups(saved, ours, where)
        self._check_parts(saved.get("sources"), ours.get("sources"))

    def _check_groups(self, saved: Mapping[str, Any], ours: Mapping[str, Any], where: str) -> None:
        groups = [told.get("groups") for told in (saved, ours)]
        if not self.is_shared:
            # One row group in any order is a table.
            groups = [None if told == ONE_GROUP else told for told in groups]
        if (self.is_shuffled or self.is_shared) and groups[0] != groups[1]:
            raise OtherDataError(
                f"the state is of the same rows in other row groups, or in none, than {where} has: "
                "a shuffle, ranks and workers would make other batches of them. Load the state "
                "where the data is as it was, or begin another epoch by set_epoch()"
            )

    def _check_parts(self, saved: Any, ours: Any) -> None:
        """The same of each source of a Mix, which reads row groups where each of them has some."""
        if not isinstance(saved, list) or not isinstance(ours, list):
            return
        parts = self
        reads_groups = [_are_all_parquet(own) for own in (saved, ours)]
        if not any(reads_groups):
            parts = replace(self, is_shuffled=False, is_shared=False)
        elif any(map(_has_several_groups, [*saved, *ours])) and not all(reads_groups):
            parts = replace(self, is_shared=self.is_shared or self.is_shuffled)
        for at, (one, other) in enumerate(zip(saved, ours, strict=False)):
            parts.check(one, other, f"source {at} of the Mix")


def _check_ends(saved: Any, ours: Any, where: str) -> None:
    if saved == REPLACED:
        raise refusal(_difference("ends", saved, ours))
    if not isinstance(saved, Mapping) or not isinstance(ours, Mapping):
        return
    for name in "head", "tail":
        if name in saved and name in ours and saved[name] != ours[name]:
            raise refusal(f"{_difference(name, saved[name], ours[name])} in {where}")


def _of_state(saved: Any, is_begun: bool) -> Mapping[str, Any]:
    """What a state tells of its data; an error where no data are those."""
    if not isinstance(saved, Mapping):
        return {}
    if saved.get("files") == REPLACED:
        raise refusal(_difference("files", REPLACED, None))
    if "changed" in saved and not is_begun:
        return {"columns": saved.get("columns")}  # the epoch to come reads the rows that there are
    return saved


def _has_several_groups(told: Any) -> bool:
    """Whether there is an order of row groups to draw."""
    return isinstance(told, Mapping) and told.get("groups", ONE_GROUP) != ONE_GROUP


def _are_all_parquet(parts: Sequence[Any]) -> bool:
    """Whether each has row groups, of which it may be one."""
    return all(isinstance(told, Mapping) and "groups" in told for told in parts)


def _difference(name: str, saved: Any, ours: Any) -> str:
    if saved == REPLACED:
        return "a file was replaced while the epoch read it, and no others are those"
    if name == "rows":
        return f"it had {saved} rows, and there are {ours}"
    if name == "columns" and isinstance(saved, Mapping):
        for column in {**saved, **ours}:
            if saved.get(column) != ours.get(column):
                one, other = saved.get(column, "not read"), ours.get(column, "not read now")
                return f'column "{column}" was {one}, and is {other}'
    return {
        "filter": "the dataset had another filter of its own",
        "keys": "folders had other keys",
        "codes": "dictionaries had other codes for the same words",
        "node": (
            "split_dataset_by_node had divided the dataset for another node, or for another number "
            "of them"
        ),
        "drawn": (
            "the dataset had another seed of its shuffle() or interleave_datasets(), or none, "
            "another buffer_size=, probabilities= or number of shards, or another epoch by its "
            "set_epoch()"
        ),
        "footers": (
            "the files had other footers (sizes and statistics of row groups, in order), or keys "
            "of folders for columns of their own"
        ),
        "files": "the files had other sizes or bytes, or keys of folders for columns of their own",
        "snapshot": "the files of the table had other rows or sizes",
        "sample": "some rows had other values",
        "head": "the first rows had other values",
        "tail": "the last rows had other values",
        "order": "columns were in another order",
    }.get(name, "columns were others")
