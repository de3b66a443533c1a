//! The columns of a table: by name, and those that pandas marks as an index in the schema's metadata.

use std::collections::HashMap;

use arrow_schema::Schema;
use serde_json::{Value, value::RawValue};

use crate::Error;

/// Positions of the wanted names among the columns' names, each of which must be unique.
pub(crate) fn positions(names: &[&str], wanted: &[&str]) -> Result<Vec<usize>, Error> {
    let mut found: HashMap<&str, (usize, usize)> = HashMap::new();
    for (index, name) in names.iter().enumerate() {
        found.entry(name).or_insert((index, 0)).1 += 1;
    }
    let (mut positions, mut missing) = (Vec::with_capacity(wanted.len()), Vec::new());
    for &name in wanted {
        match found.get(name) {
            Some(&(index, 1)) => positions.push(index),
            Some(&(_, count)) => {
                return Err(Error::SeveralColumns { name: name.to_owned(), count });
            }
            None => missing.push(name.to_owned()),
        }
    }
    if missing.is_empty() {
        return Ok(positions);
    }
    let names = names.iter().copied().map(str::to_owned).collect();
    Err(Error::NoSuchColumns { missing, names })
}

/// The same for the columns of a table.
pub(crate) fn of_names(schema: &Schema, wanted: &[&str]) -> Result<Vec<usize>, Error> {
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    positions(&names, wanted)
}

/// Positions of the columns that are not an index of pandas.
pub(crate) fn features(schema: &Schema) -> Vec<usize> {
    let index = index_columns(schema);
    (0..schema.fields().len()).filter(|at| index.binary_search(at).is_err()).collect()
}

/// Positions of the columns of a table that are the index of a pandas data frame: labels of the rows, rather than
/// features.
///
/// The Python functions leave these columns out by default. In Rust, a batch is exported with all of its columns: use
/// this function to leave some out. Metadata that is malformed is ignored.
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
    index_positions(&names, metadata)
}

/// Positions of the index among columns of these names: of equal names the last ones, because the index comes last.
/// Levels may have one name: those that pandas calls 1 and 2 are both called "1" by pyarrow.
pub(crate) fn index_positions(names: &[&str], metadata: &str) -> Vec<usize> {
    // A range index is not a column; the metadata describes it by an object.
    let levels = levels(metadata).unwrap_or_default();
    let mut found: Vec<usize> = Vec::new();
    for level in levels.iter().filter_map(Value::as_str) {
        let is_next = |at: &usize| names[*at] == level && !found.contains(at);
        found.extend((0..names.len()).rev().find(is_next));
    }
    found.sort_unstable();
    found
}

/// The names of levels of an index at equal steps, of which pandas writes no column.
pub(crate) fn index_steps(metadata: &str) -> Vec<String> {
    let levels = levels(metadata).unwrap_or_default();
    let steps = levels.iter().filter(|level| level["kind"] == "range");
    steps.filter_map(|level| level["name"].as_str().map(str::to_owned)).collect()
}

fn levels(metadata: &str) -> serde_json::Result<Vec<Value>> {
    // Parses only this key: the metadata of a wide table is long.
    let parts: HashMap<String, &RawValue> = match serde_json::from_str(metadata) {
        Ok(parts) => parts,
        // Python's json writes NaN and Infinity, of a column's name or an attribute of the frame.
        Err(_) => return levels_of(&serde_json::from_str(&finite(metadata))?),
    };
    levels_of(&parts)
}

fn levels_of(parts: &HashMap<String, &RawValue>) -> serde_json::Result<Vec<Value>> {
    parts.get("index_columns").map_or(Ok(Vec::new()), |part| serde_json::from_str(part.get()))
}

/// The text with null in place of `NaN`, `Infinity` and `-Infinity` outside of strings, which JSON does not know.
fn finite(text: &str) -> String {
    let (mut made, mut rest, mut in_string) = (String::with_capacity(text.len()), text, false);
    while let Some(char) = rest.chars().next() {
        let unknown =
            ["NaN", "Infinity", "-Infinity"].into_iter().find(|word| rest.starts_with(word));
        let taken = match (in_string, char, unknown) {
            (false, _, Some(word)) => {
                made.push_str("null");
                rest = &rest[word.len()..];
                continue;
            }
            (true, '\\', _) => rest.chars().take(2).map(char::len_utf8).sum(),
            _ => char.len_utf8(),
        };
        in_string ^= char == '"';
        made.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    made
}

#[cfg(test)]
mod tests {
    use super::{index_positions, index_steps};

    const NAMES: [&str; 4] = ["a", "day", "b", "day"];

    #[test]
    fn levels_at_equal_steps_are_named() {
        let levels =
            r#""a", {"kind": "range", "name": "b"}, {"kind": "range", "name": null}, {}, 1"#;
        assert_eq!(index_steps(&format!(r#"{{"index_columns": [{levels}]}}"#)), ["b"]);
        assert!(index_steps("").is_empty());
    }

    #[test]
    fn index_columns_are_those_of_the_metadata() {
        let range = r#"{"kind": "range", "name": null, "start": 0, "stop": 4, "step": 2}"#;
        for (levels, found) in [
            ("[]", &[][..]),
            (r#"["b"]"#, &[2]),
            (r#"["day", "a"]"#, &[0, 3]),
            (r#"["a", "a", "gone"]"#, &[0]),
            (r#"["day", "day", "day"]"#, &[1, 3]),
            (&format!("[{range}]"), &[]),
        ] {
            let metadata =
                format!(r#"{{"columns": [{{"name": "a"}}], "index_columns": {levels}}}"#);
            assert_eq!(index_positions(&NAMES, &metadata), found, "{levels}");
        }
    }

    #[test]
    fn numbers_that_only_python_writes_hide_no_index() {
        for part in ["NaN", "-Infinity", "[1, Infinity]", r#"{"a": NaN, "b": "NaN \" NaN"}"#] {
            let metadata = format!(r#"{{"index_columns": ["day", "b"], "attributes": {part}}}"#);
            assert_eq!(index_positions(&NAMES, &metadata), [2, 3], "{part}");
        }
        let named = r#"{"x": NaN, "index_columns": ["a", "Infinity \\"], "y": -Infinity}"#;
        assert_eq!(index_positions(&["a", "Infinity \\"], named), [0, 1]);
    }

    #[test]
    fn malformed_metadata_is_ignored() {
        // Deeper than any stack; less under Miri, where a step takes a microsecond.
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
                index_positions(&NAMES, metadata).is_empty(),
                "{}",
                metadata.get(..40).unwrap_or(metadata)
            );
        }
    }
}
