//! Large and hostile texts: an import ends soon, with a system or with an error.

use std::fmt::Write as _;
use std::time::Instant;

use macrotick_exchange::{amalthea, ctu_iig, rt_app, ImportError, MAX_BYTES};
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

/// A model with these tasks and runnables, and a CPU of 100 MHz.
fn model(software: &str) -> String {
    let rest = "<hwModel><structures><modules xsi:type=\"am:ProcessingUnit\" name=\"c\" frequencyDomain=\"f?type=Clock\"/>
        </structures><domains xsi:type=\"am:Clock\" name=\"f\"><defaultValue value=\"100.0\" unit=\"MHz\"/></domains>
        </hwModel><stimuliModel><stimuli xsi:type=\"am:PeriodicStimulus\" name=\"p\"><recurrence value=\"10\" unit=\"ms\"/>
        </stimuli></stimuliModel>";
    let spaces = "xmlns:am=\"u\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"";
    format!("<am:Amalthea {spaces}><swModel>{software}</swModel>{rest}</am:Amalthea>")
}

fn amalthea(text: &str) -> Result<macrotick_model::System, String> {
    let begin = Instant::now();
    let source = amalthea::Source { name: "f.amxmi", text };
    let result = amalthea::import(&[source], &amalthea::Options::default());
    assert!(begin.elapsed().as_secs() < 60, "{}", text.get(..300).unwrap_or(text));
    result.map(|(system, _)| system).map_err(|error| error.to_string())
}

fn task(name: &str, items: &str) -> String {
    format!("<tasks name=\"{name}\" stimuli=\"p?type=PeriodicStimulus\"><activityGraph>{items}</activityGraph></tasks>")
}

const TICKS: &str =
    "<items xsi:type=\"am:Ticks\"><default value=\"1000\" xsi:type=\"am:DiscreteValueConstant\"/></items>";

#[test]
fn long_models_are_refused() {
    let half = " ".repeat(amalthea::MAX_BYTES / 2 + 1);
    let sources = ["a", "b"].map(|name| amalthea::Source { name, text: &half });
    let error = amalthea::import(&sources, &amalthea::Options::default()).unwrap_err().to_string();
    assert_eq!(error, "b: the file is longer than 16777216 bytes");
}

#[test]
fn large_models_take_linear_time() {
    let fill = |part: &str| part.repeat(MAX_BYTES / part.len() - 1000);
    for items in [
        fill("<items xsi:type=\"am:X\"/>"),
        fill("<items xsi:type=\"am:RunnableCall\" runnable=\"none\"/>"),
        fill("<items xsi:type=\"am:Switch\"><entries/></items>"),
        fill("<items xsi:type=\"am:Group\">"),
        "<items xsi:type=\"am:Group\">".repeat(60_000) + &"</items>".repeat(60_000),
        format!("<items xsi:type=\"am:Ticks\">{}</items>", fill("<extended key=\"x?type=Y\"/>")),
        format!("<items xsi:type=\"am:RunnableCall\" runnable=\"{}\"/>", fill("p?type=PeriodicStimulus ")),
    ] {
        let _ = amalthea(&model(&task("a", &items)));
    }
    let _ = amalthea(&model(&fill("<tasks name=\"a\"/>")));
    let _ = amalthea(&fill("<a b='"));
    let _ = amalthea(&fill("<a>"));
    assert_eq!(amalthea(&model(&task("a", &TICKS.repeat(1000)))).unwrap().tasks[0].wcet, Duration::from_millis(10));
}

/// Each runnable calls the next one twice, so the calls double with each level.
#[test]
fn calls_do_not_multiply() {
    let call = |index| format!("<items xsi:type=\"am:RunnableCall\" runnable=\"r{index}?type=Runnable\"/>");
    let runnable =
        |index, items: &str| format!("<runnables name=\"r{index}\"><activityGraph>{items}</activityGraph></runnables>");
    let levels = |count: usize| {
        let mut software = task("a", &call(0)) + &runnable(count, TICKS);
        (0..count).for_each(|index| software.push_str(&runnable(index, &call(index + 1).repeat(2))));
        amalthea(&model(&software))
    };
    assert_eq!(levels(9).unwrap().tasks[0].wcet, Duration::from_micros(5120));
    assert!(levels(60).unwrap_err().contains("the sum of ticks is too large"));
    assert!(levels(64).unwrap_err().contains("more than 64 groups and calls within each other"));
}

