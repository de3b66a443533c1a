//! What the compiler says to a first user's mistakes names what to write: each file in `tests/mistakes` is one, with the words
//! that its first error must have, whatever else a version of rustc says.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A package outside of the workspace, with a program for each mistake.
fn package(at: &Path, mistakes: &BTreeMap<String, String>) {
    let mut manifest = format!(
        "[package]\nname = \"mistakes\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\narrow-dlpack = {{ path = {ROOT:?} }}\n"
    );
    for name in mistakes.keys() {
        let path = Path::new(ROOT).join("tests/mistakes").join(name).with_extension("rs");
        write!(manifest, "\n[[bin]]\nname = {name:?}\npath = {path:?}\n").expect("a string");
    }
    fs::create_dir_all(at).expect("a folder");
    fs::write(at.join("Cargo.toml"), manifest).expect("a file");
    fs::copy(Path::new(ROOT).join("Cargo.lock"), at.join("Cargo.lock")).expect("a file");
}

#[test]
#[cfg_attr(miri, ignore = "runs the compiler")]
fn the_compiler_names_what_to_write() {
    let mut mistakes = BTreeMap::new();
    for entry in fs::read_dir(Path::new(ROOT).join("tests/mistakes")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let text = fs::read_to_string(&path).expect("a text");
        let words = text.strip_prefix("//~ ").and_then(|text| text.lines().next());
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        mistakes.insert(name, words.expect("the first line has the words").to_owned());
    }
    assert!(mistakes.len() >= 30, "{} files", mistakes.len());

    let at = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mistakes");
    package(&at, &mistakes);
    let cargo = env::var_os("CARGO").expect("cargo runs its tests");
    let checked = Command::new(cargo)
        .args([
            "check",
            "--quiet",
            "--offline",
            "--keep-going",
            "--message-format",
            "json",
            "--target-dir",
        ])
        .arg(at.join("target"))
        .current_dir(&at)
        .output()
        .expect("cargo");
    let mut said: BTreeMap<String, String> = BTreeMap::new();
    for line in String::from_utf8(checked.stdout).expect("JSON").lines() {
        let message: Value = serde_json::from_str(line).expect("JSON");
        let is_error = message["message"]["level"] == "error";
        if let (true, Some(name)) = (is_error, message["target"]["name"].as_str()) {
            let words = message["message"]["rendered"].as_str().unwrap_or_default();
            said.entry(name.to_owned()).or_insert_with(|| words.to_owned());
        }
    }
    let mut failures = String::new();
    for (name, words) in mistakes {
        match said.get(&name) {
            None => writeln!(failures, "{name} compiles").expect("a string"),
            Some(found) if found.contains(&words) => {}
            Some(found) => {
                writeln!(failures, "{name}: no {words:?} in\n{found}").expect("a string")
            }
        }
    }
    assert_eq!(failures, "", "{}", String::from_utf8_lossy(&checked.stderr));
}

/// What a first user wrote and the compiler refused, before it was taken.
#[test]
fn what_is_typed_first_compiles() -> Result<(), arrow_dlpack::Error> {
    use std::sync::Arc;

    use arrow_array::{Array, ArrayRef, Int32Array, record_batch};
    use arrow_dlpack::{ExportOptions, ManagedTensor, export};
    use arrow_schema::{DataType, Field, FieldRef};

    let options = ExportOptions::default().with_nulls(0);
    let array: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
    let shared = Arc::new(Int32Array::from(vec![1, 2]));
    let field: FieldRef = Arc::new(Field::new("x", DataType::Int32, true));
    export::tensor(&array, &options)?;
    let dynamic: &dyn Array = &*array;
    export::tensor(dynamic, &options)?;
    export::tensor(&shared, &options)?;
    export::tensor((&array, &field), &options)?;
    export::tensor((dynamic, &*field), &options)?;
    export::tensor((&vec![Arc::clone(&array)], &field), &options)?;
    let batch = record_batch!(("x", Int32, [1, 2])).expect("a batch");
    export::tensor(&batch, &options)?;
    export::tensor((&vec![batch.clone()], &batch.schema()), &options)?;
    ManagedTensor::try_from(&array.slice(0, 1))?;
    let tensor = ManagedTensor::from(vec![1.5_f32, 2.5]);
    let (values, _): (Vec<f64>, _) = export::to_vec(&array, &options)?;
    let mut memory = [0.0_f32; 2];
    export::tensor_into(&array, &mut memory, &options)?;
    export::tensor_into(&array, &mut vec![0_i64; 2], &options)?;
    assert_eq!((tensor.dims(), values, memory), (vec![2], vec![1.0, 0.0], [1.0, 0.0]));
    Ok(())
}
