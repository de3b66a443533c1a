//! What objects of libraries close to Arrow have a method for.

use pyo3::prelude::*;

use super::kinds::all;

/// Classes of libraries close to Arrow, recognised by attributes that only they have. The first match counts.
const LIBRARIES: &[(&[&str], &str)] = &[
    (
        &["set_epoch", "state_dict", "categories"],
        "a Loader makes batches of tensors: loop over it, or pass what it reads",
    ),
    (&["dictionaries", "close"], "these are batches of tensors already: loop over them"),
    (&["sources", "stopping_strategy"], "a Mix is what a Loader reads: loop over Loader(x)"),
    (
        &["dataset", "batch_sampler"],
        "a DataLoader makes batches itself: loop over it, and record_batch makes a table of each",
    ),
    (
        &["__next__", "_dataset_kind"],
        "this goes through a DataLoader: loop over it, and record_batch makes a table of each batch",
    ),
    (
        &["tensors", "__getitem__"],
        "record_batch(dict(zip(names, x.tensors))) makes a table of its tensors",
    ),
    (
        &["toarray", "nnz"],
        "x.toarray() is an array of all its values, of which from_dlpack makes one",
    ),
    (&["read_all", "get_batch"], "x.read_all() is a table"),
    (
        &["to_reader", "read_chunk"],
        "x.to_reader() goes through it, and x.read_all() makes a table of it",
    ),
    (&["sp_values", "to_dense"], "pyarrow.array(x.to_dense()) makes an array of all its values"),
    (&["to_table"], "x.to_table() reads it, and iter_batches takes it as it is"),
    // DataFusion's, whose batches have a protocol that fails.
    (
        &["__next__", "rbs"],
        "(batch.to_pyarrow() for batch in x) makes batches of it, for iter_batches, and \
         pyarrow.Table.from_batches([batch.to_pyarrow() for batch in x]) a table",
    ),
    (
        &["schema_arrow", "read"],
        "x.read() makes a table of it, and x.iter_batches() goes through it",
    ),
    (&["to_arrow_table"], "x.to_arrow_table() has the result, and so has what x.sql(...) returns"),
    (&["fetch_arrow_table"], "x.fetch_arrow_table() has the result"),
    (&["collect"], "x.collect() makes a frame of it"),
    (&["toArrow"], "x.toArrow() makes a table of it"),
    (&["to_pyarrow"], "x.to_pyarrow() makes a table of it"),
    (&["to_pyarrow_dataset"], "x.to_pyarrow_dataset() is what iter_batches takes"),
    (&["with_format"], "x.with_format(\"arrow\")[:] is a table"),
    (&["agg"], "these are groups: aggregate them, with x.agg(...)"),
    (&["to_frame"], "x.to_frame() makes a frame of it"),
    (&["compute", "dask"], "x.compute() makes a frame of it"),
    (&["to_arrow"], "x.to_arrow() makes a table of it"),
    (
        &["cursor", "execute"],
        "a connection has no rows: polars.read_database(query, x) and pandas.read_sql(query, x) make a frame of \
         a query's",
    ),
    (
        &["fetchone", "execute"],
        "a cursor's rows are Python objects: polars.read_database(query, connection) and pandas.read_sql(query, \
         connection) make a frame of them",
    ),
    (
        &["read", "close"],
        "read a file by its format: pyarrow.parquet.read_table(x), pyarrow.csv.read_csv(x) and \
         pyarrow.ipc.open_stream(x)",
    ),
];

pub(super) fn of_library(object: &Bound<'_, PyAny>) -> PyResult<Option<&'static str>> {
    for (methods, way_out) in LIBRARIES {
        if all(*methods, |method| object.hasattr(*method))? {
            return Ok(Some(way_out));
        }
    }
    Ok(None)
}
