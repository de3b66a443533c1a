//~ consider borrowing here

use arrow_dlpack::ManagedTensor;

pub fn mistake(x: Vec<f32>) {
    ManagedTensor::from_vec(x, [2, 2]).unwrap();
}

fn main() {}
