//! Tables for harmonic tasks without jitter, also where the windows leave no gap.
//!
//! If each period divides the next, such a table is a packing in two dimensions. The source is Grus, Hanen, Hanzalek:
//! Packing-inspired algorithms for periodic scheduling problems with harmonic periods, 2024. The free time of one
//! shortest period is a bin. Windows of that period take a part of it. The rest is a bin for windows of the next longer
//! period: one for each time that the shorter period fits into the longer one. The longer periods follow in the same way
//! ([`forest`]).
//!
//! So the search goes from short periods to long ones. In each period, it packs all windows into bins ([`filling`]). The
//! rests must suit the windows of longer periods ([`prices`]). The search keeps several packings of each period, and
//! continues with the best ones ([`descent`]).

mod descent;
mod filling;
mod forest;
mod prices;
mod sums;

use crate::folded::Problem;
use crate::options::Clock;
use crate::pieces::Place;
use crate::table::{self, Piece};
use forest::Forest;

impl Problem<'_> {
    /// Returns the pieces of each CPU. All windows must be harmonic and without jitter, and take nearly all time of some
    /// CPUs. Otherwise, or if the search finds no packing, returns nothing.
    pub(crate) fn packed(&self, clock: &Clock) -> Option<Vec<Vec<Piece>>> {
        let forests = Forest::all(self).filter(|forests| forests.iter().any(Forest::is_tight))?;
        let mut pieces = vec![Vec::new(); self.system.cpus.len()];
        for forest in &forests {
            for (task, cpu, start) in descent::pack(forest, clock)? {
                let demand = &self.demands[task];
                let place = Place { cpu, start: start + demand.lead, length: demand.wcet };
                for job in 0..self.cycle / demand.period {
                    self.add_job(task, &[place], demand.period * job, &mut pieces);
                }
            }
        }
        Some(pieces.into_iter().map(table::joined).collect())
    }
}
