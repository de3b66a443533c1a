//! What makes tensors, or Arrow data, of arrays of NumPy's and PyTorch's that are not taken as they are.

use pyo3::prelude::*;

use super::kinds::{is_of_axes, listed};
use super::values::of_values;
use super::way_out::{Found, OF_OBJECTS, WayOut};

/// What makes Arrow data of a masked array of NumPy's, of numbers.
pub(in crate::python) fn of_masked(x: &str) -> String {
    format!("from_dlpack({x}.data, mask=~numpy.ma.getmaskarray({x}))")
}

/// How to convert an array of NumPy's whose dtype no tensor has. `x`: what it is called.
pub(in crate::python) fn of_dtype(object: &Bound<'_, PyAny>, x: &str) -> Found {
    let Some(dtype) = object.getattr_opt("dtype")? else { return Ok(None) };
    let Some(kind) = dtype.getattr_opt("kind")? else {
        let is_key = dtype.str()?.to_str()?.starts_with("key<");
        return Ok(
            is_key.then(|| format!("jax.random.key_data({x}) is a tensor of its bits").into())
        );
    };
    let kind = kind.extract::<String>()?;
    // pyarrow makes arrays of arrays of one dimension.
    let ndim = object.getattr_opt("ndim")?;
    let has_columns = ndim.as_ref().is_some_and(|ndim| ndim.eq(2).unwrap_or(false));
    let is_flat = ndim.is_none_or(|ndim| ndim.eq(1).unwrap_or(true));
    let flat = if is_flat { x.to_owned() } else { format!("{x}.ravel()") };
    let swapped = format!("{x}.astype({x}.dtype.newbyteorder(\"=\")) has the machine's byte order");
    // Of texts, objects and times pyarrow takes the mask too.
    let mask = object.getattr_opt("mask")?;
    let has_mask = mask.is_some_and(|mask| !mask.is_none() && !mask.is_callable());
    let numbers = if has_mask {
        String::new()
    } else if object.hasattr("to_numpy")? {
        format!("; numpy.asarray({x}.astype(\"int64\")) has its numbers as a tensor")
    } else {
        format!("; {x}.view(\"int64\") has its numbers as a tensor")
    };
    // pyarrow knows pandas' own types, and not each of their values.
    let are_objects = kind == "O" && is_flat && dtype.hasattr("newbyteorder")?;
    if let Some(times) = times_for_arrow(&dtype, &kind, &flat)? {
        return Ok(Some(times.and(&numbers)));
    }
    // pandas' dtypes do not tell it.
    let is_native = match dtype.getattr_opt("isnative")? {
        Some(is_native) => is_native.is_truthy()?,
        None => true,
    };
    Ok(match kind.as_str() {
        "M" | "m" if !is_native => {
            Some(format!("{swapped}, of which pyarrow.array makes Arrow data").into())
        }
        "M" | "m" => Some(WayOut::values(flat, &format!("Arrow data of {dtype}")).and(&numbers)),
        "O" if has_columns => {
            Some(format!("pandas.DataFrame({x}) makes a frame of its columns").into())
        }
        "O" if object.hasattr("levels")? => {
            Some(format!("{x}.to_frame() makes a frame of it").into())
        }
        "U" | "S" | "O" => {
            // pyarrow takes the mask with the values.
            match are_objects && !has_mask {
                true => return of_array_of_objects(object, x),
                false => Some(WayOut::values(flat, &format!("Arrow data of {dtype}"))),
            }
        }
        "T" => Some(WayOut::values(format!("{flat}.tolist()"), "Arrow data of texts")),
        "V" if !dtype.getattr("names")?.is_none() => {
            let fields = of_fields(&dtype, x, is_flat)?;
            Some(match is_native {
                true => fields.into(),
                false => format!("{swapped}, and of that {fields}").into(),
            })
        }
        _ if !is_native => Some(swapped.into()),
        "f" if dtype.getattr("itemsize")?.extract::<usize>()? > 8 => {
            Some(format!("{x}.astype(\"float64\") is a tensor").into())
        }
        "c" if dtype.getattr("itemsize")?.extract::<usize>()? > 16 => {
            Some(format!("{x}.astype(\"complex128\") is a tensor").into())
        }
        // Of others that NumPy has no kind for, such as bfloat16, the elements are numbers.
        "V" if dtype.getattr("type")?.getattr("__name__")?.eq("void")? => {
            let is_one = object.getattr("ndim")?.eq(0)?;
            let bytes = match is_one {
                true => format!("numpy.frombuffer({x}, \"uint8\")"),
                false => {
                    format!("numpy.ascontiguousarray({x}).view(\"uint8\").reshape(*{x}.shape, -1)")
                }
            };
            Some(format!("{bytes} is a tensor of its bytes").into())
        }
        _ if has_mask => Some(WayOut::array(of_masked(x), "Arrow data of it, with nulls")),
        _ => None,
    })
}