#[test]
fn a_ring_of_triggers_ends() {
    let task = |index: usize| {
        let next = (index + 1) % 500;
        let trigger =
            format!("<items xsi:type=\"am:InterProcessTrigger\" stimulus=\"s{next}?type=InterProcessStimulus\"/>");
        task(&format!("t{index}"), &(TICKS.to_owned() + &trigger))
            .replace("p?type=Periodic", &format!("s{index}?type=InterProcess"))
    };
    let text = model(&(0..500).map(task).collect::<String>());
    let stimuli: String =
        (0..500).map(|index| format!("<stimuli xsi:type=\"am:InterProcessStimulus\" name=\"s{index}\"/>")).collect();
    let error = amalthea(&text.replace("<stimuliModel>", &format!("<stimuliModel>{stimuli}"))).unwrap_err();
    assert!(error.starts_with("f.amxmi:1: tasks.t0: it needs one trigger"), "{error}");
    assert!(error.ends_with("480 more errors are not shown"), "{error}");
}

#[test]
fn tasks_of_a_model_have_a_limit() {
    let tasks = |count: usize| model(&(0..count).map(|index| task(&format!("t{index}"), TICKS)).collect::<String>());
    assert_eq!(amalthea(&tasks(4096)).unwrap().tasks.len(), 4096);
    assert_eq!(amalthea(&tasks(4097)).unwrap_err().split(": ").last(), Some("the model has more than 4096 tasks"));
}

/// Units that are no CPU, within each other: a look at all elements around each one would take a square of the time.
#[test]
fn processing_units_have_a_limit() {
    let units = |count: usize| {
        let unit = "<cores coreType=\"n?type=CoreType\">";
        let hardware = "<coreTypes name=\"n\" puType=\"Accelerator\"/>".to_owned() + &unit.repeat(count);
        model(&task("a", TICKS)).replace("<hwModel>", &format!("<hwModel>{hardware}{}", "</cores>".repeat(count)))
    };
    assert_eq!(amalthea(&units(4095)).unwrap().cpus, [0]);
    let error = amalthea(&units(60_000)).unwrap_err();
    assert!(error.ends_with("the model has more than 4096 processing units"), "{error}");
    let deep = "<structures>".repeat(100_000) + &"</structures>".repeat(100_000);
    let text = model(&task("a", TICKS)).replace("<hwModel>", &format!("<hwModel>{deep}"));
    assert_eq!(amalthea(&text).unwrap().cpus, [0]);
}

/// An allocation can name a task many times, or many units, and many schedulers can be above one.
#[test]
fn allocations_do_not_multiply() {
    let mapped = |mapping: &str, schedulers: &str| {
        let parts = format!("<osModel>{schedulers}</osModel><mappingModel>{mapping}</mappingModel><stimuliModel>");
        amalthea(&model(&task("a", TICKS)).replace("<stimuliModel>", &parts)).unwrap().tasks[0].cpu
    };
    let (task, unit) = ("a?type=Task ", "c?type=ProcessingUnit ");
    let allocation = format!("<taskAllocation task=\"{}\" affinity=\"{}\"/>", task.repeat(50_000), unit.repeat(50_000));
    assert_eq!(mapped(&allocation, ""), Some(0));

    let count = 10_000;
    let scheduler = |index: usize, parent: usize| {
        let parent = format!("<parentAssociation parent=\"s{parent}?type=TaskScheduler\"/>");
        format!("<taskSchedulers name=\"s{index}\">{parent}</taskSchedulers>")
    };
    let ring: String = (0..count).map(|index| scheduler(index, (index + 1) % count)).collect();
    let allocations = "<taskAllocation task=\"a?type=Task\" scheduler=\"s0?type=TaskScheduler\"/>".repeat(count);
    assert_eq!(mapped(&allocations, &ring), None);
    let last = count - 1;
    let last = format!("<schedulerAllocation scheduler=\"s{last}?type=TaskScheduler\" responsibility=\"{unit}\"/>");
    assert_eq!(mapped(&(allocations + &last), &ring), Some(0));
}

#[test]
fn tasks_can_be_left_out() {
    let text = model(&(task("a", TICKS) + &task("Event driven", TICKS).replace("p?type", "none?type")));
    let import = |names: &[&str]| {
        let leave_out = names.iter().map(|name| name.to_string()).collect();
        let source = amalthea::Source { name: "f.amxmi", text: &text };
        amalthea::import(&[source], &amalthea::Options { leave_out }).map_err(|error| error.to_string())
    };
    assert!(import(&[]).is_err());
    let (system, remarks) = import(&["Event driven"]).unwrap();
    assert_eq!((system.tasks.len(), system.tasks[0].name.as_str()), (1, "a"));
    assert_eq!(remarks[0], "tasks.Event driven: is left out: the table has no time for it");
    assert_eq!(import(&["b"]).unwrap_err(), "f.amxmi: swModel: no task is named `b`");
    assert!(import(&["a", "Event driven"]).unwrap_err().contains("the model has no task"));
}
