"""Arrays of extension types that pyarrow does not know, or would refuse."""

import json

import numpy as np
import pyarrow as pa


class Annotated:
    """An array under an extension type that pyarrow does not know, or would refuse."""

    def __init__(self, storage, name, metadata):
        self.storage = storage
        metadata = {"ARROW:extension:name": name, "ARROW:extension:metadata": metadata}
        self.field = pa.field("", storage.type, metadata=metadata)

    def __arrow_c_array__(self, requested_schema=None):
        return self.field.__arrow_c_schema__(), self.storage.__arrow_c_array__()[1]

    def __arrow_c_schema__(self):
        return self.field.__arrow_c_schema__()

    def in_a_list(self):
        """As the items of lists of one row each."""
        field = self.field.with_name("item")
        lists = pa.FixedSizeListArray.from_arrays(self.storage, 1)
        both = Annotated(lists, "", "")
        both.field = pa.field("", pa.list_(field, 1))
        return both


def of_variable_shape(tensors, *, order=None, names=None, lists=pa.list_, ndim=None):
    """A tensor a row, its axes in memory in the order that `order` says."""
    ndim = tensors[0].ndim if ndim is None else ndim
    metadata = {
        key: list(value) for key, value in (("permutation", order), ("dim_names", names)) if value
    }
    axes = np.argsort(order or range(ndim))
    physical = [tensor.transpose(axes) for tensor in tensors]
    kind = pa.from_numpy_dtype(tensors[0].dtype)
    data = pa.array([tensor.ravel().tolist() for tensor in physical], lists(kind))
    shapes = pa.array([tensor.shape for tensor in physical], pa.list_(pa.int32(), ndim))
    storage = pa.StructArray.from_arrays([data, shapes], ["data", "shape"])
    return Annotated(storage, "arrow.variable_shape_tensor", json.dumps(metadata))