/// How to convert an array of Python's objects.
fn of_array_of_objects(object: &Bound<'_, PyAny>, x: &str) -> Found {
    let items = listed(&object.call_method0("tolist")?)?.unwrap_or_default();
    if items.first().map_or(Ok(false), is_of_axes)? {
        return Ok(Some(WayOut::array(format!("from_ragged(list({x}))"), "an array of lists")));
    }
    Ok(Some(of_values(&items, x)?.unwrap_or_else(|| OF_OBJECTS.into())))
}

/// What to do with an array of NumPy's records. `x`: what it is called.
fn of_fields(dtype: &Bound<'_, PyAny>, x: &str, is_flat: bool) -> PyResult<String> {
    let mut are_flat = is_flat;
    let mut is_other = None;
    for name in dtype.getattr("names")?.try_iter()? {
        let name = name?;
        let base = dtype.get_item(&name)?.getattr("base")?;
        if let Some(own) = base.getattr("names")?.try_iter().ok().and_then(|mut own| own.next()) {
            let place = format!("{x}[{}]", name.repr()?);
            return Ok(format!(
                "{place} has nested records: take the fields of all one by one, as {place}[{}]",
                own?.repr()?
            ));
        }
        let is_column = is_flat && dtype.get_item(&name)?.getattr("shape")?.is_empty()?;
        if is_other.is_none() && is_of_other_dtype(&base, is_column)? {
            is_other = Some(name.repr()?);
        }
        are_flat &= is_column;
    }
    if let Some(name) = is_other {
        return Ok(format!(
            "take its fields one by one, as from_dlpack({x}[{name}]): of what it refuses it tells how to convert it"
        ));
    }
    let column = match are_flat {
        true => format!("pyarrow.table({{name: {x}[name]"),
        // pyarrow makes arrays of arrays of one dimension, and fields of a record may lie at no multiple of their size.
        false => format!(
            "record_batch({{name: pyarrow.array({x}[name]) if {x}[name].ndim == 1 else \
             numpy.ascontiguousarray({x}[name])"
        ),
    };
    Ok(format!("{column} for name in {x}.dtype.names}}) makes a table of its fields"))
}

/// Whether a field of NumPy's records is of a dtype that takes a conversion. pyarrow makes arrays of a column of texts and of
/// times.
fn is_of_other_dtype(base: &Bound<'_, PyAny>, is_column: bool) -> PyResult<bool> {
    let kind = base.getattr("kind")?.extract::<String>()?;
    Ok(match kind.as_str() {
        "b" | "i" | "u" => false,
        "f" => base.getattr("itemsize")?.extract::<usize>()? > 8,
        "U" | "S" | "O" => !is_column,
        "M" | "m" => !is_column || times_for_arrow(base, &kind, "x")?.is_some(),
        _ => true,
    })
}

