//! Element types: names, sizes, and the table of numeric types in Arrow and DLPack.

use core::{fmt, str::FromStr};

use arrow_schema::DataType;

use crate::Error;
use crate::ffi::{DLDataType, DLDataTypeCode};

/// The table of numeric types, passed to another macro. Each row is an Arrow type, the DLPack code and bits, the name
/// of the constant, arrow-rs's type, and Rust's. What has an arm for each of them is made of it.
macro_rules! for_each_numeric {
    ($row:ident) => {
        $row! {
            (Int8, INT, 8, INT8, Int8Type, i8)
            (Int16, INT, 16, INT16, Int16Type, i16)
            (Int32, INT, 32, INT32, Int32Type, i32)
            (Int64, INT, 64, INT64, Int64Type, i64)
            (UInt8, UINT, 8, UINT8, UInt8Type, u8)
            (UInt16, UINT, 16, UINT16, UInt16Type, u16)
            (UInt32, UINT, 32, UINT32, UInt32Type, u32)
            (UInt64, UINT, 64, UINT64, UInt64Type, u64)
            (Float16, FLOAT, 16, FLOAT16, Float16Type, half::f16)
            (Float32, FLOAT, 32, FLOAT32, Float32Type, f32)
            (Float64, FLOAT, 64, FLOAT64, Float64Type, f64)
        }
    };
}
pub(crate) use for_each_numeric;

/// A Rust number with a dtype, of which every bit pattern is a valid value: the integers of 8 to 64 bits, `f32`, `f64`,
/// and `f16` and `bf16` of the crate `half`.
///
/// It is sealed, because memory of tensors is taken for such numbers.
#[diagnostic::on_unimplemented(
    message = "memory of tensors is not viewed as `{Self}`",
    label = "not a number of the eleven types that tensors share with Rust, nor `bf16`",
    note = "booleans are read by `as_bool_bytes`, and moved by `into_vec::<bool>` and `export::to_vec::<bool, _>`; `cast` \
            converts other dtypes to numbers"
)]
pub trait Element: sealed::Bits {
    /// The DLPack element type.
    const DTYPE: DLDataType;
}

/// What a vector of elements may have: an [`Element`], or `bool`. Memory from elsewhere is no slice of `bool`: there a byte
/// may be neither 0 nor 1, which Rust does not allow.
///
/// It is sealed.
#[diagnostic::on_unimplemented(
    message = "no tensor has elements of type `{Self}`",
    label = "not a number or `bool`",
    note = "elements are `i8` to `i64`, `u8` to `u64`, `f16`, `bf16`, `f32`, `f64` and `bool`"
)]
pub trait ElementOrBool: sealed::Value {}
impl<T: sealed::Value> ElementOrBool for T {}

pub(crate) mod sealed {
    use std::fmt::Debug;

    use arrow_buffer::ArrowNativeType;
    use half::bf16;

    use super::{DLDataType, Element};
    use crate::{Error, ManagedTensor};

    /// A number, which Arrow's buffers have as `Stored`, with the same bits.
    pub trait Bits: Copy + Debug + Default + PartialOrd + Send + Sync + 'static {
        type Stored: ArrowNativeType + Element;
        fn stored(values: Vec<Self>) -> Vec<Self::Stored>;
        fn from_stored(values: Vec<Self::Stored>) -> Vec<Self>;
    }

    impl Bits for bf16 {
        type Stored = u16;

        /// `collect` reuses the allocation, because the items have the same size; so below.
        fn stored(values: Vec<Self>) -> Vec<u16> {
            values.into_iter().map(Self::to_bits).collect()
        }

        fn from_stored(values: Vec<u16>) -> Vec<Self> {
            values.into_iter().map(Self::from_bits).collect()
        }
    }

    pub trait Value: Sized {
        const DTYPE: DLDataType;
        /// The type of the values in Arrow's buffers.
        type Stored: ArrowNativeType + Element;
        fn stored(values: Vec<Self>) -> Vec<Self::Stored>;
        fn from_stored(values: Vec<Self::Stored>) -> Vec<Self>;
        /// All elements from the lowest address of a tensor to the highest, and the position of the first.
        fn elements(tensor: &ManagedTensor) -> Result<(&[Self], usize), Error>;
    }

    impl<T: Element> Value for T {
        const DTYPE: DLDataType = T::DTYPE;
        type Stored = T::Stored;

        fn stored(values: Vec<Self>) -> Vec<T::Stored> {
            T::stored(values)
        }

        fn from_stored(values: Vec<T::Stored>) -> Vec<Self> {
            T::from_stored(values)
        }

        fn elements(tensor: &ManagedTensor) -> Result<(&[Self], usize), Error> {
            tensor.elements()
        }
    }

    impl Value for bool {
        const DTYPE: DLDataType = DLDataType::BOOL;
        type Stored = u8;

        fn stored(values: Vec<Self>) -> Vec<u8> {
            values.into_iter().map(u8::from).collect()
        }

        fn from_stored(values: Vec<u8>) -> Vec<Self> {
            values.into_iter().map(|byte| byte != 0).collect()
        }

        fn elements(tensor: &ManagedTensor) -> Result<(&[Self], usize), Error> {
            tensor.bools()
        }
    }
}

