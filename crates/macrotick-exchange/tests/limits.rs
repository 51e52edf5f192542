//! Large and hostile texts: an import ends soon, with a system or with an error.

use std::fmt::Write as _;
use std::time::Instant;

use macrotick_exchange::{ctu_iig, rt_app, ImportError, MAX_BYTES};
use macrotick_model::Duration;

fn rt_app(text: &str) -> Result<usize, ImportError> {
    let begin = Instant::now();
    let result = rt_app::import(text, "f.json", &rt_app::Options::default());
    // Without optimisation a text of the longest length takes a few seconds. A square of its length would take hours.
    assert!(begin.elapsed().as_secs() < 60);
    result.map(|(system, _)| system.tasks.len() + system.load.len())
}

fn ctu_iig(text: &str, options: &ctu_iig::Options) -> Result<macrotick_model::System, String> {
    ctu_iig::import(text, "f.dat", options).map(|(system, _)| system).map_err(|error| error.to_string())
}

#[test]
fn long_texts_are_refused() {
    let text = " ".repeat(MAX_BYTES + 1);
    assert_eq!(rt_app(&text).unwrap_err().to_string(), "f.json: the file is longer than 4194304 bytes");
    let error = ctu_iig(&text, &ctu_iig::Options::default()).unwrap_err();
    assert_eq!(error, "f.dat: the file is longer than 4194304 bytes");
}

#[test]
fn texts_of_the_longest_length_take_linear_time() {
    let fill = |part: &str| part.repeat(MAX_BYTES / part.len() - 10);
    for text in [
        format!("[{}]", fill("1,")),
        format!("[{}]", fill("\"\\n\",")),
        fill("\"\\u0041"),
        fill("// c\n"),
        fill("/**/"),
        format!("{{{}}}", fill("\"a\",")),
        format!("{{\"tasks\": {{\"a\": {{{}}}}}}}", fill("\"run\":1,")),
        format!("{{\"tasks\": {{{}}}}}", fill("\"a\":{\"run\":1},")),
        format!("{{\"tasks\": {{{}}}}}", fill("\"a\":{\"x\":1},")),
    ] {
        let _ = rt_app(&text);
        let _ = ctu_iig(&text, &ctu_iig::Options::default());
    }
    let _ = ctu_iig(&format!("periods = [{}];", fill("1,")), &ctu_iig::Options::default());
    let _ = ctu_iig(&fill("a=1;"), &ctu_iig::Options::default());
}

#[test]
fn the_most_threads_of_one_name_get_names_of_their_own() {
    let thread = "\"a\":{\"run\":1,\"timer\":{\"ref\":\"u\",\"period\":100000}},";
    assert_eq!(rt_app(&format!("{{\"tasks\": {{{}}}}}", thread.repeat(4096))), Ok(4096));
    let error = rt_app(&format!("{{\"tasks\": {{{}}}}}", thread.repeat(4097))).unwrap_err().to_string();
    assert_eq!(error, "f.json: tasks.a.instance: 4097 threads are too many, the limit is 4096");
}

#[test]
fn lists_of_cpus_do_not_multiply() {
    let cpus = (0..1024).map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(",");
    let thread = format!("\"instance\":4096,\"run\":1,\"cpus\":[{cpus}],\"timer\":{{\"period\":100000}}");
    let error = rt_app(&format!("{{\"tasks\": {{\"a\":{{{thread}}}}}}}")).unwrap_err().to_string();
    assert_eq!(error, "f.json: tasks.a.cpus: the threads list more than 65536 CPUs together");
}

/// An instance with this many runnables of 100 us and 10 ms, and one chain of them.
fn instance(count: usize) -> String {
    let list = |value: &str| vec![value; count].join(",");
    let chain = (1..=count).map(|runnable| runnable.to_string()).collect::<Vec<_>>().join(",");
    let mut text = format!("numChains = 1;\nnumberOfTasksinChain = [{}];\n", 2 * count - 1);
    let _ = writeln!(text, "runnablesInChains = [{chain}];");
    let _ = writeln!(text, "processingTimesRunnables = [{}];\nperiods = [{}];", list("100"), list("10000"));
    text
}

#[test]
fn options_scale_times_and_bound_chains() {
    let options = ctu_iig::Options { cpus: Some(2), load: Some(50), latency: "1.5".parse().unwrap() };
    let system = ctu_iig(&instance(10), &options).unwrap();
    assert_eq!(system.cpus, [0, 1]);
    // Ten tasks of a tenth of half of two CPUs each: 1 ms of 10 ms.
    assert!(system.tasks.iter().all(|task| task.wcet == Duration::from_millis(1)), "{:?}", system.tasks[0]);
    assert_eq!(system.chains[0].reaction, Some(Duration::from_millis(15)));
    assert_eq!(system.chains[0].path[9], "r10");

    let low = ctu_iig::Options { load: Some(0), ..ctu_iig::Options::default() };
    assert!(ctu_iig(&instance(2), &low).unwrap().tasks.iter().all(|task| task.wcet == Duration::from_micros(1)));
    let high = ctu_iig::Options { load: Some(u32::MAX), ..ctu_iig::Options::default() };
    let error = ctu_iig(&instance(2), &high).unwrap_err();
    assert!(error.contains("does not fit into the period of 10000us"), "{error}");
    let many = ctu_iig::Options { cpus: Some(1025), ..ctu_iig::Options::default() };
    let error = ctu_iig(&instance(2), &many).unwrap_err();
    assert_eq!(error, "f.dat: the number of CPUs: 1025 is out of range: 1 to 1024");
}

#[test]
fn an_instance_has_a_limit() {
    assert_eq!(ctu_iig(&instance(4096), &ctu_iig::Options::default()).unwrap().tasks.len(), 4096);
    let error = ctu_iig(&instance(4097), &ctu_iig::Options::default()).unwrap_err();
    assert_eq!(error, "f.dat: runnablesInChains[4096]: 4097 is out of range: 1 to 4096");
}

#[test]
fn a_periodic_thread_can_become_load() {
    let text =
        "{\"tasks\": {\"a\": {\"run\": 1, \"timer\": {\"ref\": \"unique\", \"period\": 1000, \"mode\": \"absolute\"}},
        \"Noise\": {\"instance\": 2, \"run\": 100, \"timer\": {\"ref\": \"unique\", \"period\": 5000}}}}";
    let import = |names: &[&str]| {
        let load = names.iter().map(|name| name.to_string()).collect();
        rt_app::import(text, "f.json", &rt_app::Options { load })
    };
    let (system, _) = import(&["Noise"]).unwrap();
    assert_eq!((system.tasks.len(), system.load.len()), (1, 1));
    assert_eq!((system.load[0].name.as_str(), system.load[0].count), ("noise", 2));
    let error = import(&["nose"]).unwrap_err().to_string();
    assert_eq!(error, "f.json: tasks: no thread is named `nose`");
    let error = import(&["a", "Noise"]).unwrap_err().to_string();
    assert!(error.contains("no thread becomes a task"), "{error}");
}