/// How to convert an array of numbers of which NumPy makes no tensor: of a dtype of ml_dtypes's, or of a field of a record
/// that is packed.
pub(in crate::python) fn of_elements(array: &Bound<'_, PyAny>) -> PyResult<Option<&'static str>> {
    let dtype = array.getattr("dtype")?;
    if is_of_ml_dtypes(array)? {
        let class = dtype.getattr("type")?;
        let is_integer = class.getattr("__name__")?.to_string().contains("int");
        return Ok(Some(match is_integer {
            true => "x.astype(\"int8\") is a tensor of its numbers",
            false => "x.astype(\"float32\") is a tensor of its numbers",
        }));
    }
    let itemsize = dtype.getattr("itemsize")?.extract::<i64>()?;
    for stride in array.getattr("strides")?.try_iter()? {
        if stride?.extract::<i64>()?.checked_rem(itemsize) != Some(0) {
            return Ok(Some("x.copy() is a tensor of its elements, side by side"));
        }
    }
    Ok(None)
}

/// Whether the elements of an array of NumPy's are of a dtype of ml_dtypes's.
pub(in crate::python) fn is_of_ml_dtypes(array: &Bound<'_, PyAny>) -> PyResult<bool> {
    let class = array.getattr("dtype")?.getattr("type")?;
    class.getattr("__module__")?.eq("ml_dtypes")
}

/// How to make Arrow data of times of NumPy's that are to stay times.
pub(in crate::python) fn of_times(array: &Bound<'_, PyAny>) -> Found {
    let unit = array.getattr("dtype")?.getattr("str")?.extract::<String>()?;
    if unit.contains('m') && (unit.ends_with("Y]") || unit.ends_with("M]")) {
        return Ok(Some(
            "years and months have no one length: pass durations of other units".into(),
        ));
    }
    let way_out = of_dtype(array, "x")?;
    Ok(way_out.map(|way_out| match way_out.made {
        Some(made) => WayOut::made(made, "Arrow data of it"),
        None => way_out,
    }))
}

/// How to convert times of a unit that Arrow has not; `None` of others. `flat`: the expression of an array of one dimension.
fn times_for_arrow(dtype: &Bound<'_, PyAny>, kind: &str, flat: &str) -> Found {
    if kind != "M" && kind != "m" {
        return Ok(None);
    }
    let text = dtype.getattr("str")?.extract::<String>()?;
    // pyarrow takes multiples, such as [25s], for the unit itself.
    let unit = text.split_once('[').map_or("", |(_, unit)| unit.trim_end_matches(']'));
    let base = unit.trim_start_matches(|digit: char| digit.is_ascii_digit());
    Ok(match (kind, base) {
        (_, "s" | "ms" | "us" | "ns") | ("M", "D") if base == unit => None,
        ("m", "Y" | "M") => Some(WayOut::values(
            format!("{flat}.view(\"int64\")"),
            "Arrow data of its numbers, as years and months have no one length",
        )),
        (_, "ps" | "fs" | "as") => Some(WayOut::values(
            format!("{flat}.astype(\"{kind}8[ns]\")"),
            &format!("Arrow data of {dtype}, less what is finer"),
        )),
        _ => {
            // Multiples of a unit that Arrow has, and units of which it has a finer one.
            let unit = if matches!(base, "ms" | "us" | "ns") { base } else { "s" };
            let values = format!("{flat}.astype(\"{kind}8[{unit}]\")");
            Some(WayOut::values(values, &format!("Arrow data of {dtype}")))
        }
    })
}

/// What converts a tensor of PyTorch's that is no plain one: one of rows of different lengths, a sparse or a quantized one.
pub(in crate::python) fn of_layout(object: &Bound<'_, PyAny>) -> PyResult<Option<&'static str>> {
    let is = |name: &str| match object.getattr_opt(name)? {
        Some(is_it) => Ok::<_, PyErr>(is_it.extract().unwrap_or(false)),
        None => Ok(false),
    };
    // Its elements lie at strides, and its dtype is none of DLPack's.
    Ok(if is("is_quantized")? {
        Some(
            "x.dequantize() is a tensor of the numbers, and x.int_repr() one of the integers that they are stored as",
        )
    } else if is("is_nested")? && object.hasattr("offsets")? {
        Some(
            "from_ragged(list(x.detach().unbind())) has the rows of a nested tensor, and x.to_padded_tensor(0) is a \
             tensor of all",
        )
    } else if is("is_nested")? {
        Some("x.to_padded_tensor(0) is a tensor of all rows of a nested one")
    } else if is_not_strided(object)? {
        Some("x.to_dense() is a tensor of all elements")
    } else if is_lazily(object, "is_conj")? {
        Some("x.resolve_conj() is a tensor of its elements")
    } else if is_lazily(object, "is_neg")? {
        Some("asdlpack(x.resolve_neg()) makes a Tensor of its elements")
    } else if is("requires_grad")? {
        Some("asdlpack(x.detach()) makes a Tensor of its elements, without gradients")
    } else {
        None
    })
}

/// Whether a tensor of PyTorch's lies in memory in another way than at strides: sparse, in any of the formats, or as oneDNN
/// has it.
fn is_not_strided(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Some(layout) = object.getattr_opt("layout")? else { return Ok(false) };
    let name = layout.str()?.to_string();
    Ok(name.starts_with("torch.") && name != "torch.strided")
}

/// Whether it is a view of PyTorch's whose elements are yet to be conjugated, or negated.
fn is_lazily(object: &Bound<'_, PyAny>, name: &str) -> PyResult<bool> {
    match object.getattr_opt(name)? {
        Some(method) if method.is_callable() => method.call0()?.is_truthy(),
        _ => Ok(false),
    }
}
