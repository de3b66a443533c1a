//~ cannot apply unary operator `-` to type `usize`

use arrow_dlpack::ManagedTensor;

pub fn mistake(x: Vec<f32>) {
    ManagedTensor::from_vec(x, &[2, -1]).unwrap();
}

fn main() {}
