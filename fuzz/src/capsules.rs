//! Sequences of what Python programs do with capsules, in an interpreter of our own.

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};

use arbitrary::{Result, Unstructured};
use arrow_dlpack::ffi::{
    DLManagedTensor, DLManagedTensorVersioned, DLPackExchangeAPI, DLPackExchangeAPIHeader,
    DLPackVersion, DLTensor,
};
use arrow_dlpack::python::register;
use pyo3::exceptions::{PyException, PyRuntimeError, PySystemError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCapsule, PyDict, PyTuple};

use crate::draw::{self, rarely};
use crate::structures::{ArrowArray, ArrowSchema, Pair, Releases};
use crate::support::{self as tests, Abi, Watch};

const LEGACY: [&CStr; 2] = [c"dltensor", c"used_dltensor"];
const VERSIONED: [&CStr; 2] = [c"dltensor_versioned", c"used_dltensor_versioned"];
const EXCHANGE: &CStr = c"dlpack_exchange_api";

/// One execution: a few operations, and then everything goes, in some order, here or on another thread.
pub fn capsules(u: &mut Unstructured<'_>) -> Result<()> {
    // What arrow-rs asserts is caught in the library, and becomes an exception; what is ours does not.
    crate::panics::tolerate_arrow();
    Python::attach(|py| {
        let mut session =
            Session { py, objects: Vec::new(), raw: Vec::new(), exported: Exported::default() };
        for _ in 0..32 {
            if u.is_empty() || session.step(u).is_err() {
                break;
            }
        }
        session.end(u);
    });
    Ok(())
}

struct Session<'py> {
    py: Python<'py>,
    objects: Vec<Bound<'py, PyAny>>,
    raw: Vec<Raw>,
    exported: Exported,
}

/// Exported objects, whose release is checked at the end.
#[derive(Default)]
struct Exported {
    tensors: Vec<(Watch, bool)>,
    structures: Vec<std::sync::Arc<Releases>>,
}

/// A tensor out of a capsule, as a C consumer has it.
enum Raw {
    Versioned(*mut DLManagedTensorVersioned),
    Legacy(*mut DLManagedTensor),
}

// SAFETY: a deleter may be called on any thread.
unsafe impl Send for Raw {}

impl Drop for Raw {
    fn drop(&mut self) {
        // SAFETY: it was taken out of its capsule, and no other code deletes it.
        unsafe {
            match *self {
                Self::Versioned(tensor) => (*tensor).deleter.map(|delete| delete(tensor)),
                Self::Legacy(tensor) => (*tensor).deleter.map(|delete| delete(tensor)),
            };
        }
    }
}

/// Does not care who calls it, with the GIL or without.
fn elsewhere(py: Python<'_>, work: Box<dyn FnOnce() + Send>) {
    type Work = Box<dyn FnOnce() + Send>;
    type Worker = Mutex<(Sender<Work>, Receiver<()>)>;
    static WORKER: std::sync::OnceLock<Worker> = std::sync::OnceLock::new();
    let worker = WORKER.get_or_init(|| {
        let (sender, inbox) = channel::<Work>();
        let (done, outbox) = channel();
        std::thread::spawn(move || {
            for work in inbox {
                work();
                done.send(()).expect("a receiver");
            }
        });
        Mutex::new((sender, outbox))
    });
    py.detach(|| {
        let worker = worker.lock().expect("no panic here");
        worker.0.send(work).expect("the worker waits");
        worker.1.recv().expect("the worker answers");
    });
}

/// The module under test.
fn module(py: Python<'_>) -> &Bound<'_, PyModule> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let make = || {
        let module = PyModule::new(py, "_core")?;
        register(&module)?;
        // Cycles are none of ours, and looking for them takes longer than anything here.
        py.import("gc")?.call_method0("disable")?;
        PyResult::Ok(module.unbind())
    };
    MODULE.get_or_try_init(py, make).expect("the module registers").bind(py)
}

