//! Compiles the kernel's own file, with headers that replace the kernel's.

fn main() {
    const OVERLAY: &str = "../../kernel/overlay";
    const KERNEL: &str = "../../kernel/overlay/kernel/time/timershield";
    let mut build = cc::Build::new();
    build.file("src/harness.c").include("shim").include(KERNEL).include(format!("{OVERLAY}/include"));
    build.std("gnu11").warnings(true).extra_warnings(true).warnings_into_errors(true).opt_level(2);
    build.compile("order");
    println!("cargo:rerun-if-changed={OVERLAY}");
    println!("cargo:rerun-if-changed=src/harness.c");
    println!("cargo:rerun-if-changed=shim");
}
