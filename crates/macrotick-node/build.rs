//! Compiles the task's side of the wait protocol from `include/macrotick.h`.

use std::path::Path;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (include, uapi) = (root.join("include"), root.join("kernel/overlay/include/uapi"));
    let mut build = cc::Build::new();
    // Always optimised: the time from the release to the job must not depend on the profile.
    build.file("c/node.c").include(&include).include(&uapi).opt_level(2).warnings(true).std("gnu11");
    if std::env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "musl") {
        // musl-gcc does not search the kernel's headers.
        build.flag("-idirafter/usr/include").flag("-idirafter/usr/include/x86_64-linux-gnu");
    }
    build.compile("macrotick_node");
    println!("cargo::rerun-if-changed=c/node.c");
    println!("cargo::rerun-if-changed={}", include.join("macrotick.h").display());
    println!("cargo::rerun-if-changed={}", uapi.join("linux/macrotick.h").display());
}