/// A producer with `__dlpack__`: each call answers with the next of what it was given.
#[pyclass(frozen)]
struct Producer {
    answers: Mutex<Vec<Answer>>,
    device: (i32, i32),
}

enum Answer {
    Capsule(Raw),
    Object(Py<PyAny>),
    Error,
}

impl Producer {
    fn next(&self) -> Answer {
        self.answers.lock().expect("no panic here").pop().unwrap_or(Answer::Error)
    }
}

#[pymethods]
impl Producer {
    #[pyo3(signature = (**keywords))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        keywords: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = keywords;
        match self.next() {
            Answer::Capsule(raw) => Ok(capsule(py, raw)),
            Answer::Object(object) => Ok(object.into_bound(py)),
            Answer::Error => Err(PyRuntimeError::new_err("no more")),
        }
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        self.device
    }
}

/// As [`Producer`], but by the C exchange API.
#[pyclass(frozen)]
struct Exchanger(Producer);

#[pymethods]
impl Exchanger {
    fn __dlpack__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.0.__dlpack__(py, None)
    }

    #[classattr]
    fn __dlpack_c_exchange_api__(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        struct Table(DLPackExchangeAPI);
        // SAFETY: it is not written to.
        unsafe impl Sync for Table {}
        static TABLE: Table = Table(DLPackExchangeAPI {
            header: DLPackExchangeAPIHeader {
                version: DLPackVersion { major: 1, minor: 3 },
                prev_api: ptr::null_mut(),
            },
            managed_tensor_allocator: None,
            managed_tensor_from_py_object_no_sync: Some(hand_out),
            managed_tensor_to_py_object_no_sync: None,
            dltensor_from_py_object_no_sync: None,
            current_work_stream: None,
        });
        let table = (&raw const TABLE.0).cast_mut().cast();
        // SAFETY: attached, and table and name are static.
        unsafe {
            let capsule = ffi::PyCapsule_New(table, EXCHANGE.as_ptr(), None);
            Bound::from_owned_ptr_or_err(py, capsule)
        }
    }
}

unsafe extern "C" fn hand_out(object: *mut c_void, out: *mut *mut DLManagedTensorVersioned) -> i32 {
    // SAFETY: called attached, with an object of the type, and a place to write to.
    unsafe {
        let py = Python::assume_attached();
        let object = Borrowed::from_ptr(py, object.cast());
        let Ok(exchanger) = object.cast::<Exchanger>() else { return -1 };
        match exchanger.get().0.next() {
            Answer::Capsule(raw) => {
                // Success without a tensor, for a legacy one, is none.
                if let Raw::Versioned(tensor) = raw {
                    out.write(tensor);
                    std::mem::forget(raw);
                }
                0
            }
            Answer::Object(_) => -1,
            Answer::Error => {
                PyRuntimeError::new_err("no more").restore(py);
                -1
            }
        }
    }
}

/// An object with `__arrow_c_array__`.
#[pyclass(frozen)]
struct Structures {
    schema: Py<PyAny>,
    array: Py<PyAny>,
}

#[pymethods]
impl Structures {
    fn __arrow_c_array__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyAny>, Bound<'py, PyAny>) {
        (self.schema.bind(py).clone(), self.array.bind(py).clone())
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.schema.bind(py).clone()
    }
}

unsafe extern "C" fn drop_schema(capsule: *mut ffi::PyObject) {
    // SAFETY: made by `structures`.
    unsafe {
        let pointer = ffi::PyCapsule_GetPointer(capsule, c"arrow_schema".as_ptr());
        drop(Box::from_raw(pointer.cast::<ArrowSchema>()));
    }
}

unsafe extern "C" fn drop_array(capsule: *mut ffi::PyObject) {
    // SAFETY: as above.
    unsafe {
        let pointer = ffi::PyCapsule_GetPointer(capsule, c"arrow_array".as_ptr());
        drop(Box::from_raw(pointer.cast::<ArrowArray>()));
    }
}

