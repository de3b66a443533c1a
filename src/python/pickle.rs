//! Tensors and arrays by value, for pickle, copy and other processes: metadata, and bytes.
//!
//! A pickle can contain anything, so this module checks all of it: a tensor's in the same way as a buffer of
//! any object, an array's as Arrow's C structures.

use std::{collections::HashMap, sync::Arc};

use arrow_array::types::ByteViewType;
use arrow_array::{
    Array, ArrayRef, GenericByteViewArray, cast::AsArray, ffi::FFI_ArrowSchema, make_array,
};
use arrow_buffer::Buffer;
use arrow_data::{ArrayData, BufferSpec, layout};
use arrow_schema::{ArrowError, DataType, Field, FieldRef};
use pyo3::exceptions::{PyImportError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyTuple};

use super::arrow::schema::MAX_FIELDS;
use super::arrow::structs::{ArrowSchema, Structure};
use super::numpy::buffer_import;
use super::numpy::buffer_import::ArraySpec;
use super::{args::Items, array::PyArray, arrow, runtime::unlocked, tensor::PyTensor};
use crate::arrow_types::{self, TypeFault, child_types};
use crate::chunks::{self, Meaning};
use crate::ffi::{DLDataType, DLDataTypeCode, DLDevice, DLPackFlags};
use crate::tensor::TensorSpec;
use crate::{Error, ManagedTensor, alloc, layout, tensor};

/// A buffer in a pickle; protocol 5 can keep it out of band.
fn bytes<'py>(tensor: Bound<'py, PyTensor>, protocol: i32) -> PyResult<Bound<'py, PyAny>> {
    let py = tensor.py();
    if protocol >= 5 {
        return py.import("pickle")?.call_method1("PickleBuffer", (tensor,));
    }
    Ok(py.get_type::<PyBytes>().call1((tensor,))?.into_any())
}

fn of_buffer(py: Python<'_>, buffer: Buffer, protocol: i32) -> PyResult<Bound<'_, PyAny>> {
    let len = i64::try_from(buffer.len()).map_err(|_| Error::Overflow("size in bytes"))?;
    let (dtype, flags) = (DLDataType::UINT8, DLPackFlags::default());
    let tensor = ManagedTensor::from_shared(buffer, TensorSpec::new(dtype, flags, &[len], &[1]))?;
    bytes(Bound::new(py, PyTensor::from(tensor))?, protocol)
}

/// The function and the arguments that restore a tensor.
pub(super) fn tensor<'py>(
    tensor: &Bound<'py, PyTensor>,
    protocol: i32,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
    let py = tensor.py();
    let this = &tensor.get().tensor;
    let whole = this.is_contiguous() && this.device().is_host_readable();
    let dense = match whole {
        true => tensor.get().share(py),
        false => PyTensor::from(unlocked(py, this.nbytes(), || this.copied())?),
    };
    let flat = Bound::new(py, dense.as_bytes()?)?;
    let dense = &dense.tensor;
    let DLDataType { code, bits, lanes } = dense.dtype();
    let is_padded = dense.flags().contains(DLPackFlags::IS_SUBBYTE_TYPE_PADDED);
    let shape = PyTuple::new(py, dense.shape())?;
    let field = tensor.get().field.as_ref().map(|field| field_state(py, field)).transpose()?;
    let dictionary = tensor.get().dictionary(py)?;
    let state =
        ((code.0, bits, lanes), is_padded, shape, bytes(flat, protocol)?, field, dictionary);
    Ok((maker(py, "_unpickle_tensor")?, state.into_pyobject(py)?))
}

