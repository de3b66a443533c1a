//! The example itself: it fails if the executors answer otherwise than one process does.

use std::process::Command;

#[test]
fn two_executors_have_the_function_with_its_parameters_and_make_its_state_once() {
    let example = Command::new(env!("CARGO_BIN_EXE_arrow-dlpack-example-ballista")).output();
    let example = example.expect("it starts");
    let printed = String::from_utf8_lossy(&example.stdout);
    assert!(example.status.success(), "{printed}{}", String::from_utf8_lossy(&example.stderr));
    let loaded = printed.lines().filter(|line| line.ends_with("loaded the model 1 times"));
    assert_eq!(loaded.count(), 2, "{printed}");
    assert!(printed.contains("| UA      | 13954   | 2.9    |"), "{printed}");
}