/// A tensor in a capsule that deletes it, unless it is taken.
fn capsule(py: Python<'_>, raw: Raw) -> Bound<'_, PyAny> {
    let (pointer, [name, _]) = match raw {
        Raw::Versioned(tensor) => (tensor.cast::<c_void>(), VERSIONED),
        Raw::Legacy(tensor) => (tensor.cast(), LEGACY),
    };
    std::mem::forget(raw);
    // SAFETY: attached, and the name is static.
    unsafe {
        let capsule = ffi::PyCapsule_New(pointer, name.as_ptr(), Some(drop_tensor));
        Bound::from_owned_ptr(py, capsule)
    }
}

unsafe extern "C" fn drop_tensor(capsule: *mut ffi::PyObject) {
    // SAFETY: made by `capsule`; a consumer that takes the tensor renames it.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED[0].as_ptr()) == 1 {
            let tensor = ffi::PyCapsule_GetPointer(capsule, VERSIONED[0].as_ptr());
            drop(Raw::Versioned(tensor.cast()));
        } else if ffi::PyCapsule_IsValid(capsule, LEGACY[0].as_ptr()) == 1 {
            let tensor = ffi::PyCapsule_GetPointer(capsule, LEGACY[0].as_ptr());
            drop(Raw::Legacy(tensor.cast()));
        }
    }
}

/// Takes the tensor out of a capsule, which is then called something else.
fn take(object: &Bound<'_, PyAny>, name: &'static CStr) -> Option<Raw> {
    let valid = |name: &CStr| {
        // SAFETY: attached, any object may be asked.
        unsafe { ffi::PyCapsule_IsValid(object.as_ptr(), name.as_ptr()) == 1 }
    };
    let is_versioned = valid(VERSIONED[0]);
    let old = if is_versioned { VERSIONED[0] } else { LEGACY[0] };
    if !is_versioned && !valid(old) {
        return None;
    }
    // SAFETY: a capsule of this name, which is static.
    unsafe {
        let pointer = ffi::PyCapsule_GetPointer(object.as_ptr(), old.as_ptr());
        assert_eq!(ffi::PyCapsule_SetName(object.as_ptr(), name.as_ptr()), 0);
        Some(if is_versioned {
            Raw::Versioned(pointer.cast())
        } else {
            Raw::Legacy(pointer.cast())
        })
    }
}

impl<'py> Session<'py> {
    fn step(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        match u.int_in_range(0..=15)? {
            0 | 1 => {
                let raw = self.tensor(u)?;
                self.objects.push(capsule(self.py, raw));
            }
            2 => self.producer(u)?,
            3 | 4 => self.structures(u)?,
            5 => {
                if let Some(object) = self.pick(u)? {
                    let name = *u.choose(&[VERSIONED[1], LEGACY[1], c"something", c""])?;
                    self.raw.extend(take(&object, name));
                }
            }
            6 => {
                if !self.raw.is_empty() {
                    let raw = self.raw.swap_remove(u.choose_index(self.raw.len())?);
                    self.dispose(u, Box::new(move || drop(raw)))?;
                }
            }
            7 => self.forget(u)?,
            8 => self.exchange(u)?,
            10 | 11 => {
                if let Some(object) = self.pick(u)? {
                    let keywords =
                        self.keywords(u, &["stream", "max_version", "dl_device", "copy"])?;
                    let answer = object.call_method("__dlpack__", (), Some(&keywords));
                    self.answer(answer);
                }
            }
            12 => {
                if let Some(object) = self.pick(u)? {
                    let class = module(self.py).getattr("Tensor").expect("a class");
                    let answer = class.call_method1("from_dlpack", (object,));
                    self.answer(answer);
                }
            }
            9 => {
                // Twice the same object in one place.
                if let Some(object) = self.pick(u)? {
                    self.objects.push(object);
                }
            }
            _ => self.call(u)?,
        }
        assert!(PyErr::take(self.py).is_none(), "an unexpected exception");
        self.objects.truncate(12);
        Ok(())
    }

