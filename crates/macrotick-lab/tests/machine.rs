//! The configuration of a kernel for a machine, by the kernel's own programs.

use macrotick_lab::machine::{self, Base, MachineKernel};
use macrotick_lab::progress::Quiet;
use macrotick_lab::Layout;

fn kernel(base: Base) -> MachineKernel {
    MachineKernel { base, fragments: Vec::new(), debug_information: false, packages: false }
}

#[test]
#[ignore = "needs the kernel's source"]
fn the_default_of_linux_gets_macrotick_and_loses_what_excludes_real_time() {
    let layout = Layout::find().unwrap();
    let configured = machine::configure(&layout, &kernel(Base::Default), &mut Quiet).unwrap();
    assert!(configured.release.starts_with("6.12.") && configured.release.ends_with("-macrotick"), "{configured:?}");
    let config = std::fs::read_to_string(&configured.config).unwrap();
    for line in ["CONFIG_MACROTICK=y", "CONFIG_PREEMPT_RT=y", "CONFIG_TIMERSHIELD=y", "CONFIG_E1000=y"] {
        assert!(config.lines().any(|found| found == line), "{line}");
    }
    let merge = configured.merge;
    let rt = merge.changes.iter().find(|change| change.name == "PREEMPT_RT").unwrap();
    assert_eq!((rt.before.as_str(), rt.now.as_str()), ("n", "y"));
    assert!(merge.excluded.iter().any(|name| name == "DRM_I915"), "{:?}", merge.excluded);
    assert!(merge.unknown.is_empty(), "{:?}", merge.unknown);

    // Its own result has nothing left that could change.
    let again = machine::configure(&layout, &kernel(Base::File(configured.config)), &mut Quiet).unwrap();
    assert!(again.merge.changes.is_empty() && again.merge.excluded.is_empty(), "{:?}", again.merge);
}
