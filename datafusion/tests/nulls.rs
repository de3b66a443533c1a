//! Null in, null out, unless another policy is asked for.

use arrow_array::{ArrayRef, Float32Array, Int64Array};
use arrow_dlpack::ffi::DLDataType;
use arrow_dlpack::{ManagedTensor, NullPolicy, export, import};
use arrow_dlpack_datafusion::{Input, Nulls, Output, TensorUdf};
use ndarray::{Axis, Ix1, Ix2, IxDyn, Zip, arr1, arr2};
use support::{
    F32, array, each_row, embeddings, failed, matrix, rows, stateless, sum_of, summing, unplanned,
    vector, with,
};

mod support;

/// A null row, a null in a row, and one row without.
fn holes() -> ArrayRef {
    embeddings(&[None, Some([Some(1.0), None]), Some([Some(3.0), Some(4.0)])])
}

fn policy(nulls: impl Into<Nulls>) -> TensorUdf {
    sum_of(Input::column("x", F32, [2])).with_nulls(nulls)
}

#[tokio::test]
async fn rows_with_a_null_anywhere_are_null_and_do_not_reach_the_function() {
    let context = with([("x", holes())]);
    context.register_udf(stateless(policy(Nulls::default()), |batch| {
        assert_eq!(matrix::<f32>(&batch.tensors[0]), ndarray::arr2(&[[3.0, 4.0]]));
        Ok(each_row(&batch, |row| row.sum()))
    }));
    assert_eq!(rows(&context, "SELECT total(x) FROM t").await, ["", "", "7.0"]);
}

#[tokio::test]
async fn a_null_in_any_argument_makes_the_row_null() {
    let context = with([
        ("a", array(Int64Array::from(vec![Some(1), None, Some(3), Some(4)]))),
        ("b", array(Float32Array::from(vec![Some(0.5), Some(0.5), None, Some(0.5)]))),
    ]);
    context.register_udf(summing(sum_of(Input::columns("x", F32, ["a", "b"]))));
    assert_eq!(rows(&context, "SELECT total(a, b) FROM t").await, ["1.5", "", "", "4.5"]);
    assert_eq!(rows(&context, "SELECT total(a, 1) FROM t").await, ["2.0", "", "4.0", "5.0"]);
    assert_eq!(rows(&context, "SELECT total(b => NULL, a => a) FROM t").await, [""; 4]);
    assert_eq!(rows(&context, "SELECT avg(total(a, b)), count(*) FROM t").await, ["3.0 4"]);
}

#[tokio::test]
async fn a_batch_of_nulls_does_not_reach_the_function() {
    let context = with([("x", embeddings(&[None::<[Option<f32>; 2]>, None]))]);
    context.register_udf(stateless(policy(Nulls::default()), |_| panic!("it was called")));
    assert_eq!(rows(&context, "SELECT total(x) FROM t").await, ["", ""]);
}

#[tokio::test]
async fn nulls_within_a_slice_are_those_that_count() {
    let context = with([("x", holes().slice(2, 1))]);
    context.register_udf(summing(policy(NullPolicy::Refuse)));
    assert_eq!(rows(&context, "SELECT total(x) FROM t").await, ["7.0"]);
}

#[tokio::test]
async fn results_with_a_shape_can_be_null_too() {
    let context = with([("x", holes())]);
    let udf = policy(Nulls::default()).output(Output::new(F32, [2]));
    context.register_udf(stateless(udf, |batch| {
        Ok(ManagedTensor::from(matrix::<f32>(&batch.tensors[0]).mapv(|value| -value)))
    }));
    assert_eq!(rows(&context, "SELECT total(x) FROM t").await, ["", "", "[-3.0, -4.0]"]);
}

#[tokio::test]
async fn nulls_are_refused_filled_or_nan_if_asked_for() {
    let context = with([("x", holes())]);
    context.register_udf(summing(policy(NullPolicy::Refuse)));
    assert_eq!(
        failed(&context, "SELECT total(x) FROM t").await,
        "Execution error: \"x\" has 3 nulls in 6 values, which total refuses"
    );
    context.register_udf(summing(policy(NullPolicy::fill(10))));
    assert_eq!(rows(&context, "SELECT total(x) FROM t").await, ["20.0", "11.0", "7.0"]);
    context.register_udf(summing(policy(NullPolicy::Nan)));
    assert_eq!(rows(&context, "SELECT total(x) FROM t").await, ["NaN", "NaN", "7.0"]);
}

#[tokio::test]
async fn refused_nulls_have_the_name_of_their_column() {
    let context = with([("n", array(Int64Array::from(vec![Some(1), None])))]);
    let input = Input::columns("x", F32, ["a", "b"]);
    context.register_udf(summing(sum_of(input).with_nulls(NullPolicy::Refuse)));
    assert_eq!(
        failed(&context, "SELECT total(1, n) FROM t").await,
        "Execution error: \"b\" has 1 null in 2 values, which total refuses"
    );
}

