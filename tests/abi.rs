//! `src/ffi.rs` is `dlpack.h`: a C program that includes a real header says what the numbers are.
#![cfg(not(miri))] // which starts no C compiler

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fmt, fs};

use arrow_dlpack::ffi::{
    DLDataType, DLDataTypeCode, DLDevice, DLDeviceType, DLManagedTensor, DLManagedTensorVersioned,
    DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION, DLPackCurrentWorkStream,
    DLPackDLTensorFromPyObjectNoSync, DLPackExchangeAPI, DLPackExchangeAPIHeader, DLPackFlags,
    DLPackManagedTensorAllocator, DLPackManagedTensorFromPyObjectNoSync,
    DLPackManagedTensorToPyObjectNoSync, DLPackVersion, DLTensor,
};

const FLAGS: [(DLPackFlags, &str); 3] = [
    (DLPackFlags::READ_ONLY, "DLPACK_FLAG_BITMASK_READ_ONLY"),
    (DLPackFlags::IS_COPIED, "DLPACK_FLAG_BITMASK_IS_COPIED"),
    (DLPackFlags::IS_SUBBYTE_TYPE_PADDED, "DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED"),
];

/// A type by its name in the header, and what Rust says of it.
struct Type {
    name: &'static str,
    size: usize,
    /// Name, offset and size of each field.
    fields: Vec<(&'static str, usize, usize)>,
}

/// Every type of the header whose layout both languages can state. A field that is left out here
/// does not compile, because the pattern has no `..`.
macro_rules! types {
    ($($type:ident { $($field:ident),* })*) => {
        vec![$({
            let _exhaustive = |$type { $($field: _),* }: $type| ();
            Type {
                name: stringify!($type),
                size: size_of::<$type>(),
                fields: vec![$((
                    stringify!($field),
                    core::mem::offset_of!($type, $field),
                    size_behind(|whole: &$type| &whole.$field),
                )),*],
            }
        }),*]
    };
}

fn structs() -> Vec<Type> {
    types! {
        DLPackVersion { major, minor }
        DLDevice { device_type, device_id }
        DLDataType { code, bits, lanes }
        DLTensor { data, device, ndim, dtype, shape, strides, byte_offset }
        DLManagedTensor { dl_tensor, manager_ctx, deleter }
        DLManagedTensorVersioned { version, manager_ctx, deleter, flags, dl_tensor }
        DLPackExchangeAPIHeader { version, prev_api }
        DLPackExchangeAPI {
            header, managed_tensor_allocator, managed_tensor_from_py_object_no_sync,
            managed_tensor_to_py_object_no_sync, dltensor_from_py_object_no_sync,
            current_work_stream
        }
    }
}

/// Function pointers, which may be NULL in a table, and the enum that is a field as it is.
fn scalars() -> Vec<Type> {
    macro_rules! sizes {
        ($($name:ident: $type:ty),* $(,)?) => {
            vec![$(Type { name: stringify!($name), size: size_of::<$type>(), fields: vec![] }),*]
        };
    }
    sizes! {
        DLDeviceType: DLDeviceType,
        DLPackManagedTensorAllocator: Option<DLPackManagedTensorAllocator>,
        DLPackManagedTensorFromPyObjectNoSync: Option<DLPackManagedTensorFromPyObjectNoSync>,
        DLPackManagedTensorToPyObjectNoSync: Option<DLPackManagedTensorToPyObjectNoSync>,
        DLPackDLTensorFromPyObjectNoSync: Option<DLPackDLTensorFromPyObjectNoSync>,
        DLPackCurrentWorkStream: Option<DLPackCurrentWorkStream>,
    }
}

fn size_behind<T, F>(_: fn(&T) -> &F) -> usize {
    size_of::<F>()
}

fn constants() -> Vec<(&'static str, i64)> {
    let mut constants = vec![
        ("DLPACK_MAJOR_VERSION", i64::from(DLPACK_MAJOR_VERSION)),
        ("DLPACK_MINOR_VERSION", i64::from(DLPACK_MINOR_VERSION)),
    ];
    constants.extend(DLDeviceType::ALL.iter().map(|&(code, name)| (name, i64::from(code.0))));
    constants.extend(DLDataTypeCode::ALL.iter().map(|&(code, name)| (name, i64::from(code.0))));
    constants.extend(
        FLAGS.iter().map(|&(flag, name)| (name, i64::try_from(flag.0).expect("a low bit"))),
    );
    constants
}

#[test]
fn every_size_offset_and_constant_is_the_c_compilers() {
    let mut says = Questions::default();
    for Type { name, size, fields } in structs().into_iter().chain(scalars()) {
        says.ask(format_args!("sizeof({name})"), size);
        for (field, offset, size) in fields {
            says.ask(format_args!("offsetof({name}, {field})"), offset);
            says.ask(format_args!("sizeof((({name} *)0)->{field})"), size);
        }
    }
    for (name, value) in constants() {
        says.ask(name, value);
    }
    let c = says.answers_of_c();
    assert_eq!(c.len(), says.0.len());
    for ((question, rust), c) in says.0.iter().zip(&c) {
        assert_eq!(rust, c, "{question}: Rust says {rust}, C says {c}");
    }
}

#[test]
fn no_struct_has_a_field_that_rust_does_not_know() {
    // C's sizes and offsets are Rust's, by the test above; no gap is left for another field.
    for Type { name, size, fields } in structs() {
        let end = fields.iter().fold(0, |end, &(field, offset, size)| {
            assert_eq!(offset, end, "gap in {name} before {field}");
            offset + size
        });
        assert_eq!(end, size, "gap at the end of {name}");
    }
}

#[test]
fn no_enumerator_is_missing_or_invented() {
    let header = without_comments(&header_text());
    let in_header: BTreeSet<&str> =
        identifiers(&header).filter(|name| name.starts_with("kDL")).collect();
    let tables = DLDeviceType::ALL.iter().map(|&(_, name)| name);
    let tables: Vec<&str> =
        tables.chain(DLDataTypeCode::ALL.iter().map(|&(_, name)| name)).collect();
    let in_rust: BTreeSet<&str> = tables.iter().copied().collect();
    assert!(in_header.contains("kDLCPU") && in_header.contains("kDLBool"), "{in_header:?}");
    assert_eq!(in_rust, in_header);
    assert_eq!(in_rust.len(), tables.len(), "a name is there twice");
}

#[test]
fn no_flag_is_missing_or_invented() {
    let header = without_comments(&header_text());
    let in_header: BTreeSet<&str> =
        identifiers(&header).filter(|name| name.starts_with("DLPACK_FLAG_BITMASK_")).collect();
    assert_eq!(FLAGS.iter().map(|&(_, name)| name).collect::<BTreeSet<_>>(), in_header);
}

#[test]
fn no_type_is_missing_or_invented() {
    let header = without_comments(&header_text());
    // `} Name;` ends a struct or an enum, `(*Name)(` begins a function type; fields that are
    // function pointers begin with a small letter or belong to one of them.
    let mut in_header: BTreeSet<String> = BTreeSet::new();
    for (before, after) in [("} ", ";"), ("typedef int (*", ")")] {
        in_header.extend(header.split(before).skip(1).filter_map(|rest| {
            let (name, _) = rest.split_once(after)?;
            name.chars().all(is_identifier).then(|| name.to_owned())
        }));
    }
    let in_rust: BTreeSet<String> = structs()
        .into_iter()
        .chain(scalars())
        .map(|of| of.name.to_owned())
        // Its values are a byte in Rust, as they are in the only struct that holds one.
        .chain(["DLDataTypeCode".to_owned()])
        .collect();
    assert_eq!(in_rust, in_header);
}

#[test]
fn names_and_values_of_codes_are_distinct() {
    let devices: BTreeMap<i32, &str> = DLDeviceType::ALL.iter().map(|d| (d.0.0, d.1)).collect();
    let dtypes: BTreeMap<u8, &str> = DLDataTypeCode::ALL.iter().map(|d| (d.0.0, d.1)).collect();
    assert_eq!(devices.len(), DLDeviceType::ALL.len());
    assert_eq!(dtypes.len(), DLDataTypeCode::ALL.len());
    let short: BTreeSet<_> = DLDeviceType::ALL.iter().filter_map(|d| d.0.name()).collect();
    assert_eq!(short.len(), DLDeviceType::ALL.len());
    let short: BTreeSet<_> = DLDataTypeCode::ALL.iter().filter_map(|d| d.0.name()).collect();
    assert_eq!(short.len(), DLDataTypeCode::ALL.len());
    assert_eq!((DLDeviceType(99).name(), DLDataTypeCode(99).name()), (None, None));
}

/// C expressions, and the value that Rust expects of each.
#[derive(Default)]
struct Questions(Vec<(String, i64)>);

impl Questions {
    fn ask(&mut self, expression: impl fmt::Display, value: impl TryInto<i64>) {
        let Ok(value) = value.try_into() else { panic!("{expression} is beyond 64 bits") };
        self.0.push((expression.to_string(), value));
    }