/// Restores a tensor from the arguments that [`tensor`] made, over the memory of `data`, an object with the buffer
/// protocol.
#[expect(unsafe_code, reason = "lets Python write to what an object exposes")]
#[pyfunction]
#[pyo3(signature = (dtype, is_padded, shape, data, field=None, dictionary=None))]
pub(super) fn _unpickle_tensor(
    dtype: (u8, u8, u16),
    is_padded: bool,
    shape: Items<i64>,
    data: &Bound<'_, PyAny>,
    field: Option<&Bound<'_, PyAny>>,
    dictionary: Option<&Bound<'_, PyArray>>,
) -> PyResult<PyTensor> {
    let (code, bits, lanes) = dtype;
    let dtype = DLDataType { code: DLDataTypeCode(code), bits, lanes };
    let shape = shape.0;
    let strides = layout::row_major(&shape);
    let spec = ArraySpec { device: DLDevice::CPU, dtype, is_padded, shape, strides };
    let tensor = buffer_import::tensor_from_buffer(data, 0, &spec)?;
    let field = field.map(field_of).transpose()?;
    let meaning = dictionary.map(|values| Meaning::Array(Arc::clone(values.get().array())));
    // SAFETY: the memory is that of a Python object, and no code in Rust has it but this.
    let tensor = unsafe { PyTensor::received(Arc::new(tensor)) };
    Ok(PyTensor { field, meaning, ..tensor })
}

/// The function of the package that restores an object: only a module that can be imported by its name has one.
fn maker<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let package = py.import("arrow_dlpack._core").map_err(|error| {
        if !error.is_instance_of::<PyImportError>(py) {
            return error;
        }
        let refused = PyTypeError::new_err(
            "it cannot be pickled where the package arrow_dlpack is not installed, whose functions read pickles: \
             copy.copy and copy.deepcopy work without it",
        );
        refused.set_cause(py, Some(error));
        refused
    })?;
    package.getattr(name)
}

/// The array in new memory, without the values outside of a slice.
pub(super) fn copied(py: Python<'_>, array: &ArrayRef, field: &Field) -> PyResult<PyArray> {
    let (schema, data) = array_state(py, array, field, 5)?;
    _unpickle_array(&schema, &data)
}

/// The function and the arguments that restore an array.
pub(super) fn array<'py>(
    py: Python<'py>,
    array: &ArrayRef,
    field: &Field,
    protocol: i32,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
    let state = array_state(py, array, field, protocol)?;
    Ok((maker(py, "_unpickle_array")?, state.into_pyobject(py)?))
}

/// The arguments of [`_unpickle_array`].
fn array_state<'py>(
    py: Python<'py>,
    array: &ArrayRef,
    field: &Field,
    protocol: i32,
) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyTuple>)> {
    let schema = field_state(py, field)?;
    // Memory that other code may write to is read once. A slice is copied without its offset and the values outside.
    let mut whole = chunks::concat(std::slice::from_ref(array))?.to_data();
    unshare(&mut whole)?;
    Ok((schema, data_state(py, &whole, protocol)?))
}

/// Copies what a concatenation shares too, at any depth: the values of dictionaries, with their offset, and the texts of
/// views. Returns whether there are any.
fn unshare(data: &mut ArrayData) -> Result<bool, Error> {
    match data.data_type() {
        DataType::Utf8View => *data = alone(make_array(data.clone()).as_string_view())?,
        DataType::BinaryView => *data = alone(make_array(data.clone()).as_binary_view())?,
        _ => return unshare_children(data),
    }
    Ok(true)
}

fn unshare_children(data: &mut ArrayData) -> Result<bool, Error> {
    let is_dictionary = matches!(data.data_type(), DataType::Dictionary(..));
    let mut found = is_dictionary;
    let mut children = data.child_data().to_vec();
    for child in &mut children {
        if is_dictionary {
            *child = chunks::concat(&[make_array(child.clone())])?.to_data();
        }
        found |= unshare(child)?;
    }
    if found {
        let whole = data.clone().into_builder().child_data(children);
        *data = chunks::checked(|| whole.build())?;
    }
    Ok(found)
}

