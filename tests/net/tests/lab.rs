//! The scenarios in the lab.

use macrotick_lab::progress::Terminal;
use macrotick_lab::{Flavor, GuestJob, Lab, Layout};
use macrotick_net_tests::scenarios;

const GUEST: &str = env!("CARGO_BIN_EXE_macrotick-net-tests");

/// Runs all scenarios in a guest, and requires one line `ok` of each.
fn passes_on(flavor: Flavor) {
    let lab = Lab::with_agent(Layout::find().expect("a checkout"), GUEST);
    let job = GuestJob::new(flavor, ["/bin/macrotick", "run"]).on(1, 2);
    let outcome = lab.run(&job, &mut Terminal::new(), &mut |_| ());
    let outcome = outcome.unwrap_or_else(|error| panic!("{error}"));
    let text = outcome.stdout_text();
    for (name, _) in scenarios::ALL {
        let ok = format!("{name}: ok");
        assert_eq!(text.lines().filter(|line| *line == ok).count(), 1, "{name}:\n{text}");
    }
}

#[test]
#[ignore = "needs the lab"]
fn full_deployments_on_the_pristine_kernel() {
    passes_on(Flavor::Pristine);
}

#[test]
#[ignore = "needs the lab"]
fn deployments_on_the_patched_kernel() {
    passes_on(Flavor::Patched);
}
