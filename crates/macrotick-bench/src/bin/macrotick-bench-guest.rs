//! The program that runs in the guests of benches: the lab's agent, tasks of plans, and the benches' own parts.

fn main() -> std::process::ExitCode {
    macrotick_bench::guest_main()
}
