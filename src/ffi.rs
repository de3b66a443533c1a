//! The C ABI of DLPack 1.3.
//!
//! Source: [`dlpack.h`](https://github.com/dmlc/dlpack/blob/v1.3/include/dlpack/dlpack.h). Every struct is `repr(C)`,
//! and fields have the header's names. Codes are newtypes rather than enums, because a foreign value that this crate
//! does not know must be representable. Sizes and offsets are asserted at compile time for 64-bit targets,
//! and `tests/abi.rs` compares every size, offset and constant with the real header, compiled by a C compiler.
//!
//! These structs are neither checked nor owned; [`crate::ManagedTensor`] does both.

use core::ffi::{c_char, c_int, c_void};
use core::fmt;

/// `DLPACK_MAJOR_VERSION`: another major version is another ABI.
pub const DLPACK_MAJOR_VERSION: u32 = 1;
/// `DLPACK_MINOR_VERSION`.
pub const DLPACK_MINOR_VERSION: u32 = 3;

/// Declares the known values of a code, each with its constant, the header's name and a short name.
macro_rules! codes {
    ($type:ident($repr:ty) { $($(#[$doc:meta])* $name:ident = $value:literal, $c:literal, $short:literal;)* }) => {
        impl $type {
            $($(#[$doc])* pub const $name: Self = Self($value);)*

            /// Every code that DLPack 1.3 defines, with the header's name for it.
            pub const ALL: &'static [(Self, &'static str)] = &[$((Self::$name, $c)),*];

            /// The short lower-case name of a known code, `None` for any other.
            ///
            /// ```
            #[doc = concat!("use arrow_dlpack::ffi::", stringify!($type), ";")]
            #[doc = ""]
            #[doc = concat!("let names = ", stringify!($type), "::ALL.iter().filter_map(|(code, _)| code.name());")]
            #[doc = concat!("assert_eq!(names.collect::<Vec<_>>(), ", stringify!([$($short),*]), ");")]
            #[doc = concat!("assert_eq!(", stringify!($type), "(200).name(), None);")]
            /// ```
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($short),)*
                    _ => None,
                }
            }
        }

        /// The short name; the number of a code that DLPack 1.3 does not define.
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{}({})", stringify!($type), self.0),
                }
            }
        }
    };
}

/// `DLDeviceType`: the kind of memory a tensor lives in.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DLDeviceType(pub i32);

codes! { DLDeviceType(i32) {
    /// Main memory.
    CPU = 1, "kDLCPU", "cpu";
    /// CUDA GPU memory.
    CUDA = 2, "kDLCUDA", "cuda";
    /// Pinned main memory of `cudaMallocHost`; the CPU can read it.
    CUDA_HOST = 3, "kDLCUDAHost", "cuda_host";
    /// OpenCL; `data` is a `cl_mem` handle.
    OPENCL = 4, "kDLOpenCL", "opencl";
    /// Vulkan buffer.
    VULKAN = 7, "kDLVulkan", "vulkan";
    /// Metal, for Apple GPUs.
    METAL = 8, "kDLMetal", "metal";
    /// Verilog simulator buffer.
    VPI = 9, "kDLVPI", "vpi";
    /// ROCm, for AMD GPUs.
    ROCM = 10, "kDLROCM", "rocm";
    /// Pinned main memory of `hipMallocHost`; the CPU can read it.
    ROCM_HOST = 11, "kDLROCMHost", "rocm_host";
    /// Reserved for testing new devices.
    EXT_DEV = 12, "kDLExtDev", "ext_dev";
    /// Unified memory of `cudaMallocManaged`; the CPU can read it.
    CUDA_MANAGED = 13, "kDLCUDAManaged", "cuda_managed";
    /// oneAPI unified shared memory; only the oneAPI runtime knows its kind.
    ONE_API = 14, "kDLOneAPI", "oneapi";
    /// WebGPU.
    WEB_GPU = 15, "kDLWebGPU", "webgpu";
    /// Qualcomm Hexagon DSP.
    HEXAGON = 16, "kDLHexagon", "hexagon";
    /// Microsoft MAIA.
    MAIA = 17, "kDLMAIA", "maia";
    /// AWS Trainium.
    TRN = 18, "kDLTrn", "trn";
} }

/// `DLDataTypeCode`, as the byte of [`DLDataType::code`].
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DLDataTypeCode(pub u8);

