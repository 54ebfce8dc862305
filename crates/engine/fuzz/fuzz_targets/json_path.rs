#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    loadlens_fuzz::json_path(bytes);
});