impl Element for half::bf16 {
    const DTYPE: DLDataType = DLDataType::BFLOAT16;
}

macro_rules! table {
    ($(($arrow:ident, $code:ident, $bits:literal, $name:ident, $type:ident, $native:ty))*) => {
        $(
            impl Element for $native {
                const DTYPE: DLDataType = DLDataType::$name;
            }

            impl sealed::Bits for $native {
                type Stored = Self;

                fn stored(values: Vec<Self>) -> Vec<Self> {
                    values
                }

                fn from_stored(values: Vec<Self>) -> Vec<Self> {
                    values
                }
            }
        )*

        impl DLDataType {
            $(
                #[doc = concat!("Arrow's `", stringify!($arrow), "`.")]
                pub const $name: Self = Self::scalar(DLDataTypeCode::$code, $bits);
            )*

            /// The dtype with the same elements as an Arrow type, if there is one.
            ///
            /// ```
            /// use arrow_dlpack::ffi::DLDataType;
            /// use arrow_schema::DataType;
            /// assert_eq!(DLDataType::from_arrow(&DataType::Float16), Some(DLDataType::FLOAT16));
            /// assert_eq!(DLDataType::from_arrow(&DataType::Utf8), None);
            /// ```
            #[must_use]
            pub const fn from_arrow(data_type: &DataType) -> Option<Self> {
                match data_type {
                    $(DataType::$arrow => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The Arrow type with the same elements, if there is one.
            ///
            /// ```
            /// use arrow_dlpack::ffi::DLDataType;
            /// use arrow_schema::DataType;
            /// assert_eq!(DLDataType::FLOAT16.to_arrow(), Some(DataType::Float16));
            /// assert_eq!(DLDataType::BFLOAT16.to_arrow(), None);
            /// ```
            #[must_use]
            pub const fn to_arrow(self) -> Option<DataType> {
                match self {
                    $(Self::$name => Some(DataType::$arrow),)*
                    _ => None,
                }
            }
        }
    };
}
for_each_numeric!(table);

/// The dtype in which times, decimals of up to 64 bits and dictionary codes are stored.
pub(crate) fn physical(data_type: &DataType) -> Option<DLDataType> {
    match data_type {
        DataType::Date32 | DataType::Time32(_) | DataType::Decimal32(..) => Some(DLDataType::INT32),
        DataType::Date64
        | DataType::Time64(_)
        | DataType::Timestamp(..)
        | DataType::Duration(_)
        | DataType::Decimal64(..) => Some(DLDataType::INT64),
        DataType::Dictionary(key, _) => DLDataType::from_arrow(key),
        _ => None,
    }
}

impl DLDataType {
    /// A boolean of one byte, 0 or 1.
    pub const BOOL: Self = Self::scalar(DLDataTypeCode::BOOL, 8);
    /// The upper half of a float32.
    pub const BFLOAT16: Self = Self::scalar(DLDataTypeCode::BFLOAT, 16);
    /// Two float32: the real and the imaginary part.
    pub const COMPLEX64: Self = Self::scalar(DLDataTypeCode::COMPLEX, 64);
    /// Two float64: the real and the imaginary part.
    pub const COMPLEX128: Self = Self::scalar(DLDataTypeCode::COMPLEX, 128);

    /// A dtype of one lane.
    ///
    /// ```
    /// use arrow_dlpack::ffi::{DLDataType, DLDataTypeCode};
    /// let dtype = DLDataType::scalar(DLDataTypeCode::FLOAT8_E5M2, 8);
    /// assert_eq!(dtype.to_string(), "float8_e5m2");
    /// ```
    #[must_use]
    pub const fn scalar(code: DLDataTypeCode, bits: u8) -> Self {
        Self { code, bits, lanes: 1 }
    }

    /// Whether numbers become floats by a conversion to it.
    pub(crate) fn is_float(self) -> bool {
        matches!(self.code, DLDataTypeCode::FLOAT | DLDataTypeCode::BFLOAT)
    }

    /// Whether bits and lanes are valid for the code. A code that DLPack 1.3 does not define is valid with any number
    /// of bits but 0.
    pub(crate) const fn is_valid(self) -> bool {
        let bits = self.bits;
        let fits = match self.code {
            DLDataTypeCode::INT | DLDataTypeCode::UINT => bits.is_power_of_two(),
            DLDataTypeCode::FLOAT => matches!(bits, 16 | 32 | 64 | 128),
            DLDataTypeCode::BFLOAT => bits == 16,
            DLDataTypeCode::COMPLEX => matches!(bits, 32 | 64 | 128),
            DLDataTypeCode::BOOL => bits == 8,
            DLDataTypeCode(7..=14) => bits == 8,
            DLDataTypeCode(15..=16) => bits == 6,
            DLDataTypeCode::FLOAT4_E2M1FN => bits == 4,
            _ => bits != 0,
        };
        fits && self.lanes != 0
    }

    /// Bits from one element to the next. Elements of under 8 bits are packed unless `padded`
    /// (`DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED`); all others take whole bytes.
    pub(crate) fn item_bits(self, padded: bool) -> usize {
        let bits = usize::from(self.bits);
        let lane = if bits < 8 && !padded { bits } else { bits.next_multiple_of(8) };
        lane * usize::from(self.lanes)
    }
}

/// NumPy's name, or `ml_dtypes`' where NumPy has none: `int8`, `float32`, `bool`, `bfloat16`,
/// `float8_e4m3fn`, `float32x4` for four lanes.
impl fmt::Display for DLDataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code.name(), self.code) {
            (None, code) => write!(f, "dtype({}, {} bits)", code.0, self.bits)?,
            (Some(name), DLDataTypeCode::BOOL | DLDataTypeCode(7..=17)) => f.write_str(name)?,
            (Some(name), _) => write!(f, "{name}{}", self.bits)?,
        }
        if self.lanes == 1 { Ok(()) } else { write!(f, "x{}", self.lanes) }
    }
}

