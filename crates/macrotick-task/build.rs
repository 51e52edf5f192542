//! Compiles the calls of `include/macrotick.h` and `include/macrotick-express.h`.

use std::path::Path;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (source, include, uapi) =
        (root.join("bindings/macrotick.c"), root.join("include"), root.join("kernel/overlay/include/uapi"));
    let mut build = cc::Build::new();
    // Always optimised: the length of the path from the release to the job must not depend on the profile.
    build.file(&source).include(&include).include(&uapi).opt_level(2).warnings(true).std("gnu11");
    if std::env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "musl") {
        // musl-gcc leaves out the kernel's headers.
        build.flag("-idirafter/usr/include").flag("-idirafter/usr/include/x86_64-linux-gnu");
    }
    build.compile("macrotick");
    for file in
        [source, include.join("macrotick.h"), include.join("macrotick-express.h"), uapi.join("linux/macrotick.h")]
    {
        println!("cargo::rerun-if-changed={}", file.display());
    }
}
