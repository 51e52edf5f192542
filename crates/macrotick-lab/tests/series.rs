//! The patch series, built patch by patch.

use macrotick_lab::progress::Terminal;
use macrotick_lab::{series, Layout};

#[test]
#[ignore = "builds kernels, takes long"]
fn full_every_patch_of_the_series_builds() {
    series::build(&Layout::find().expect("a checkout"), None, &mut Terminal::new())
        .unwrap_or_else(|error| panic!("{error}"));
}