    fn pick(&self, u: &mut Unstructured<'_>) -> Result<Option<Bound<'py, PyAny>>> {
        if self.objects.is_empty() {
            return Ok(None);
        }
        // Mostly what came last: so that short inputs get far.
        let last = self.objects.len() - 1;
        let index = if u.ratio(2, 3)? { last } else { u.choose_index(last + 1)? };
        Ok(Some(self.objects[index].clone()))
    }

    /// A tensor of a hostile producer, or of a tame one, which takes a byte.
    fn tensor(&mut self, u: &mut Unstructured<'_>) -> Result<Raw> {
        let kind: u8 = u.arbitrary()?;
        let abi = Abi::BOTH[usize::from(kind % 2)];
        let producer = match kind / 2 % 4 {
            0 => tests::Producer::vector(&[1.5f32, 2.5, 3.5]),
            1 => tests::Producer::vector(&[0i32, 1, 2]),
            2 => {
                let bytes = [0, 1, 1, 0, 1, 7];
                tests::Producer::bytes(crate::support::dtype(6, 8, 1), &bytes, &[2, 3], &[1, 2])
            }
            _ => {
                let (dtype, shape) = (draw::dtype_of(u)?, draw::shape(u)?);
                draw::producer(u, abi, dtype, shape)?
            }
        };
        let deletes = producer.deleter;
        let (raw, watch) = match abi {
            Abi::Versioned => {
                let (tensor, watch) = producer.versioned();
                (Raw::Versioned(tensor), watch)
            }
            Abi::Legacy => {
                let (tensor, watch) = producer.legacy();
                (Raw::Legacy(tensor), watch)
            }
        };
        self.exported.tensors.push((watch, deletes));
        Ok(raw)
    }

    fn producer(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let mut answers = Vec::new();
        for _ in 0..u.int_in_range(1..=2)? {
            answers.push(match u.int_in_range(0..=7)? {
                0 => Answer::Error,
                1 => match self.pick(u)? {
                    Some(object) => Answer::Object(object.unbind()),
                    None => Answer::Object(self.py.None()),
                },
                _ => Answer::Capsule(self.tensor(u)?),
            });
        }
        let device = *u.choose(&[(1, 0), (1, 0), (2, 0), (11, 0), (99, -1)])?;
        let producer = Producer { answers: Mutex::new(answers), device };
        let object = if u.ratio(1, 3)? {
            Bound::new(self.py, Exchanger(producer)).map(Bound::into_any)
        } else {
            Bound::new(self.py, producer).map(Bound::into_any)
        };
        self.objects.push(object.expect("memory"));
        Ok(())
    }

    fn structures(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let Pair { schema, array, releases } = Pair::draw(u)?;
        self.exported.structures.push(releases);
        let (schema, array) = (Box::into_raw(Box::new(schema)), Box::into_raw(Box::new(array)));
        // SAFETY: attached, the names are static, and the destructors know what they get.
        let (schema, array) = unsafe {
            let schema =
                ffi::PyCapsule_New(schema.cast(), c"arrow_schema".as_ptr(), Some(drop_schema));
            let array = ffi::PyCapsule_New(array.cast(), c"arrow_array".as_ptr(), Some(drop_array));
            (
                Bound::from_owned_ptr(self.py, schema).unbind(),
                Bound::from_owned_ptr(self.py, array).unbind(),
            )
        };
        let object = Bound::new(self.py, Structures { schema, array }).expect("memory");
        self.objects.push(object.into_any());
        // Most of the time it is turned into an array at once.
        if u.ratio(1, 2)? {
            let class = module(self.py).getattr("Array").expect("a class");
            let array = class.call1((&self.objects[self.objects.len() - 1],));
            self.answer(array);
        }
        Ok(())
    }

    /// Lets one object go: here, elsewhere, or with an exception in flight.
    fn forget(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        if self.objects.is_empty() {
            return Ok(());
        }
        let last = self.objects.len() - 1;
        let index = if u.ratio(1, 2)? { last } else { u.choose_index(last + 1)? };
        let object = self.objects.swap_remove(index);
        if rarely(u, 3)? {
            PyRuntimeError::new_err("in flight").restore(self.py);
            drop(object);
            let error = PyErr::take(self.py).expect("it is still in flight");
            assert!(error.is_instance_of::<PyRuntimeError>(self.py));
            return Ok(());
        }
        let object = object.unbind();
        self.dispose(u, Box::new(move || Python::attach(|py| drop(object.into_bound(py)))))
    }

    fn dispose(&self, u: &mut Unstructured<'_>, work: Box<dyn FnOnce() + Send>) -> Result<()> {
        match u.int_in_range(0..=7)? {
            0 => elsewhere(self.py, work),
            1 => self.py.detach(work),
            _ => work(),
        }
        Ok(())
    }

    /// The functions of the table that consumers find on our classes.
    fn exchange(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let Some(object) = self.pick(u)? else { return Ok(()) };
        let class = *u.choose(&["Array", "Tensor"])?;
        let capsule = module(self.py).getattr(class).expect("a class");
        let capsule = capsule.getattr("__dlpack_c_exchange_api__").expect("a table");
        let capsule = capsule.cast_into::<PyCapsule>().expect("a capsule");
        let table = capsule.pointer_checked(Some(EXCHANGE)).expect("the capsule's name");
        // SAFETY: the table is the library's.
        let table = unsafe { table.cast::<DLPackExchangeAPI>().as_ref() };
        match u.int_in_range(0..=2)? {
            0 => {
                let mut out = ptr::null_mut();
                let call = table.managed_tensor_from_py_object_no_sync.expect("a function");
                // SAFETY: attached, with a live object and a place to write to.
                if unsafe { call(object.as_ptr().cast(), &raw mut out) } == 0 {
                    self.raw.push(Raw::Versioned(out));
                } else {
                    self.failed();
                }
            }
            1 => {
                let mut out = DLTensor {
                    data: ptr::null_mut(),
                    device: crate::support::device(1, 0),
                    ndim: 0,
                    dtype: crate::support::dtype(0, 8, 1),
                    shape: ptr::null_mut(),
                    strides: ptr::null_mut(),
                    byte_offset: 0,
                };
                let call = table.dltensor_from_py_object_no_sync.expect("a function");
                // SAFETY: as above.
                if unsafe { call(object.as_ptr().cast(), &raw mut out) } == 0 {
                    let axes = usize::try_from(out.ndim).expect("not negative");
                    assert!(axes == 0 || !out.strides.is_null());
                    // SAFETY: the object lives, and so does what it lends.
                    let all = (0..axes).map(|axis| unsafe { *out.shape.add(axis) });
                    assert!(all.into_iter().all(|extent| extent >= 0));
                } else {
                    self.failed();
                }
            }
            _ => {
                let raw = self.tensor(u)?;
                let Raw::Versioned(tensor) = raw else { return Ok(()) };
                let mut out = ptr::null_mut();
                let call = table.managed_tensor_to_py_object_no_sync.expect("a function");
                // SAFETY: as above; what is refused stays ours.
                if unsafe { call(tensor, &raw mut out) } == 0 {
                    std::mem::forget(raw);
                    // SAFETY: a new reference.
                    self.objects.push(unsafe { Bound::from_owned_ptr(self.py, out.cast()) });
                } else {
                    self.failed();
                }
            }
        }
        Ok(())
    }

    /// A C function that failed has raised something.
    fn failed(&mut self) {
        let error = PyErr::take(self.py).expect("an exception says why");
        self.answer(Err(error));
    }

    /// Calls something that takes an object.
    fn call(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let Some(object) = self.pick(u)? else { return Ok(()) };
        let py = self.py;
        let module = module(py);
        let function = u.int_in_range(0..=17)?;
        let answer = match function {
            0 | 1 => {
                let keywords = self.keywords(u, &["device", "copy", "type"])?;
                module.call_method("from_dlpack", (object,), Some(&keywords))
            }
            2 | 3 => {
                let keywords = self.keywords(u, &["device", "copy"])?;
                let class = module.getattr("Tensor").expect("a class");
                class.call_method("from_dlpack", (object,), Some(&keywords))
            }
            4 => {
                let keywords = ["dtype", "nulls", "order", "copy", "columns", "physical"];
                module.call_method("to_tensor", (object,), Some(&self.keywords(u, &keywords)?))
            }
            5 => {
                let keywords = ["dtype", "nulls", "offset_type", "copy", "physical"];
                module.call_method("ragged", (object,), Some(&self.keywords(u, &keywords)?))
            }
            6 => {
                let keywords =
                    ["dtype", "nulls", "order", "copy", "columns", "physical", "type", "device"];
                module.call_method("explain", (object,), Some(&self.keywords(u, &keywords)?))
            }
            7 => {
                let keywords = self.keywords(u, &["copy"])?;
                module.call_method("asdlpack", (object,), Some(&keywords))
            }
            8 => {
                let keywords = self.keywords(u, &["names", "copy", "type"])?;
                let data = if u.ratio(1, 2)? {
                    let data = PyDict::new(py);
                    data.set_item("x", object).expect("memory");
                    if let Some(other) = self.pick(u)? {
                        data.set_item("y", other).expect("memory");
                    }
                    data.into_any()
                } else {
                    object
                };
                module.call_method("record_batch", (data,), Some(&keywords))
            }
            9 => {
                let Some(other) = self.pick(u)? else { return Ok(()) };
                let keywords = self.keywords(u, &["copy", "type"])?;
                module.call_method("from_ragged", (object, other), Some(&keywords))
            }
            10 => {
                let keywords = self.keywords(u, &["copy", "type"])?;
                object.call_method("to_arrow", (), Some(&keywords))
            }
            11 => module.getattr("Array").expect("a class").call1((object,)),
            12 => {
                let keywords = self.keywords(u, &["dtype", "nulls", "copy", "physical"])?;
                object.call_method("row", (u.int_in_range(-2..=3)?,), Some(&keywords))
            }
            13 => {
                py.import("builtins").expect("Python's own").call_method1("memoryview", (object,))
            }
            14 => object.call_method0("__arrow_c_array__"),
            15 => {
                let keywords =
                    self.keywords(u, &["dtype", "nulls", "copy", "columns", "physical"])?;
                module.call_method("to_tensor_dict", (object,), Some(&keywords))
            }
            16 => {
                let names = ["shape", "strides", "dtype", "device", "field", "dictionary", "type"];
                object.getattr(*u.choose(&names)?)
            }
            _ => object.repr().map(Bound::into_any),
        };
        self.answer(answer);
        Ok(())
    }

    /// Keeps what came, and what is in it; an exception must be one that a program may expect.
    fn answer(&mut self, answer: PyResult<Bound<'py, PyAny>>) {
        match answer {
            Ok(object) => {
                if let Ok(parts) = object.cast::<PyTuple>() {
                    self.objects.extend(parts.iter().take(3));
                }
                self.objects.push(object);
            }
            Err(error) => {
                let expected = error.is_instance_of::<PyException>(self.py)
                    && !error.is_instance_of::<PySystemError>(self.py);
                assert!(expected, "{error}");
            }
        }
    }

    fn keywords(&self, u: &mut Unstructured<'_>, names: &[&str]) -> Result<Bound<'py, PyDict>> {
        let keywords = PyDict::new(self.py);
        if u.ratio(1, 2)? {
            return Ok(keywords);
        }
        for name in names {
            if rarely(u, 3)? {
                let value = self.value(u, name)?;
                keywords.set_item(name, value).expect("memory");
            }
        }
        Ok(keywords)
    }

    /// A value for a keyword: mostly one that it may have.
    fn value(&self, u: &mut Unstructured<'_>, name: &str) -> Result<Bound<'py, PyAny>> {
        if rarely(u, 16)?
            && let Some(object) = self.pick(u)?
        {
            return Ok(object);
        }
        let text = match name {
            "copy" => *u.choose(&["None", "True", "False", "1"])?,
            "physical" => *u.choose(&["True", "False"])?,
            "device" | "dl_device" => *u.choose(&[
                "None",
                "'cpu'",
                "(1, 0)",
                "(2, 0)",
                "(1, -1)",
                "(13, 0)",
                "(1 << 40, 0)",
            ])?,
            "max_version" => *u.choose(&[
                "None",
                "(1, 0)",
                "(1, 3)",
                "(0, 8)",
                "(2, 0)",
                "(1, 1 << 31)",
                "(-1, 0)",
            ])?,
            "stream" => *u.choose(&["None", "1", "-1", "0", "'x'"])?,
            "dtype" | "offset_type" => *u.choose(&[
                "None",
                "'int8'",
                "'int32'",
                "'int64'",
                "'uint8'",
                "'float32'",
                "'bool'",
                "'bfloat16'",
                "'float64'",
                "'x'",
            ])?,
            "nulls" => *u.choose(&[
                "'error'", "'nan'", "'mask'", "0", "1", "0.5", "True", "1 << 200", "'x'",
            ])?,
            "order" => *u.choose(&["'C'", "'F'", "'K'"])?,
            "columns" | "names" => {
                *u.choose(&["['x']", "['x', 'y']", "['x', 'x']", "[]", "'x'", "None"])?
            }
            _ => match self.pick(u)? {
                // Another's field or structure.
                Some(object) if rarely(u, 3)? => {
                    return Ok(object.getattr("field").unwrap_or(object));
                }
                _ => *u.choose(&[
                    "None",
                    "'bool8'",
                    "'opaque'",
                    "'fixed_size_list'",
                    "'float32'",
                    "'bool'",
                    "'fixed_shape_tensor'",
                    "'permuted'",
                ])?,
            },
        };
        Ok(constant(self.py, text))
    }

    /// Everything goes, and nothing is left.
    fn end(mut self, u: &mut Unstructured<'_>) {
        if u.arbitrary().unwrap_or_default() {
            self.raw.clear();
        }
        while !self.objects.is_empty() {
            let last = self.objects.len() - 1;
            let index = if u.is_empty() { last } else { u.choose_index(last + 1).unwrap_or(last) };
            drop(self.objects.swap_remove(index));
        }
        self.raw.clear();
        let live = module(self.py).call_method0("_live").expect("two numbers");
        assert_eq!(live.extract::<(usize, usize)>().expect("two numbers"), (0, 0));
        for (watch, deletes) in self.exported.tensors {
            if deletes { watch.released_once() } else { watch.never_released() }
        }
        for releases in self.exported.structures {
            let counts = [&releases.schema, &releases.array].map(|n| n.load(Ordering::SeqCst));
            assert_eq!(counts, [1, 1], "releases of structures");
        }
    }
}

/// The value of an expression, which is made once.
fn constant<'py>(py: Python<'py>, text: &'static str) -> Bound<'py, PyAny> {
    static VALUES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let values = VALUES.get_or_init(py, || PyDict::new(py).unbind()).bind(py);
    if let Ok(Some(value)) = values.get_item(text) {
        return value;
    }
    let source = std::ffi::CString::new(text).expect("no NUL");
    let value = py.eval(&source, None, None).expect("an expression");
    values.set_item(text, &value).expect("memory");
    value
}
