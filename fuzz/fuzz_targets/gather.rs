#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = arrow_dlpack_fuzz::gather(&mut arbitrary::Unstructured::new(data));
});