codes! { DLDataTypeCode(u8) {
    /// Signed integer.
    INT = 0, "kDLInt", "int";
    /// Unsigned integer.
    UINT = 1, "kDLUInt", "uint";
    /// IEEE 754 floating point.
    FLOAT = 2, "kDLFloat", "float";
    /// A handle whose meaning producer and consumer must agree on.
    OPAQUE_HANDLE = 3, "kDLOpaqueHandle", "opaque_handle";
    /// bfloat16.
    BFLOAT = 4, "kDLBfloat", "bfloat";
    /// Complex number: real part, imaginary part.
    COMPLEX = 5, "kDLComplex", "complex";
    /// Boolean, one byte an element.
    BOOL = 6, "kDLBool", "bool";
    /// 8-bit float, 3 exponent bits, 4 mantissa bits.
    FLOAT8_E3M4 = 7, "kDLFloat8_e3m4", "float8_e3m4";
    /// 8-bit float, 4 exponent bits, 3 mantissa bits.
    FLOAT8_E4M3 = 8, "kDLFloat8_e4m3", "float8_e4m3";
    /// 8-bit float, as above with bias 11, finite, no negative zero.
    FLOAT8_E4M3B11FNUZ = 9, "kDLFloat8_e4m3b11fnuz", "float8_e4m3b11fnuz";
    /// 8-bit float, finite, NaN only in the all-ones patterns.
    FLOAT8_E4M3FN = 10, "kDLFloat8_e4m3fn", "float8_e4m3fn";
    /// 8-bit float, finite, no negative zero.
    FLOAT8_E4M3FNUZ = 11, "kDLFloat8_e4m3fnuz", "float8_e4m3fnuz";
    /// 8-bit float, 5 exponent bits, 2 mantissa bits.
    FLOAT8_E5M2 = 12, "kDLFloat8_e5m2", "float8_e5m2";
    /// 8-bit float, as above, finite, no negative zero.
    FLOAT8_E5M2FNUZ = 13, "kDLFloat8_e5m2fnuz", "float8_e5m2fnuz";
    /// 8-bit float of exponent bits only: a scale.
    FLOAT8_E8M0FNU = 14, "kDLFloat8_e8m0fnu", "float8_e8m0fnu";
    /// 6-bit float, 2 exponent bits, 3 mantissa bits.
    FLOAT6_E2M3FN = 15, "kDLFloat6_e2m3fn", "float6_e2m3fn";
    /// 6-bit float, 3 exponent bits, 2 mantissa bits.
    FLOAT6_E3M2FN = 16, "kDLFloat6_e3m2fn", "float6_e3m2fn";
    /// 4-bit float, 2 exponent bits, 1 mantissa bit.
    FLOAT4_E2M1FN = 17, "kDLFloat4_e2m1fn", "float4_e2m1fn";
} }

/// `DLDevice`: a kind of device, and the number of one.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DLDevice {
    /// The kind of device.
    pub device_type: DLDeviceType,
    /// Its number; 0 for main memory, pinned or managed memory.
    pub device_id: i32,
}

impl DLDevice {
    /// Main memory, as DLPack names it: `(kDLCPU, 0)`.
    pub const CPU: Self = Self { device_type: DLDeviceType::CPU, device_id: 0 };

    /// Whether this is main memory, with any number (DLPack's is 0, Arrow's -1).
    ///
    /// ```
    /// use arrow_dlpack::ffi::{DLDevice, DLDeviceType};
    /// assert!(DLDevice::CPU.is_cpu());
    /// assert!(!DLDevice { device_type: DLDeviceType::CUDA_HOST, device_id: 0 }.is_cpu());
    /// ```
    #[must_use]
    pub const fn is_cpu(self) -> bool {
        matches!(self.device_type, DLDeviceType::CPU)
    }

    /// Whether the CPU may dereference this device's pointers: main memory, pinned memory of CUDA
    /// and ROCm, and CUDA managed memory. The last three only after the producer has synchronised.
    ///
    /// ```
    /// use arrow_dlpack::ffi::{DLDevice, DLDeviceType};
    /// let on = |device_type| DLDevice { device_type, device_id: 0 };
    /// assert!(on(DLDeviceType::CUDA_HOST).is_host_readable());
    /// assert!(!on(DLDeviceType::CUDA).is_host_readable());
    /// ```
    #[must_use]
    pub const fn is_host_readable(self) -> bool {
        matches!(
            self.device_type,
            DLDeviceType::CPU
                | DLDeviceType::CUDA_HOST
                | DLDeviceType::ROCM_HOST
                | DLDeviceType::CUDA_MANAGED
        )
    }
}

/// `cpu`, `cuda:0`, or `device(99):0` for a code that DLPack 1.3 does not define.
impl fmt::Display for DLDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.device_type.name(), self.device_id) {
            (Some("cpu"), 0) => f.write_str("cpu"),
            (Some(name), id) => write!(f, "{name}:{id}"),
            (None, id) => write!(f, "device({}):{id}", self.device_type.0),
        }
    }
}

