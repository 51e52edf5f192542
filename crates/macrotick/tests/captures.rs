//! `macrotick check --capture`: frames of a capture against a plan with gates.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use macrotick_model::{Duration, Plan};
use serde_json::Value;

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/two-containers-and-a-gate.yaml")
}

/// Makes a folder for one test, with the plan of the example.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("captures").join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    let planned = macrotick(&path, &["plan", &example().display().to_string(), "--output", "plan.json"]);
    assert_eq!(planned.status.code(), Some(0), "{planned:?}");
    path
}

fn macrotick(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_macrotick")).args(words).current_dir(folder).output().unwrap()
}

/// Runs `check --capture`, and returns the exit code with the output.
fn check(folder: &Path, words: &[&str]) -> (Option<i32>, String) {
    let output = macrotick(folder, &[&["check", "plan.json", "--capture", "frames.pcap"], words].concat());
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

/// The instant within the cycle at which the gate of the flow opens.
fn opens(folder: &Path) -> i64 {
    let plan = Plan::load(&folder.join("plan.json")).unwrap();
    let before = plan.gates[0].entries.iter().take_while(|entry| entry.open != ["control"]);
    before.map(|entry| entry.length).sum::<Duration>().as_nanos()
}

/// Writes a pcap file with a datagram of the sensor at each instant.
fn write(folder: &Path, instants: &[i64]) {
    let four = |number: i64| (number as u32).to_le_bytes();
    let mut file = [four(0xa1b2_3c4d), [2, 0, 4, 0], four(0), four(0), four(65_535), four(1)].concat();
    for (number, at) in instants.iter().enumerate() {
        let ip = [0x45, 0, 0, 44, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let udp =
            [[4000_u16.to_be_bytes(), 5000_u16.to_be_bytes(), 24_u16.to_be_bytes()].concat(), vec![0, 0]].concat();
        let payload = [(number as u64).to_le_bytes(), [0; 8]].concat();
        let frame = [&[2; 12], &[8, 0][..], &ip, &udp, &payload].concat();
        let length = four(frame.len() as i64);
        file.extend([four(at / 1_000_000_000), four(at % 1_000_000_000), length, length].concat());
        file.extend(frame);
    }
    fs::write(folder.join("frames.pcap"), file).unwrap();
}

const EPOCH: i64 = 1_700_000_000_000_000_000;
/// The table's clock is so much behind that of the capture.
const OFFSET: &str = "-1699999990000000000ns";

fn instants(folder: &Path, late: i64) -> Vec<i64> {
    (0..100).map(|cycle| EPOCH + cycle * 1_000_000 + opens(folder) + 200 + late).collect()
}

#[test]
fn frames_are_judged_by_a_given_epoch() {
    let folder = folder("given");
    write(&folder, &instants(&folder, 0));
    let given = ["--epoch", "10s", "--clock-offset", OFFSET];
    let (code, text) = check(&folder, &given);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.starts_with("capture of sensing: 100 frames: all frames in their windows and slots\n"), "{text}");
    assert!(text.contains("    from the opening: earliest 200ns, mean 200ns, latest 200ns\n"), "{text}");
    assert!(text.contains("  flow setpoint: 100 frames, 0 lost, 0 duplicate, 0 reordered\n"), "{text}");
    assert!(text.contains("epoch: 1700000000.000000000 on the clock of the capture"), "{text}");
    let (code, text) = check(&folder, &[&given[..], &["--json", "--path", "200ns"]].concat());
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, answer["epoch"]["epoch_ns"].as_i64()), (Some(0), Some(EPOCH)));
    assert_eq!(answer["verdict"]["classes"][0]["offsets"]["earliest"], "0ns");
    assert_eq!(answer["rules"][0], "control=udp:5000,to:10.0.0.2,from:10.0.0.1");
    // 50 us later, all frames are late. An epoch from the frames cannot show it.
    write(&folder, &instants(&folder, 50_000));
    let (code, text) = check(&folder, &given);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("class control: 100 frames, 0 in their windows, 100 late by at most "), "{text}");
    assert_eq!(text.matches(" after its gate has closed\n").count(), 20, "{text}");
    assert_eq!(check(&folder, &[]).0, Some(0));
}

#[test]
fn frames_are_judged_by_the_epoch_that_fits_them() {
    let folder = folder("fitted");
    let mut frames = instants(&folder, 0);
    frames[7] += 300_000;
    write(&folder, &frames);
    let (code, text) = check(&folder, &["-i", "sensing"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("class control: 100 frames, 99 in their windows, 1 late by at most "), "{text}");
    assert!(text.contains("with it, 99 of 100 frames are in their windows."), "{text}");
    assert!(text.contains("frame 8, class `control`, cycle "), "{text}");
    let (code, _) = check(&folder, &["--tolerance", "310us"]);
    assert_eq!(code, Some(0));
}

/// `check` judges the gates of a plan, too.
#[test]
fn a_plan_without_its_gates_is_refused() {
    let folder = folder("gates");
    let output = macrotick(&folder, &["check", "plan.json"]);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("\nsetpoint        1 "), "{text}");
    let mut plan = Plan::load(&folder.join("plan.json")).unwrap();
    plan.gates.clear();
    plan.save(&folder.join("plan.json")).unwrap();
    let output = macrotick(&folder, &["check", "plan.json"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    let told = "interface `sensing`: the description has gates, but the plan has no gate list\n";
    assert!(text.contains(told), "{text}");
}

#[test]
fn wrong_inputs_name_their_reason() {
    let folder = folder("wrong");
    write(&folder, &instants(&folder, 0));
    let refused = |words: &[&str], told: &str| {
        let (code, text) = check(&folder, words);
        assert!(code == Some(2) && text.contains(told), "{code:?}: {text}");
    };
    refused(&["--interface", "left"], "the plan has no interface `left`: use one of sensing");
    refused(&["--epoch", "5"], "a time needs a unit");
    refused(&["--clock-offset", "5ns"], "--epoch");
    refused(&["--class", "control:5000"], "write CLASS=FRAMES, as in `control=udp:5000`");
    fs::write(folder.join("frames.pcap"), "no capture").unwrap();
    refused(&[], "frames.pcap: the capture is neither pcapng nor pcap");
    fs::remove_file(folder.join("frames.pcap")).unwrap();
    refused(&[], "cannot read frames.pcap");
}