/// The same views of the texts that they need.
fn alone<T: ByteViewType>(views: &GenericByteViewArray<T>) -> Result<ArrayData, Error> {
    alloc::probe_alloc(views.total_buffer_bytes_used().saturating_add(views.len() * 16))?;
    chunks::checked(|| Ok(views.gc().to_data()))
}

/// What arrow-rs makes; a panic is an error too.
fn fenced<T>(work: impl FnOnce() -> Result<T, ArrowError>) -> PyResult<T> {
    Ok(chunks::checked(work)?)
}

fn field_state<'py>(py: Python<'py>, field: &Field) -> PyResult<Bound<'py, PyTuple>> {
    schema_state(py, &fenced(|| arrow::schema::schema_of(field))?)
}

/// (format, name, flags, metadata, children, dictionary), as in Arrow's C interface.
fn schema_state<'py>(py: Python<'py>, schema: &FFI_ArrowSchema) -> PyResult<Bound<'py, PyTuple>> {
    let metadata = fenced(|| schema.metadata())?;
    let children = schema.children().map(|child| schema_state(py, child));
    let children = children.collect::<PyResult<Vec<_>>>()?;
    let dictionary = schema.dictionary().map(|values| schema_state(py, values)).transpose()?;
    let flags = schema.flags().map_or(0, |flags| flags.bits());
    let state = (schema.format(), schema.name(), flags, metadata, children, dictionary);
    state.into_pyobject(py)
}

/// (length, validity, buffers, children).
fn data_state<'py>(
    py: Python<'py>,
    data: &ArrayData,
    protocol: i32,
) -> PyResult<Bound<'py, PyTuple>> {
    let nulls = data.nulls().map(|nulls| nulls.inner().sliced());
    let nulls = nulls.map(|nulls| of_buffer(py, nulls, protocol)).transpose()?;
    let buffers = data.buffers().iter().map(|buffer| of_buffer(py, buffer.clone(), protocol));
    let children = data.child_data().iter().map(|child| data_state(py, child, protocol));
    let (buffers, children) =
        (buffers.collect::<PyResult<Vec<_>>>()?, children.collect::<PyResult<Vec<_>>>()?);
    (data.len(), nulls, buffers, children).into_pyobject(py)
}

/// Restores an array from the arguments that [`array`] made. Its buffers are copied, because they must not change.
#[pyfunction]
pub(super) fn _unpickle_array(
    schema: &Bound<'_, PyAny>,
    data: &Bound<'_, PyAny>,
) -> PyResult<PyArray> {
    let field = field_of(schema)?;
    let data = data_of(field.data_type(), data, &mut Buffers::default())?;
    Ok(PyArray::try_new(fenced(|| Ok(make_array(data)))?, field)?)
}

/// The field of a [`schema_state`], checked to have a type that arrays can have.
fn field_of(state: &Bound<'_, PyAny>) -> PyResult<FieldRef> {
    let schema = schema_of(state, 0, &mut { MAX_FIELDS })?;
    let capsule = PyCapsule::new_with_value(state.py(), schema, ArrowSchema::CAPSULE)?;
    arrow::capsule::schema_of(&capsule)
}

fn schema_of(
    state: &Bound<'_, PyAny>,
    depth: usize,
    fields: &mut usize,
) -> PyResult<FFI_ArrowSchema> {
    type SchemaState<'py> = (
        String,
        Option<String>,
        i64,
        HashMap<String, String>,
        Items<Bound<'py, PyAny>>,
        Option<Bound<'py, PyAny>>,
    );
    if depth > arrow_types::MAX_DEPTH {
        return Err(Error::from(TypeFault::TooDeep).into());
    }
    // The same state may be a child many times.
    *fields = fields.checked_sub(1).ok_or_else(|| {
        PyValueError::new_err(format!("the Arrow type has more than {MAX_FIELDS} fields"))
    })?;
    let (format, name, flags, metadata, Items(children), dictionary) =
        state.extract::<SchemaState<'_>>()?;
    let children = children.iter().map(|child| schema_of(child, depth + 1, fields));
    let children = children.collect::<PyResult<Vec<_>>>()?;
    let dictionary = dictionary.map(|values| schema_of(&values, depth + 1, fields)).transpose()?;
    fenced(|| {
        arrow::structs::schema(
            &format,
            &name.unwrap_or_default(),
            flags,
            metadata,
            children,
            dictionary,
        )
    })
}