    /// Writes, compiles and runs a program that prints one number a line.
    fn answers_of_c(&self) -> Vec<i64> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let (source, program) = (folder.join("abi.c"), folder.join("abi"));
        let mut text = String::from(
            "#include <dlpack/dlpack.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n",
        );
        for (expression, _) in &self.0 {
            text += &format!("  printf(\"%lld\\n\", (long long)({expression}));\n");
        }
        text += "  return 0;\n}\n";
        fs::write(&source, text).expect("the target folder can be written to");

        // TARGET_CC and TARGET_RUNNER are for tests that an emulator runs.
        let cc = env::var("TARGET_CC").or_else(|_| env::var("CC"));
        let mut compile = command_of(cc.as_deref().unwrap_or("cc")).expect("CC names a compiler");
        compile.arg("-I").arg(include_folder()).arg("-o").arg(&program).arg(&source);
        run(&mut compile);
        let runner = env::var("TARGET_RUNNER").ok().and_then(|runner| command_of(&runner));
        let mut answer = match runner {
            Some(mut runner) => {
                runner.arg(&program);
                runner
            }
            None => Command::new(&program),
        };
        let Output { stdout, .. } = run(&mut answer);
        let printed = String::from_utf8(stdout).expect("digits");
        printed.lines().map(|line| line.parse().expect("a number")).collect()
    }
}