#[tokio::test]
async fn masks_tell_which_values_are_valid() {
    let context = with([("x", holes())]);
    context.register_udf(stateless(policy(NullPolicy::Masked), |mut batch| {
        let mask = import::array(batch.masks.remove(0))?;
        let expected = embeddings(&[None, Some([Some(1.0), None]), Some([Some(3.0), Some(4.0)])]);
        let field = arrow_schema::Field::new("x", expected.data_type().clone(), true);
        let again = import::array(export::mask((&expected, &field), &Default::default())?)?;
        assert_eq!(&mask, &again);
        Ok(ManagedTensor::from(ndarray::Array1::from_elem(batch.rows, 1.0_f32)))
    }));
    assert_eq!(rows(&context, "SELECT total(x) FROM t").await, ["1.0"; 3]);
}

#[tokio::test]
async fn a_closure_reads_masks_as_booleans() {
    let context = with([("x", holes())]);
    let udf = policy(NullPolicy::Masked).input(Input::columns("pair", F32, ["a", "b"]));
    context.register_udf(stateless(udf, |batch| {
        let (x, valid) = (batch.view::<f32, Ix2>(0)?, batch.mask::<Ix2>(0)?);
        assert_eq!(valid, arr2(&[[false, false], [true, false], [true, true]]));
        assert_eq!(valid.as_ptr().addr(), batch.masks[0].as_ptr().addr());
        assert_eq!(batch.mask::<IxDyn>(1)?, arr2(&[[true, false]; 3]).into_dyn());
        let known = Zip::from(&x).and(&valid).map_collect(|&x, &valid| if valid { x } else { 0.0 });
        Ok(ManagedTensor::from(known.sum_axis(Axis(1))))
    }));
    assert_eq!(rows(&context, "SELECT total(x, 1, NULL) FROM t").await, ["0.0", "1.0", "7.0"]);
}

#[tokio::test]
async fn a_mask_of_another_rank_or_of_none_is_an_error_that_says_so() {
    let context = with([("x", holes())]);
    let masked = policy(NullPolicy::Masked);
    context.register_udf(stateless(masked, |batch| {
        batch.mask::<Ix1>(0)?;
        unreachable!()
    }));
    assert_eq!(
        failed(&context, "SELECT total(x) FROM t").await,
        "total failed\ncaused by\n\
         Execution error: the mask of \"x\" is bool [3, 2], of rank 2, not 1"
    );
    context.register_udf(stateless(policy(Nulls::default()), |batch| {
        batch.mask::<Ix2>(0)?;
        unreachable!()
    }));
    assert_eq!(
        failed(&context, "SELECT total(x) FROM t").await,
        "total failed\ncaused by\n\
         Execution error: total has no masks: `.with_nulls(NullPolicy::Masked)` declares them"
    );
}

#[tokio::test]
async fn a_constant_has_a_mask_of_as_many_rows() {
    let context = with([("n", array(Float32Array::from(vec![Some(1.0), None])))]);
    let input = |name| Input::column(name, F32, []).broadcast(true);
    let udf =
        TensorUdf::new("total").input(input("a")).input(input("b")).with_nulls(NullPolicy::Masked);
    context.register_udf(stateless(udf, |batch| {
        let strides: Vec<_> = batch.masks.iter().map(|mask| mask.strides().into_owned()).collect();
        assert_eq!((strides, batch.masks[1].shape()), (vec![vec![1], vec![0]], &[2][..]));
        assert_eq!(batch.mask::<Ix1>(1)?, arr1(&[true, true]));
        Ok(ManagedTensor::from(vector::<f32>(&batch.tensors[1]).to_owned()))
    }));
    assert_eq!(rows(&context, "SELECT total(n, 5) FROM t").await, ["5.0", "5.0"]);
}

#[tokio::test]
async fn results_are_nullable_only_if_something_can_be_null() {
    let nullable = async |nulls: Nulls, sql: &str| {
        let context = with([("n", array(Int64Array::from(vec![1])))]);
        let input = Input::columns("x", F32, ["a", "b"]);
        context.register_udf(summing(sum_of(input).with_nulls(nulls)));
        let plan = context.sql(sql).await.expect("a plan");
        plan.schema().field(0).is_nullable()
    };
    let some = "SELECT total(n, 1) FROM t";
    assert!(nullable(Nulls::Propagate, some).await);
    assert!(!nullable(NullPolicy::fill(0).into(), some).await);
    assert!(!nullable(Nulls::Propagate, "SELECT total(1, 2)").await);
}

#[test]
fn a_fill_value_must_be_one() {
    let integers = Input::column("x", DLDataType::INT32, []);
    let udf = sum_of(integers).with_nulls(NullPolicy::Nan).build(|_| unreachable!());
    assert_eq!(
        udf.expect_err("NaN is no integer").strip_backtrace(),
        "Error during planning: total: \"x\": nulls cannot be filled with NaN: int32 does not hold it, whether there \
         are nulls or not; ask for a dtype that does, or convert the column by itself"
    );
}

#[tokio::test]
async fn what_is_not_null_is_still_judged() {
    let context = with([("x", holes())]);
    context.register_udf(summing(sum_of(Input::column("x", F32, [3]))));
    assert!(
        unplanned(&context, "SELECT total(x) FROM t").await.ends_with("its rows have shape [2]")
    );
}
