//! Compares every structure and number with the C compiler's view of the kernel's header.
//!
//! Each claim is a C expression with its value in this crate. All of them go to the compiler as static assertions. The
//! compiler builds nothing, and reports a wrong claim with its expression.

use std::io::Write;
use std::mem::{offset_of, size_of, size_of_val};
use std::path::Path;
use std::process::{Command, Stdio};

use macrotick_uapi::*;

struct Claims(Vec<(String, u64)>);

impl Claims {
    fn add(&mut self, expression: impl Into<String>, value: u64) {
        self.0.push((expression.into(), value));
    }
}

/// The size of a structure, and the offset and size of every field.
macro_rules! structure {
    ($claims:expr, $ours:ident, $theirs:literal: $($field:ident),+) => {{
        // Without `..`, the pattern must name every field.
        let $ours { $($field),+ } = $ours::default();
        let fields = [$((stringify!($field), offset_of!($ours, $field), size_of_val(&$field))),+];
        for (field, offset, size) in fields {
            $claims.add(format!("offsetof(struct {}, {field})", $theirs), offset as u64);
            $claims.add(format!("sizeof(((struct {} *)0)->{field})", $theirs), size as u64);
        }
        // Without holes, the claims are true only if C has these fields and no others.
        assert_eq!(fields.iter().map(|&(_, _, size)| size).sum::<usize>(), size_of::<$ours>(), $theirs);
        $claims.add(format!("sizeof(struct {})", $theirs), size_of::<$ours>() as u64);
    }};
}

fn structures(claims: &mut Claims) {
    structure!(claims, Entity, "macrotick_entity": name, flags, max_misses, slice_ns);
    structure!(claims, Window, "macrotick_window": offset_ns, length_ns, cpu, entity, flags, bound_ns);
    structure!(claims, Install, "macrotick_install": size, flags, clockid, nr_entities, nr_windows, reserved, cycle_ns,
        entities, windows, error, error_index, error_other, error_reserved, lead_ns, swap_ns);
    structure!(claims, Start, "macrotick_start": size, flags, epoch_ns);
    structure!(claims, Get, "macrotick_get": size, flags, state, clockid, nr_entities, nr_windows, cycle_ns, epoch_ns,
        entities, windows, lead_ns, offset_ns, error_ns, stretched_ns, shrunk_ns, corrections);
    structure!(claims, Stats, "macrotick_entity_stats": size, entity, name, cpu, nr_threads, activations, completions,
        misses, lost, skipped, preemptions, runtime_ns, held_ns, late, late_max_ns, never_ran, misses_in_row, stopped);
    structure!(claims, Notify, "macrotick_notify": size, flags, entity, eventfd);
    structure!(claims, Recorder, "macrotick_recorder": size, flags, nr_events, nr_rings);
    structure!(claims, Event, "macrotick_event": sequence, kind, reserved, ns, thread, object, data, name);
    structure!(claims, Bind, "macrotick_bind": size, flags, pidfd, reserved, name);
    structure!(claims, Unbind, "macrotick_unbind": size, flags, pidfd, reserved);
    structure!(claims, Wait, "macrotick_wait": size, flags, job, nominal_ns, lost);
}

/// `PREFIX_NAME` of the header is `module::NAME` here.
macro_rules! numbers {
    ($claims:expr, $prefix:literal, $module:path: $($name:ident),+) => {{
        use $module as numbers;
        $($claims.add(concat!($prefix, stringify!($name)), u64::from(numbers::$name));)+
    }};
}