/// As [`Display`](fmt::Display).
impl fmt::Debug for DLDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// `DLDataType`: the element type.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DLDataType {
    /// The family.
    pub code: DLDataTypeCode,
    /// Bits of one lane.
    pub bits: u8,
    /// Lanes of one element, 1 unless it is a vector type.
    pub lanes: u16,
}

/// `DLTensor`: a description of borrowed memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DLTensor {
    /// Start of the memory, or a device handle; the first element is `byte_offset` further on.
    pub data: *mut c_void,
    /// Where the memory is.
    pub device: DLDevice,
    /// Number of axes.
    pub ndim: i32,
    /// Element type.
    pub dtype: DLDataType,
    /// `ndim` extents, in elements.
    pub shape: *mut i64,
    /// `ndim` strides, in elements; NULL means row-major (before DLPack 1.2).
    pub strides: *mut i64,
    /// Distance in bytes from `data` to the first element.
    pub byte_offset: u64,
}

/// `DLPackVersion`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DLPackVersion {
    /// Another major version is another ABI.
    pub major: u32,
    /// A larger minor version only adds codes.
    pub minor: u32,
}

impl DLPackVersion {
    /// The version of this crate: 1.3.
    pub const CURRENT: Self = Self { major: DLPACK_MAJOR_VERSION, minor: DLPACK_MINOR_VERSION };
}

/// `DLManagedTensor`: the legacy owning form, in capsules named `dltensor`. It has no read-only flag.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensor {
    /// The description.
    pub dl_tensor: DLTensor,
    /// Private to the producer; may be NULL.
    pub manager_ctx: *mut c_void,
    /// Frees everything, this struct included; NULL when there is nothing to free.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

/// `DLManagedTensorVersioned`: the owning form since 1.0, in capsules named `dltensor_versioned`.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensorVersioned {
    /// The producer's version; if its major version is not 1, only `deleter` may be used.
    pub version: DLPackVersion,
    /// Private to the producer; may be NULL.
    pub manager_ctx: *mut c_void,
    /// Frees everything, this struct included; NULL when there is nothing to free.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    /// Flags.
    pub flags: DLPackFlags,
    /// The description.
    pub dl_tensor: DLTensor,
}

/// `DLManagedTensorVersioned::flags`: a set of `DLPACK_FLAG_BITMASK_*`.
#[repr(transparent)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct DLPackFlags(pub u64);

impl DLPackFlags {
    /// `DLPACK_FLAG_BITMASK_READ_ONLY`: the consumer must not write.
    pub const READ_ONLY: Self = Self(1 << 0);
    /// `DLPACK_FLAG_BITMASK_IS_COPIED`: the producer made a copy for this consumer alone.
    pub const IS_COPIED: Self = Self(1 << 1);
    /// `DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED`: each element of under 8 bits has its own byte.
    pub const IS_SUBBYTE_TYPE_PADDED: Self = Self(1 << 2);

    /// Whether every flag of `other` is set.
    ///
    /// ```
    /// use arrow_dlpack::ffi::DLPackFlags as Flags;
    /// assert!(Flags::READ_ONLY.union(Flags::IS_COPIED).contains(Flags::READ_ONLY));
    /// assert!(!Flags::READ_ONLY.contains(Flags::IS_COPIED));
    /// ```
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flags that are in both sets.
    ///
    /// ```
    /// use arrow_dlpack::ffi::DLPackFlags as Flags;
    /// let both = Flags::READ_ONLY.union(Flags::IS_COPIED);
    /// assert_eq!(both.intersection(Flags::IS_COPIED), Flags::IS_COPIED);
    /// ```
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The flags that are in either set.
    ///
    /// ```
    /// use arrow_dlpack::ffi::DLPackFlags as Flags;
    /// assert_eq!(format!("{:?}", Flags::READ_ONLY.union(Flags::IS_COPIED)), "READ_ONLY | IS_COPIED");
    /// ```
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The names of the flags, and unknown bits as a number: `READ_ONLY | IS_COPIED`, `READ_ONLY | 0x8`, `(empty)`.
impl fmt::Debug for DLPackFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = [
            (Self::READ_ONLY, "READ_ONLY"),
            (Self::IS_COPIED, "IS_COPIED"),
            (Self::IS_SUBBYTE_TYPE_PADDED, "IS_SUBBYTE_TYPE_PADDED"),
        ];
        let (mut rest, mut separator) = (self.0, "");
        for (flag, name) in known.into_iter().filter(|(flag, _)| self.contains(*flag)) {
            write!(f, "{separator}{name}")?;
            (rest, separator) = (rest & !flag.0, " | ");
        }
        match (rest, separator) {
            (0, "") => f.write_str("(empty)"),
            (0, _) => Ok(()),
            (rest, _) => write!(f, "{separator}{rest:#x}"),
        }
    }
}

