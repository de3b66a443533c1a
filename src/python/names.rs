//! Columns by their names.

use std::collections::{HashMap, HashSet};

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;

/// Where the columns of the wanted names are among columns of these names, of each the only one.
pub(super) fn positions(names: &[&str], wanted: &[String]) -> PyResult<Vec<usize>> {
    let mut found: HashMap<&str, (usize, usize)> = HashMap::new();
    for (index, name) in names.iter().enumerate() {
        found.entry(name).or_insert((index, 0)).1 += 1;
    }
    let (mut positions, mut missing) = (Vec::with_capacity(wanted.len()), Vec::new());
    for name in wanted {
        match found.get(name.as_str()) {
            Some(&(index, 1)) => positions.push(index),
            Some(&(_, count)) => return Err(several(name, count)),
            None => missing.push(name.as_str()),
        }
    }
    if missing.is_empty() { Ok(positions) } else { Err(no_columns(&missing, names)) }
}

/// The error for names that no column has.
fn no_columns(missing: &[&str], names: &[&str]) -> PyErr {
    let (is, missing, names) = match missing {
        [_] => ("is no column", shown(missing), shown(names)),
        _ => ("are no columns", shown(missing), shown(names)),
    };
    PyKeyError::new_err(format!("there {is} {missing} among [{names}]"))
}

/// An error if a name comes twice, where columns are told apart by their names.
pub(super) fn refuse_twice(wanted: &[String]) -> PyResult<()> {
    let mut seen = HashSet::with_capacity(wanted.len());
    match wanted.iter().find(|&name| !seen.insert(name)) {
        Some(name) => {
            Err(PyKeyError::new_err(format!("columns= names {} twice", shown(&[name.as_str()]))))
        }
        None => Ok(()),
    }
}

/// The error for a name that several columns have.
pub(super) fn several(name: &str, count: usize) -> PyErr {
    PyKeyError::new_err(format!("{count} columns are called {}", shown(&[name])))
}

/// As many names as somebody reads, and as much of each.
pub(super) fn shown(names: &[&str]) -> String {
    const SHOWN: usize = 30;
    let name = |name: &&str| match name.char_indices().nth(100) {
        Some((end, _)) => format!("{:?}...", &name[..end]),
        None => format!("{name:?}"),
    };
    let mut texts: Vec<String> = names.iter().take(SHOWN).map(name).collect();
    if names.len() > SHOWN {
        texts.push(format!("and {} more", names.len() - SHOWN));
    }
    texts.join(", ")
}