/// As [`Display`](fmt::Display).
impl fmt::Debug for DLDataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl DLDataType {
    /// The dtype that an unknown name probably means: one with the same letters, in any order and case and without a
    /// module's name, or one that differs in a single letter.
    pub(crate) fn named_like(name: &str) -> Option<Self> {
        const LONGEST: usize = 30;
        if name.len() > LONGEST || !name.is_ascii() {
            return None;
        }
        let name = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        if name == "boolean" {
            return Some(Self::BOOL);
        }
        let known = ["int", "uint", "float"].iter().flat_map(|kind| {
            [8, 16, 32, 64].map(|bits| format!("{kind}{bits}").parse::<Self>().ok())
        });
        let mut known = known.flatten().chain(
            ["bool", "bfloat16", "complex64", "complex128"].iter().flat_map(|name| name.parse()),
        );
        let sorted = |text: &str| {
            let mut letters = text.as_bytes().to_vec();
            letters.sort_unstable();
            letters
        };
        name.parse().ok().or_else(|| {
            known.find(|dtype| {
                let known = dtype.to_string();
                sorted(&known) == sorted(&name) || is_one_off(known.as_bytes(), name.as_bytes())
            })
        })
    }
}

/// Whether an edit of one letter (inserted, removed or replaced) makes the strings equal.
fn is_one_off(one: &[u8], other: &[u8]) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    let same = short.iter().zip(long).take_while(|(one, other)| one == other).count();
    let (short_end, long_end) = (&short[same..], &long[same..]);
    match long.len() - short.len() {
        0 => short_end.get(1..).unwrap_or_default() == long_end.get(1..).unwrap_or_default(),
        1 => long_end.get(1..) == Some(short_end),
        _ => false,
    }
}

