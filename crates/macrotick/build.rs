//! Compiles the preload library, `bindings/macrotick-rt.c`. The command contains it, and `macrotick rt-lib` writes it.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (source, uapi) = (root.join("bindings/macrotick-rt.c"), root.join("kernel/overlay/include/uapi"));
    let library = PathBuf::from(std::env::var_os("OUT_DIR").expect("of cargo")).join("libmacrotick-rt.so");
    // Not with the crate cc: it would link statically, as the command is linked, and a static library cannot be
    // preloaded.
    let mut compiler = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    compiler.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-fPIC", "-fvisibility=hidden", "-shared", "-s", "-I"]);
    compiler.arg(&uapi).arg(&source).arg("-o").arg(&library);
    let status = compiler.status().unwrap_or_else(|error| panic!("{compiler:?}: {error}"));
    assert!(status.success(), "{compiler:?} ends with {status}");
    println!("cargo::rerun-if-env-changed=CC");
    println!("cargo::rerun-if-changed={}", source.display());
    println!("cargo::rerun-if-changed={}", uapi.join("linux/macrotick.h").display());
}