/// `SetError` argument of [`DLPackManagedTensorAllocator`]: context, error kind, message.
pub type DLPackSetError =
    unsafe extern "C" fn(error_ctx: *mut c_void, kind: *const c_char, message: *const c_char);

/// `DLPackManagedTensorAllocator`: allocates a tensor like `prototype`; returns 0, or -1 after calling `SetError`.
pub type DLPackManagedTensorAllocator = unsafe extern "C" fn(
    prototype: *mut DLTensor,
    out: *mut *mut DLManagedTensorVersioned,
    error_ctx: *mut c_void,
    set_error: Option<DLPackSetError>,
) -> c_int;

/// `DLPackManagedTensorFromPyObjectNoSync`: exports a Python object as an owned tensor; returns 0, or -1 with a
/// Python exception set.
pub type DLPackManagedTensorFromPyObjectNoSync =
    unsafe extern "C" fn(py_object: *mut c_void, out: *mut *mut DLManagedTensorVersioned) -> c_int;

/// `DLPackManagedTensorToPyObjectNoSync`: imports the tensor as a Python object (new reference); returns 0, or -1
/// with a Python exception set, and then the caller still owns the tensor.
pub type DLPackManagedTensorToPyObjectNoSync = unsafe extern "C" fn(
    tensor: *mut DLManagedTensorVersioned,
    out_py_object: *mut *mut c_void,
) -> c_int;

/// `DLPackDLTensorFromPyObjectNoSync`: a borrowed description of a Python object's memory, valid until control
/// returns; 0, or -1 with a Python exception set.
pub type DLPackDLTensorFromPyObjectNoSync =
    unsafe extern "C" fn(py_object: *mut c_void, out: *mut DLTensor) -> c_int;

/// `DLPackCurrentWorkStream`: the device's current stream; 0, or -1 with a Python exception set.
pub type DLPackCurrentWorkStream = unsafe extern "C" fn(
    device_type: DLDeviceType,
    device_id: i32,
    out_current_stream: *mut *mut c_void,
) -> c_int;

/// `DLPackExchangeAPIHeader`: the part of the table that is the same in all versions.
#[repr(C)]
#[derive(Debug)]
pub struct DLPackExchangeAPIHeader {
    /// Version of the table that follows.
    pub version: DLPackVersion,
    /// A table of an older version, or NULL.
    pub prev_api: *mut DLPackExchangeAPIHeader,
}

/// `DLPackExchangeAPI`: the function table behind a type's `__dlpack_c_exchange_api__`.
#[repr(C)]
#[derive(Debug)]
pub struct DLPackExchangeAPI {
    /// Version and predecessor.
    pub header: DLPackExchangeAPIHeader,
    /// Never NULL in a valid table.
    pub managed_tensor_allocator: Option<DLPackManagedTensorAllocator>,
    /// Never NULL in a valid table.
    pub managed_tensor_from_py_object_no_sync: Option<DLPackManagedTensorFromPyObjectNoSync>,
    /// Never NULL in a valid table.
    pub managed_tensor_to_py_object_no_sync: Option<DLPackManagedTensorToPyObjectNoSync>,
    /// May be NULL.
    pub dltensor_from_py_object_no_sync: Option<DLPackDLTensorFromPyObjectNoSync>,
    /// Never NULL in a valid table.
    pub current_work_stream: Option<DLPackCurrentWorkStream>,
}

/// Asserts the size of each struct and the offsets of all its fields.
#[cfg(target_pointer_width = "64")]
macro_rules! assert_layouts {
    ($($type:ident, $size:literal, { $($field:ident: $offset:literal),* };)*) => {
        $(const _: () = {
            assert!(size_of::<$type>() == $size);
            $(assert!(core::mem::offset_of!($type, $field) == $offset);)*
        };)*
    };
}

#[cfg(target_pointer_width = "64")]
assert_layouts! {
    DLPackVersion, 8, { major: 0, minor: 4 };
    DLDevice, 8, { device_type: 0, device_id: 4 };
    DLDataType, 4, { code: 0, bits: 1, lanes: 2 };
    DLTensor, 48, {
        data: 0, device: 8, ndim: 16, dtype: 20, shape: 24, strides: 32, byte_offset: 40
    };
    DLManagedTensor, 64, { dl_tensor: 0, manager_ctx: 48, deleter: 56 };
    DLManagedTensorVersioned, 80, {
        version: 0, manager_ctx: 8, deleter: 16, flags: 24, dl_tensor: 32
    };
    DLPackExchangeAPIHeader, 16, { version: 0, prev_api: 8 };
    DLPackExchangeAPI, 56, {
        header: 0, managed_tensor_allocator: 16, managed_tensor_from_py_object_no_sync: 24,
        managed_tensor_to_py_object_no_sync: 32, dltensor_from_py_object_no_sync: 40,
        current_work_stream: 48
    };
}