/// The objects with the bytes of an array, and copies of these, by their addresses, which stay theirs while they are held here.
/// A pickle of a few bytes may name one object many times, of which there is one copy.
type Buffers<'py> = HashMap<usize, (Bound<'py, PyAny>, Buffer)>;

fn data_of<'py>(
    data_type: &DataType,
    state: &Bound<'py, PyAny>,
    known: &mut Buffers<'py>,
) -> PyResult<ArrayData> {
    type ArrayState<'py> =
        (usize, Option<Bound<'py, PyAny>>, Items<Bound<'py, PyAny>>, Items<Bound<'py, PyAny>>);
    let (len, nulls, Items(buffers), Items(children)) = state.extract::<ArrayState<'_>>()?;
    let mut types = child_types(data_type);
    if let DataType::Dictionary(_, values) = data_type {
        types.push((values, 0));
    }
    if types.len() != children.len() || i64::try_from(len).is_err() {
        return Err(PyValueError::new_err(format!(
            "an array of {data_type} with {} children and {len} values",
            children.len()
        )));
    }
    let malformed = |what| PyValueError::new_err(format!("an array of {data_type} has {what}"));
    let children = types.into_iter().zip(&children).map(|((of, needed), child)| {
        let child = data_of(of, child, known)?;
        match needed.checked_mul(len) {
            Some(needed) if child.len() >= needed => Ok(child),
            _ => Err(malformed("a child that is too short")),
        }
    });
    let children = children.collect::<PyResult<Vec<_>>>()?;
    let buffers = buffers.into_iter().map(|buffer| buffer_of(buffer, known));
    let buffers = buffers.collect::<PyResult<Vec<_>>>()?;
    for (buffer, spec) in buffers.iter().zip(&layout(data_type).buffers) {
        // arrow-rs takes this for granted: it panics before it judges the buffer.
        let BufferSpec::FixedWidth { byte_width, .. } = spec else { continue };
        if buffer.len().checked_rem(*byte_width).is_some_and(|rest| rest != 0) {
            return Err(malformed("a buffer that ends within a value"));
        }
    }
    let nulls = nulls.map(|nulls| buffer_of(nulls, known)).transpose()?;
    if nulls.as_ref().is_some_and(|bits| bits.len() < len.div_ceil(8)) {
        return Err(malformed("fewer bits of validity than values"));
    }
    fenced(|| {
        ArrayData::builder(data_type.clone())
            .len(len)
            .null_bit_buffer(nulls)
            .buffers(buffers)
            .child_data(children)
            .align_buffers(true)
            .build()
    })
}

/// The bytes of any object with the buffer protocol, in memory of their own.
fn buffer_of<'py>(object: Bound<'py, PyAny>, known: &mut Buffers<'py>) -> PyResult<Buffer> {
    let address = object.as_ptr().addr();
    if let Some((_, copy)) = known.get(&address) {
        return Ok(copy.clone());
    }
    let tensor = buffer_import::buffer(&object)?;
    if tensor.dtype().item_bits(true) != 8 {
        return Err(PyValueError::new_err("a buffer of an array is bytes"));
    }
    let copy = unlocked(object.py(), tensor.nbytes(), || tensor.copied())?;
    let copy = tensor::adopt(copy);
    let copy = copy.ok_or_else(|| PyValueError::new_err("a buffer is in the CPU's memory"))?;
    known.insert(address, (object, copy.clone()));
    Ok(copy)
}
