//! The numbers of the paper beside ours.

use super::picks::Picks;
use super::yields::Yields;

/// The paper is Barletta, Cinque, De Simone, Della Corte: Achieving Isolation in Mixed-Criticality Industrial Edge
/// Systems with Real-Time Containers. ECRTS 2022, figures 5 and 6, sections 5.1 and 5.2.
pub fn markdown(picks: &Picks, yields: &Yields) -> String {
    let [p99, most, all_p99, all_most, refill] = picks.judged();
    let [ms1, ms2_5] = yields.ranges();
    format!(
        "### beside the paper\n\n| | the paper, Xenomai on an Intel i7 | here |\n|---|---|---|\n\
         | a pick | nearly all below 450 ns, at most 1343 ns | 99 % below {p99}, at most {most} instructions; with what the other classes have of it {all_p99} and {all_most} |\n\
         | a refill | at most 630 ns | at most {refill} instructions |\n\
         | overhead, 1 ms | 0.05 to 0.1 % | {ms1} % |\n\
         | overhead, 2.5 ms | 0.02 to 0.05 % | {ms2_5} % |\n\n\
         Nanoseconds of their processor and instructions of ours are not the same: its caches are part of the former, \
         and it executes more than one instruction per nanosecond.\n"
    )
}
