//! Search for the pieces of one job on several CPUs: one after the other in order of time, never two at once.

use std::cmp::Reverse;

use macrotick_model::Duration;

use crate::demand::Demand;
use crate::occupancy::Occupancy;
use crate::place::behind_guard;

/// The shortest piece of a job that is split over CPUs, unless the job itself is shorter. Each piece costs a migration.
pub(crate) const SHORTEST_PIECE: Duration = Duration::from_micros(50);

/// An interval of a CPU, given by its index, that a job gets. It may lie beyond the first fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub cpu: usize,
    pub start: Duration,
    pub length: Duration,
}

impl Place {
    pub fn end(&self) -> Duration {
        self.start + self.length
    }
}

/// Takes the places of a job in every `every`, and the lead before the first.
pub(crate) fn take(occupancies: &mut [Occupancy], places: &[Place], lead: Duration, every: Duration) {
    for (index, place) in places.iter().enumerate() {
        // A lead before offset 0 lies at the end of the previous period.
        let lead = if index == 0 { lead } else { Duration::ZERO };
        occupancies[place.cpu].take(place.start + every - lead, place.length + lead, every);
    }
}

/// The parameters of one search for pieces.
pub(crate) struct Search<'a> {
    /// The occupancy of each CPU.
    pub occupancies: &'a [Occupancy],
    /// The fold to search: the period of the task, or the cycle.
    pub fold: Duration,
    pub demand: &'a Demand,
    pub macrotick: Duration,
    /// The shortest piece.
    pub shortest: Duration,
}

/// The time range for some pieces.
#[derive(Clone, Copy)]
struct Span {
    from: Duration,
    /// The latest start of the first piece of a job.
    latest: Duration,
    until: Duration,
    /// Whether the first piece starts off the common grid.
    guarded: bool,
}

impl Search<'_> {
    /// Returns the pieces of one job within `[earliest, until)`, with at most the quota of each CPU.
    pub fn job(&self, earliest: Duration, until: Duration, quotas: &[Duration]) -> Option<Vec<Place>> {
        self.either(|guarded| {
            let (mut places, mut quotas) = (Vec::new(), quotas.to_vec());
            let span = Span { from: earliest, latest: until, until, guarded };
            self.extend(&mut places, span, self.demand.wcet, &mut quotas).map(|_| places)
        })
    }

    /// Returns the pieces of job 0, with exactly the share of each CPU. They are distributed evenly over slots from its
    /// earliest start to its deadline.
    pub fn slots(&self, slot: Duration, shares: &[Duration]) -> Option<Vec<Place>> {
        let slots = (self.demand.deadline / slot).max(1);
        self.either(|guarded| {
            let (earliest, latest) = self.demand.starts();
            let mut places: Vec<Place> = Vec::new();
            for number in 0..slots {
                let start = places.first().map_or(earliest, |first| first.start);
                let limit = self.demand.limit(start);
                let end = if number + 1 == slots { limit } else { limit.min(earliest + slot * (number + 1)) };
                let from = places.last().map_or(earliest, Place::end).max(earliest + slot * number);
                let mut quotas: Vec<Duration> = shares.iter().map(|&share| self.part(share, number, slots)).collect();
                let wanted = quotas.iter().copied().sum();
                self.extend(&mut places, Span { from, latest, until: end, guarded }, wanted, &mut quotas)?;
            }
            let limit = self.demand.limit(places.first()?.start);
            places.last().is_some_and(|last| last.end() <= limit).then_some(places)
        })
    }

    /// Searches with the first start off the common grid. Only if this fails, the start may be anywhere.
    fn either(&self, mut search: impl FnMut(bool) -> Option<Vec<Place>>) -> Option<Vec<Place>> {
        search(true).or_else(|| search(false))
    }

    /// Returns the part of a share for one of several slots, a multiple of the macrotick.
    fn part(&self, share: Duration, number: i64, slots: i64) -> Duration {
        let until = |number: i64| {
            let part = i128::from(share.as_nanos()) * i128::from(number) / i128::from(slots);
            let part = Duration::from_nanos(part as i64);
            part - part % self.macrotick
        };
        until(number + 1) - until(number)
    }

    /// Adds pieces with `wanted` as their sum.
    fn extend(&self, places: &mut Vec<Place>, span: Span, wanted: Duration, quotas: &mut [Duration]) -> Option<()> {
        let (mut missing, mut from) = (wanted, span.from);
        while missing > Duration::ZERO {
            let place = self.earliest(places, Span { from, ..span }, missing, quotas)?;
            missing -= place.length;
            quotas[place.cpu] -= place.length;
            from = place.end();
            places.push(place);
        }
        Some(())
    }

    /// Returns the piece that starts first. Among equals, a piece on the current CPU of the job wins, then the longest
    /// one.
    fn earliest(&self, places: &[Place], span: Span, missing: Duration, quotas: &[Duration]) -> Option<Place> {
        let current = places.last().map(|last| last.cpu);
        // A rest that cannot be cut again is taken as a whole.
        let least = if missing < self.shortest * 2 { missing.max(self.shortest) } else { self.shortest };
        let each = (0..quotas.len()).filter_map(|cpu| {
            let most = missing.min(quotas[cpu]);
            let (start, end) = self.stretch(cpu, span, places.is_empty(), least).filter(|_| most >= least)?;
            let length = most.min(end - start);
            let rest = missing - length;
            let sliver = rest > Duration::ZERO && rest < self.shortest;
            Some(Place { cpu, start, length: if sliver { missing - self.shortest } else { length } })
        });
        each.min_by_key(|place| (place.start, Some(place.cpu) != current, Reverse(place.length), place.cpu))
    }

    /// Returns the first free interval of a CPU that is long enough, as `[start, end)`.
    fn stretch(&self, cpu: usize, span: Span, first: bool, least: Duration) -> Option<(Duration, Duration)> {
        let mut from = span.from;
        loop {
            let (free, end) = self.occupancies[cpu].next_free(self.fold, from)?;
            let start = if first { self.start(cpu, free, span)? } else { free };
            if start >= span.until || (first && start > span.latest) {
                return None;
            }
            let until = end.min(span.until);
            if until - start >= least {
                return Some((start, until));
            }
            from = end.max(start);
        }
    }

    /// Returns the first start from `free` on with its lead free, and after the guard if the span asks for it.
    fn start(&self, cpu: usize, free: Duration, span: Span) -> Option<Duration> {
        let lead = self.demand.lead;
        let start = free + lead - self.occupancies[cpu].free_before(self.fold, free, lead);
        match span.guarded {
            true => behind_guard(start, self.demand, self.macrotick),
            false => Some(start),
        }
    }
}

