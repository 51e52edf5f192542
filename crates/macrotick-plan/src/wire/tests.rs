use macrotick_model::wire::{Link, Node, Wire};
use macrotick_model::{Duration, Speed, SplitMix64};

use super::line::{Line, Taken};
use super::routes::Routes;

const NS: fn(i64) -> Duration = Duration::from_nanos;

/// Whether the instants of both frames meet anywhere in a common multiple of their periods.
fn meets(taken: &Taken, (start, length, every): (i64, i64, i64)) -> bool {
    (0..120).any(|at| {
        let is_there = |from: i64, length: i64, every: i64| (at - from).rem_euclid(every) < length;
        is_there(start, length, every)
            && is_there(taken.start.as_nanos(), taken.length.as_nanos(), taken.every.as_nanos())
    })
}

#[test]
fn the_earliest_start_is_the_first_at_which_no_frame_is_met() {
    let mut random = SplitMix64::new(1);
    let mut draw = |limit: u64| (random.bits() % limit) as i64;
    for _ in 0..300 {
        let mut line = Line::default();
        let mut all = Vec::new();
        for flow in 0..draw(5) as usize {
            let every = [12, 20, 30, 60][draw(4) as usize];
            let taken = Taken { flow, start: NS(draw(90)), length: NS(1 + draw(4)), every: NS(every) };
            line.fold(NS([12, 20, 30][draw(3) as usize]));
            line.take(taken);
            all.push(taken);
        }
        if !all.is_empty() && draw(2) == 0 {
            let gone = all.remove(draw(all.len() as u64) as usize);
            line.release(gone.flow);
        }
        let (every, from, length) = ([12, 20, 30, 60][draw(4) as usize], draw(100), 1 + draw(6));
        line.fold(NS(every));
        let is_free = |start: &i64| all.iter().all(|taken| !meets(taken, (*start, length, every)));
        let expected = (from..from + every).find(is_free);
        let told = format!("{all:?}, {length} of {every} from {from}");
        assert_eq!(line.earliest(NS(every), NS(from), NS(length)).map(Duration::as_nanos), expected, "{told}");

        let mut others: Vec<usize> = line.in_the_way(NS(every), NS(from), NS(length)).collect();
        others.sort_unstable();
        let met = all.iter().filter(|taken| meets(taken, (from, length, every)));
        assert_eq!(others, met.map(|taken| taken.flow).collect::<Vec<_>>(), "{told}");
    }
}

/// A ring of four switches, and a host at the first and at the third.
fn ring() -> Wire {
    let node = |name: &str| Node { name: name.into(), forwards: name.starts_with('s').then_some(NS(10)) };
    let nodes = ["s0", "s1", "s2", "s3", "a", "b"].map(node).into();
    let cables = [(0, 1), (1, 2), (2, 3), (3, 0), (4, 0), (5, 2)];
    let link = |from, to| Link {
        from,
        to,
        speed: Speed::from_bits(1_000_000_000),
        opening: NS(0),
        gap: NS(0),
        propagation: NS(0),
    };
    let links = cables.into_iter().flat_map(|(one, other)| [link(one, other), link(other, one)]).collect();
    Wire { nodes, links, ..Wire::default() }
}

#[test]
fn a_route_takes_the_less_loaded_of_two_equal_ways() {
    let wire = ring();
    let mut routes = Routes::new(&wire);
    let through = |route: &[usize]| route.iter().map(|link| wire.links[*link].to).collect::<Vec<_>>();
    let shortest = routes.shortest(4, 5, &|_| 0.0).unwrap();
    assert_eq!(through(&shortest), [0, 1, 2, 5]);
    let less = routes.shortest(4, 5, &|link| if link == 0 { 0.5 } else { 0.0 }).unwrap();
    assert_eq!(through(&less), [0, 3, 2, 5]);
    let others = routes.detours(&shortest, 5, 9, &|_| 0.0);
    assert_eq!(others.iter().map(|route| through(route)).collect::<Vec<_>>(), [[0, 3, 2, 5]]);
    assert_eq!(routes.shortest(4, 4, &|_| 0.0), Some(vec![]));
}

#[test]
fn no_route_passes_through_a_host() {
    let mut wire = ring();
    wire.nodes[1].forwards = None;
    wire.nodes[3].forwards = None;
    let mut routes = Routes::new(&wire);
    assert_eq!(routes.shortest(4, 5, &|_| 0.0), None);
    assert!(routes.shortest(4, 1, &|_| 0.0).is_some(), "a host can still be the receiver");
}
