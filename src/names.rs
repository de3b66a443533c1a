//! Finds columns by name.

use std::collections::HashMap;

use arrow_schema::Schema;

use crate::{Error, pandas};

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
pub(crate) fn columns(schema: &Schema, wanted: &[&str]) -> Result<Vec<usize>, Error> {
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    positions(&names, wanted)
}

/// Positions of the columns that are not an index of pandas.
pub(crate) fn features(schema: &Schema) -> Vec<usize> {
    let index = pandas::index_columns(schema);
    (0..schema.fields().len()).filter(|at| index.binary_search(at).is_err()).collect()
}