/// The inverse of `Display`, for dtypes of one lane.
impl FromStr for DLDataType {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let bits = [1, 2, 4, 6, 8, 16, 32, 64, 128];
        let codes = DLDataTypeCode::ALL.iter().map(|&(code, _)| code);
        codes
            .flat_map(|code| bits.map(|bits| Self::scalar(code, bits)))
            .find(|dtype| dtype.is_valid() && dtype.to_string() == name)
            .ok_or_else(|| Error::UnknownDtype(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_numpy_and_ml_dtypes() {
        let name = |code, bits, lanes| DLDataType { code, bits, lanes }.to_string();
        assert_eq!(DLDataType::UINT16.to_string(), "uint16");
        assert_eq!(name(DLDataTypeCode::BFLOAT, 16, 1), "bfloat16");
        assert_eq!(name(DLDataTypeCode::COMPLEX, 64, 1), "complex64");
        assert_eq!(name(DLDataTypeCode::BOOL, 8, 1), "bool");
        assert_eq!(name(DLDataTypeCode::FLOAT8_E4M3FN, 8, 1), "float8_e4m3fn");
        assert_eq!(name(DLDataTypeCode::FLOAT4_E2M1FN, 4, 2), "float4_e2m1fnx2");
        assert_eq!(name(DLDataTypeCode(99), 8, 1), "dtype(99, 8 bits)");
    }

    #[test]
    fn debug_prints_names_too() {
        use crate::ffi::{DLDevice, DLDeviceType, DLPackFlags};
        let device = |code| DLDevice { device_type: DLDeviceType(code), device_id: 0 };
        assert_eq!(format!("{:?} {:?}", DLDataType::FLOAT32, DLDataTypeCode::INT), "float32 int");
        assert_eq!(format!("{:?} {:?}", device(2), device(99)), "cuda:0 device(99):0");
        assert_eq!(
            format!("{:?} {:?}", DLDeviceType::CUDA, DLDeviceType(99)),
            "cuda DLDeviceType(99)"
        );
        let flags = [0, 3, 4, 9, 8].map(DLPackFlags);
        let names =
            "[(empty), READ_ONLY | IS_COPIED, IS_SUBBYTE_TYPE_PADDED, READ_ONLY | 0x8, 0x8]";
        assert_eq!(format!("{flags:?}"), names);
    }

    #[test]
    fn names_are_parsed_as_they_are_displayed() {
        for name in ["int8", "uint64", "float16", "bool", "bfloat16", "complex64", "int4"] {
            assert_eq!(name.parse::<DLDataType>().unwrap().to_string(), name);
        }
        for name in ["", "float", "float8", "bool8", "int33", "Int8", "float32x4"] {
            assert_eq!(name.parse::<DLDataType>(), Err(Error::UnknownDtype(name.to_owned())));
        }
    }

    #[test]
    fn misspelled_names_are_recognised() {
        let meant = |name| DLDataType::named_like(name).map(|dtype| dtype.to_string());
        for name in
            ["Float32", "float23", "torch.float32", "flaot32", "float3", "float322", "fooat32"]
        {
            assert_eq!(meant(name).as_deref(), Some("float32"), "{name}");
        }
        assert_eq!(meant("Boolean").as_deref(), Some("bool"));
        for name in ["", "f3", "String", "object", "S4", "datetime64[s]", "é8", "text"] {
            assert_eq!(meant(name), None, "{name}");
        }
    }

    #[test]
    fn bits_must_fit_the_code() {
        let valid = |code, bits, lanes| DLDataType { code, bits, lanes }.is_valid();
        assert!(valid(DLDataTypeCode::INT, 4, 1) && valid(DLDataTypeCode(200), 3, 1));
        assert!(!valid(DLDataTypeCode::INT, 0, 1) && !valid(DLDataTypeCode::INT, 33, 1));
        assert!(!valid(DLDataTypeCode::FLOAT, 8, 1) && !valid(DLDataTypeCode::BOOL, 1, 1));
        assert!(!valid(DLDataTypeCode::FLOAT, 32, 0) && !valid(DLDataTypeCode(200), 0, 1));
        assert!(!valid(DLDataTypeCode::FLOAT6_E2M3FN, 8, 1));
    }

    #[test]
    fn items_are_packed_below_a_byte_and_padded_above() {
        let bits = |bits, lanes, padded| {
            DLDataType { code: DLDataTypeCode::UINT, bits, lanes }.item_bits(padded)
        };
        assert_eq!((bits(4, 1, false), bits(4, 1, true)), (4, 8));
        assert_eq!((bits(4, 2, false), bits(4, 2, true)), (8, 16));
        assert_eq!((bits(12, 1, false), bits(32, 4, false)), (16, 128));
    }
}