/// A program and its first arguments, with spaces between.
fn command_of(words: &str) -> Option<Command> {
    let mut words = words.split_whitespace();
    let mut command = Command::new(words.next()?);
    command.args(words);
    Some(command)
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| {
        panic!("cannot run {command:?}: {error}. This test needs a C compiler: install one as `cc`, or name it in CC")
    });
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed:\n{errors}");
    output
}

fn header_text() -> String {
    let path = include_folder().join("dlpack/dlpack.h");
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The folder that holds `dlpack/dlpack.h`.
fn include_folder() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    if let Some(folder) = env::var_os("DLPACK_INCLUDE").map(|folder| root.join(folder)) {
        let found = folder.join("dlpack/dlpack.h").is_file();
        assert!(found, "DLPACK_INCLUDE={} holds no dlpack/dlpack.h", folder.display());
        return folder;
    }
    let pythons = fs::read_dir(root.join(".venv/lib")).into_iter().flatten().flatten();
    let found = pythons
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"))
        .map(|entry| entry.path().join("site-packages/tvm_ffi/include"))
        .find(|folder| folder.join("dlpack/dlpack.h").is_file());
    found.unwrap_or_else(|| {
        panic!(
            "\n\n    No dlpack.h to compare src/ffi.rs with. Either run `make test`, which installs \
             one\n    into .venv (with apache-tvm-ffi), or set DLPACK_INCLUDE to a folder that holds\n    \
             dlpack/dlpack.h.\n"
        )
    })
}

fn without_comments(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("/*") {
        code += &rest[..at];
        let (_, after) = rest[at..].split_once("*/").expect("the comment ends");
        rest = after;
    }
    code += rest;
    code.lines().map(|line| line.split("//").next().unwrap_or(line).to_owned() + "\n").collect()
}

fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_identifier(c)).filter(|word| !word.is_empty())
}

fn is_identifier(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
