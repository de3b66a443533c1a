//! What pandas writes beside its columns: which of them are an index.
//!
//! pandas and pyarrow keep an index as columns of the table, behind the others, under whatever names its levels
//! have. The schema's metadata says which they are, in JSON under the key `pandas`:
//! <https://pandas.pydata.org/docs/development/developer.html#storing-pandas-dataframe-objects-in-apache-parquet-format>.

use std::collections::HashMap;

use arrow_schema::Schema;
use serde_json::Value;
use serde_json::value::RawValue;

/// Where the columns of a table are that are the index of a pandas frame: no features of its rows, but their
/// labels.
///
/// In Python they are left out unless they are asked for. In Rust a batch is what its columns are, and this tells
/// which to leave out of it. Metadata that is not what pandas writes says nothing.
///
/// ```
/// use std::sync::Arc;
/// use arrow_array::{ArrayRef, Float32Array, Int64Array, RecordBatch};
/// use arrow_dlpack::{ExportOptions, export, pandas};
///
/// let x: ArrayRef = Arc::new(Float32Array::from(vec![0.5, 1.5]));
/// let index: ArrayRef = Arc::new(Int64Array::from(vec![7, 9]));
/// let mut batch = RecordBatch::try_from_iter([("x", x), ("__index_level_0__", index)])?;
/// # let metadata = r#"{"index_columns": ["__index_level_0__"]}"#.to_owned();
/// # batch.schema_metadata_mut().insert("pandas".to_owned(), metadata);
/// let index = pandas::index_columns(&batch.schema());
/// assert_eq!(index, [1]);
/// let features: Vec<usize> = (0..batch.num_columns()).filter(|at| !index.contains(at)).collect();
/// let matrix = export::tensor(&batch.project(&features)?, &ExportOptions::default())?;
/// assert_eq!(matrix.shape(), [2, 1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn index_columns(schema: &Schema) -> Vec<usize> {
    let Some(metadata) = schema.metadata().get("pandas") else { return Vec::new() };
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    positions(&names, metadata)
}

/// Where the index is among columns of these names: the last one of a name, because it comes behind the others.
pub(crate) fn positions(names: &[&str], metadata: &str) -> Vec<usize> {
    // A range is no column, and is described by an object.
    let levels = levels(metadata).unwrap_or_default();
    let levels = levels.iter().filter_map(Value::as_str);
    let mut found: Vec<usize> =
        levels.filter_map(|level| names.iter().rposition(|&name| name == level)).collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn levels(metadata: &str) -> serde_json::Result<Vec<Value>> {
    // Of a wide frame the rest is long.
    let parts: HashMap<String, &RawValue> = serde_json::from_str(metadata)?;
    parts.get("index_columns").map_or(Ok(Vec::new()), |part| serde_json::from_str(part.get()))
}

#[cfg(test)]
mod tests {
    use super::positions;

    const NAMES: [&str; 4] = ["a", "day", "b", "day"];

    #[test]
    fn the_index_is_what_pandas_says_it_is() {
        let range = r#"{"kind": "range", "name": null, "start": 0, "stop": 4, "step": 2}"#;
        for (levels, found) in [
            ("[]", &[][..]),
            (r#"["b"]"#, &[2]),
            (r#"["day", "a"]"#, &[0, 3]),
            (r#"["a", "a", "gone"]"#, &[0]),
            (&format!("[{range}]"), &[]),
        ] {
            let metadata =
                format!(r#"{{"columns": [{{"name": "a"}}], "index_columns": {levels}}}"#);
            assert_eq!(positions(&NAMES, &metadata), found, "{levels}");
        }
    }

    #[test]
    fn what_pandas_does_not_write_says_nothing() {
        // Deeper than any stack, but where a step takes a microsecond.
        let levels = if cfg!(miri) { 1 << 10 } else { 1 << 20 };
        let deep = format!(r#"{{"index_columns": {}}}"#, "[".repeat(levels));
        let closed = format!(r#"{{"x": {}{}}}"#, "[".repeat(levels), "]".repeat(levels));
        let nested = format!(r#"{{"index_columns": {}{}}}"#, "[".repeat(999), "]".repeat(999));
        for metadata in [
            "",
            "null",
            "[]",
            "\"a\"",
            "{",
            r#"{"index_columns": "a"}"#,
            r#"{"index_columns": {"a": "a"}}"#,
            r#"{"index_columns": [["a"], 1, null, true, {"name": "a"}]}"#,
            r#"{"index_columns": ["a"]"#,
            r#"{"index_columns": ["a"]} more"#,
            &deep,
            &closed,
            &nested,
        ] {
            assert!(
                positions(&NAMES, metadata).is_empty(),
                "{}",
                metadata.get(..40).unwrap_or(metadata)
            );
        }
    }
}
