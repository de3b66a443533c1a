//! Decimals become floats, whatever their width and scale, in whatever they are nested.

use std::sync::Arc;

use arrow_array::types::{Decimal128Type, Decimal256Type};
use arrow_array::{Array, ArrayRef, Decimal32Array, Decimal128Array, ListArray, PrimitiveArray};
use arrow_buffer::{OffsetBuffer, i256};
use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack::{CopyPolicy, Error, ExportOptions, NullPolicy, export};
use arrow_schema::{DataType, Field};

fn as_floats() -> ExportOptions {
    ExportOptions::default().with_dtype(DLDataType::FLOAT64)
}

/// Scales that no decimal of Arrow's has, but that arrow-rs does not check.
#[test]
fn any_scale_gives_the_nearest_float() {
    let digits = [0, 1, -1, 15, i128::from(u64::MAX), i128::MAX, i128::MIN, 5_i128.pow(50)];
    for scale in i8::MIN..=i8::MAX {
        let narrow = PrimitiveArray::<Decimal128Type>::from_iter_values(digits)
            .with_data_type(DataType::Decimal128(38, scale));
        let wide = digits.map(|number| i256::from_i128(number).wrapping_mul(i256::from(3)));
        let wide = wide.into_iter().chain([i256::MAX, i256::MIN]);
        let wide = PrimitiveArray::<Decimal256Type>::from_iter_values(wide)
            .with_data_type(DataType::Decimal256(76, scale));
        let text = |number: String| format!("{number}e{}", -i32::from(scale));
        let of_narrow: Vec<String> = narrow.values().iter().map(|n| text(n.to_string())).collect();
        let of_wide: Vec<String> = wide.values().iter().map(|n| text(n.to_string())).collect();
        let arrays: [(&dyn Array, _); 2] = [(&narrow, of_narrow), (&wide, of_wide)];
        for (array, texts) in arrays {
            let nearest: Vec<f64> = texts.iter().map(|text| text.parse().unwrap()).collect();
            let tensor = export::tensor(array, &as_floats()).unwrap();
            assert_eq!(tensor.as_slice::<f64>(), Some(&nearest[..]), "{scale}");
            let nearest: Vec<f32> = texts.iter().map(|text| text.parse().unwrap()).collect();
            let tensor = export::tensor(array, &as_floats().with_dtype(DLDataType::FLOAT32));
            match nearest.iter().position(|value| value.is_infinite()) {
                Some(first) => {
                    let refused = tensor.expect_err("no decimal is infinite");
                    let Error::ValueDoesNotFit { row, .. } = refused else { panic!("{refused}") };
                    assert_eq!(row, first, "{scale}");
                }
                None => {
                    assert_eq!(tensor.unwrap().as_slice::<f32>(), Some(&nearest[..]), "{scale}");
                }
            }
        }
    }
}

#[test]
fn a_plan_says_that_decimals_are_copied() {
    let array = Decimal32Array::from(vec![Some(15), None, Some(-25)]).slice(1, 2);
    let array: ArrayRef = Arc::new(array.with_precision_and_scale(3, 1).unwrap());
    let options = as_floats().with_nulls(NullPolicy::Masked);
    let prepared = export::prepare(&array, &options).unwrap();
    assert_eq!(
        prepared.plan().to_string(),
        "copies 16 bytes: decimals become float64; copies 2 bytes: the mask is made of validity bits"
    );
    let made = prepared.run().unwrap();
    assert_eq!(made.values.as_slice::<f64>().map(|values| values[1]), Some(-2.5));
    assert_eq!(made.mask.unwrap().as_bool_bytes(), Some(&[0, 1][..]));
    let never = as_floats().with_copy(CopyPolicy::Never);
    let refused = export::tensor(&array.slice(1, 1), &never).unwrap_err();
    assert!(matches!(refused, Error::CopyForbidden { nbytes: 8, .. }), "{refused}");
    let integers = ExportOptions::default().with_dtype(DLDataType::INT32);
    let refused = export::tensor(&array.slice(1, 1), &integers).unwrap_err();
    assert!(matches!(refused, Error::NotJustNumbers { .. }), "{refused}");
    assert!(
        refused
            .to_string()
            .ends_with("or ask for dtype float64 for the numbers that they stand for")
    );
}

/// The mask alone is made without the values, whose dtype says that they can be read.
#[test]
fn masks_of_decimals_in_lists() {
    let values = Decimal128Array::from(vec![Some(15), None, Some(-25), Some(0)]);
    let values = values.with_precision_and_scale(3, 1).unwrap();
    let item = Arc::new(Field::new("item", values.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths([2, 2]);
    let lists = ListArray::new(item, offsets, Arc::new(values), None);
    let options = as_floats().with_nulls(NullPolicy::fill(7));
    let tensor = export::tensor(&lists, &options).unwrap();
    assert_eq!(
        (tensor.shape(), tensor.as_slice::<f64>()),
        (&[2, 2][..], Some(&[1.5, 7.0, -2.5, 0.0][..]))
    );
    let mask = export::mask(&lists, &as_floats()).unwrap();
    assert_eq!(mask.as_bool_bytes(), Some(&[1, 0, 1, 1][..]));
}