#[cfg(test)]
mod tests {
    use macrotick_model::CpuSet;

    use super::*;
    use crate::error::Kind;

    fn us(n: i64) -> Duration {
        Duration::from_micros(n)
    }

    fn demand(wcet: i64, lead: i64) -> Demand {
        Demand {
            kind: Kind::Task,
            name: "a".into(),
            period: us(2500),
            wcet: us(wcet),
            needed: us(wcet),
            deadline: us(2500),
            offset: None,
            jitter: None,
            lead: us(lead),
            common_grid: us(1000),
            cpus: CpuSet::from_iter([0, 1]),
            migrate: true,
            preemptible: true,
        }
    }

    /// Makes two CPUs on which these intervals are taken in every period: `(cpu, start, end)`.
    fn occupied(taken: &[(usize, i64, i64)]) -> Vec<Occupancy> {
        let mut occupancies = vec![Occupancy::new([us(2500)].into_iter()), Occupancy::new([us(2500)].into_iter())];
        for &(cpu, start, end) in taken {
            occupancies[cpu].take(us(start), us(end - start), us(2500));
        }
        occupancies
    }

    fn search<'a>(occupancies: &'a [Occupancy], demand: &'a Demand) -> Search<'a> {
        Search { occupancies, fold: us(2500), demand, macrotick: us(1), shortest: us(50) }
    }

    fn told(places: Option<Vec<Place>>) -> Vec<(usize, i64, i64)> {
        let told = |place: &Place| (place.cpu, place.start.as_nanos() / 1000, place.end().as_nanos() / 1000);
        places.iter().flatten().map(told).collect()
    }

    #[test]
    fn a_job_takes_what_is_free_first_and_stays_where_it_is() {
        let occupancies = occupied(&[(0, 0, 100), (1, 0, 300), (0, 600, 1000)]);
        let demand = demand(900, 0);
        let job = |quotas: [i64; 2]| search(&occupancies, &demand).job(us(0), us(2500), &quotas.map(us));
        assert_eq!(told(job([900, 900])), [(0, 100, 600), (1, 600, 1000)]);
        assert_eq!(told(job([200, 900])), [(0, 100, 300), (1, 300, 1000)]);
        assert_eq!(told(job([900, 300])), [(0, 100, 600), (1, 600, 900), (0, 1000, 1100)]);
        assert_eq!(told(job([400, 300])), []);
    }

    #[test]
    fn no_piece_is_a_sliver() {
        // 60 us are enough for a piece, 40 us are not, and the rest must have 50 us or more.
        let occupancies = occupied(&[(0, 60, 500), (1, 0, 460), (1, 500, 560)]);
        let demand = demand(400, 0);
        let job = |from| search(&occupancies, &demand).job(us(from), us(2500), &[us(400), us(400)]);
        assert_eq!(told(job(0)), [(0, 0, 60), (0, 500, 840)]);
        assert_eq!(told(job(30)), [(0, 500, 900)]);
        let occupancies = occupied(&[(0, 380, 2500), (1, 0, 400)]);
        assert_eq!(
            told(search(&occupancies, &demand).job(us(0), us(2500), &[us(400), us(400)])),
            [(0, 0, 350), (1, 400, 450)]
        );
    }

    #[test]
    fn the_first_piece_has_its_lead_and_no_other() {
        let occupancies = occupied(&[(0, 0, 100), (1, 0, 600), (0, 600, 2500)]);
        let demand = demand(900, 20);
        let places = search(&occupancies, &demand).job(us(0), us(2500), &[us(900), us(900)]);
        assert_eq!(told(places), [(0, 120, 600), (1, 600, 1020)]);
    }

    #[test]
    fn shares_are_spread_over_slots() {
        let occupancies = occupied(&[(0, 500, 600)]);
        let demand = demand(1000, 0);
        let places = search(&occupancies, &demand).slots(us(500), &[us(600), us(400)]);
        let expected = [(0, 0, 120), (1, 120, 200), (1, 500, 580), (0, 600, 720), (0, 1000, 1120), (1, 1120, 1200)];
        assert_eq!(told(places)[..6], expected);
    }
}