fn numbers(claims: &mut Claims) {
    numbers!(claims, "", macrotick_uapi: SCHED_TT, SCHED_DS);
    numbers!(claims, "MACROTICK_", macrotick_uapi: MAX_ENTITIES, MAX_WINDOWS, MAX_THREADS, MAX_MIGRATING, MIN_WINDOW_NS,
        MAX_CYCLE_NS, MAX_LEAD_NS, CAP_PERMILLE, ALL_ENTITIES, SLICE_NS, MIN_SLICE_NS, MAX_SLICE_NS, MAX_EVENTS);
    numbers!(claims, "MACROTICK_EVENT_", event: SWITCH, WAKES, EXITS, IRQ_BEGINS, IRQ_ENDS, VECTOR_BEGINS, VECTOR_ENDS,
        SOFTIRQ_BEGINS, SOFTIRQ_ENDS, LOCK_BEGINS, LOCK_ENDS, PAGE_FAULT, WINDOW_BEGINS, WINDOW_SKIPPED, MISSES,
        JOB_BEGINS, JOB_ENDS);
    numbers!(claims, "MACROTICK_INSTALL_", macrotick_uapi: SWAP);
    numbers!(claims, "MACROTICK_ENTITY_", macrotick_uapi: MISS_SIGNAL, MISS_KILL, POOL, RR, PRIORITY, SLACK,
        MIGRATE);
    numbers!(claims, "MACROTICK_WINDOW_", macrotick_uapi: ACTIVATE, DEADLINE, SYNC);
    numbers!(claims, "MACROTICK_ERR_", error: NONE, HEADER, CLOCK, CYCLE, ENTITY_NAME, ENTITY_TWICE, ENTITY_FLAGS,
        ENTITY_IDLE, WINDOW_FLAGS, WINDOW_CPU, WINDOW_ENTITY, WINDOW_LENGTH, WINDOW_RANGE, WINDOW_ORDER,
        WINDOW_OVERLAP, WINDOW_MIGRATES, CAPACITY, INSTALLED, LEAD, WINDOW_LEAD, SWAP_CPU, ENTITY_SLICE,
        WINDOW_POOL, SWAP_POOL, WINDOW_SYNC, SYNC_BOUND, SYNC_CPU, SWAP_CLOCK, BANDWIDTH, WINDOW_PARALLEL,
        BUDGETS);
    numbers!(claims, "MACROTICK_STATE_", state: EMPTY, STOPPED, RUNNING);
    numbers!(claims, "MACROTICK_IOC_", call: INSTALL, START, STOP, REMOVE, GET, STATS, NOTIFY, RECORD, BIND, UNBIND,
        WAIT);
    claims.add("MACROTICK_NAME_LEN", NAME_LEN as u64);
    claims.add(format!("__builtin_strcmp(MACROTICK_DEVICE, \"{DEVICE}\")"), 0);
}

/// Returns the name that a line of the header defines, as it appears in a claim.
fn defined(line: &str) -> Option<String> {
    let word =
        |text: &str| text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or("").to_owned();
    if let Some(structure) = line.strip_prefix("struct ").and_then(|rest| rest.strip_suffix(" {")) {
        return Some(format!("sizeof(struct {structure})"));
    }
    let name = word(line.strip_prefix("#define ").unwrap_or(line.trim_start()));
    // The guard starts with an underscore; MACROTICK_IOC() makes the numbers of the calls.
    let counts = name.starts_with("MACROTICK_") || line.starts_with("#define SCHED_");
    (counts && name != "MACROTICK_IOC").then_some(name)
}

#[test]
fn the_c_compiler_agrees() {
    let uapi = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernel/overlay/include/uapi");
    let mut claims = Claims(Vec::new());
    structures(&mut claims);
    numbers(&mut claims);

    let header = std::fs::read_to_string(uapi.join("linux/macrotick.h")).unwrap();
    let wanted: Vec<String> = header.lines().filter_map(defined).collect();
    assert!(wanted.len() > 40, "the header was not understood: {wanted:?}");
    for wanted in wanted {
        // The name of the device is text, and a function compares it.
        let said = claims.0.iter().any(|(claim, _)| *claim == wanted || claim.contains(&format!("({wanted},")));
        assert!(said, "{wanted} is in the header, and not here");
    }

    let mut source = String::from("#include <linux/macrotick.h>\n#include <stddef.h>\n");
    for (expression, value) in &claims.0 {
        let claim = format!("{expression} == {value}");
        source += &format!("_Static_assert({expression} == {value}ULL, {claim:?});\n");
    }
    let mut compiler = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".into()))
        .args(["-std=gnu11", "-Wall", "-Werror", "-fsyntax-only", "-I"])
        .arg(uapi)
        .args(["-x", "c", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    compiler.stdin.take().unwrap().write_all(source.as_bytes()).unwrap();
    let output = compiler.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
