//! Arrays at the edges of what can be counted, and nulls where nobody looks.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, FixedSizeListArray, new_empty_array};
use arrow_buffer::NullBuffer;
use arrow_dlpack::export::{self, Source};
use arrow_dlpack::{Error, Export, NullPolicy, to_dlpack};
use arrow_schema::{DataType, Field};

/// So many lists of nothing, which take no memory.
fn lists_of_nothing(len: usize, nulls: Option<NullBuffer>) -> ArrayRef {
    let item = Arc::new(Field::new_list_field(DataType::Int32, true));
    let values = new_empty_array(&DataType::Int32);
    Arc::new(FixedSizeListArray::try_new_with_length(item, 0, values, nulls, len).expect("lists"))
}

#[test]
fn rows_that_cannot_be_counted_are_refused() {
    let many = lists_of_nothing(1 << 62, None);
    let field = Field::new("x", many.data_type().clone(), true);
    for count in [2, 3, 4, 5] {
        let chunks = vec![Arc::clone(&many); count];
        let options = Export { nulls: NullPolicy::Masked, ..Export::default() };
        for options in [Export::default(), options] {
            let refused = export::tensor(Source::Chunks(&chunks, &field), &options);
            assert_eq!(refused.unwrap_err(), Error::Overflow("length"));
        }
        let refused = export::mask(Source::Chunks(&chunks, &field), &Export::default());
        assert_eq!(refused.unwrap_err(), Error::Overflow("length"));
    }
}

#[test]
fn rows_too_large_to_count_are_shapes_where_there_are_none() {
    let mut data_type = DataType::Int32;
    for axes in 1..10 {
        let item = Arc::new(Field::new_list_field(data_type, true));
        data_type = DataType::FixedSizeList(item, i32::MAX);
        let field = Field::new("x", data_type.clone(), true);
        let tensor = to_dlpack(&new_empty_array(&data_type), &field, &Export::default());
        let tensor = tensor.expect("a tensor of nothing");
        let row = vec![i64::from(i32::MAX); axes];
        assert_eq!((tensor.shape()[0], &tensor.shape()[1..]), (0, &row[..]));
    }
}
