//! Captured hosts, and what the doctor says about them. `MACROTICK_BLESS=1` renews the answers.
//!
//! `virtual-machine` and `container` were captured, without their programs and boot parameters. `lab` was captured in
//! the lab, under the patched kernel. The hardware of `laptop`, `atom` and `arm64-board` was not at hand: their files
//! are put together from documentation.

use std::fs;
use std::path::{Path, PathBuf};

use macrotick_doctor::{capture, examine, reference, Needs};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn is_blessed() -> bool {
    std::env::var_os("MACROTICK_BLESS").is_some()
}

fn hosts() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("tests/hosts")).unwrap().map(|entry| entry.unwrap().path());
    let mut hosts: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    hosts.sort();
    hosts
}

#[test]
fn captured_hosts_have_these_findings() {
    let hosts = hosts();
    assert!(hosts.len() >= 6, "{hosts:?}");
    for path in hosts {
        let host = capture::read(&path).unwrap();
        let told = examine(&host, &Needs::here(&host)).text(true, |_, word| word.to_owned());
        let golden = path.with_extension("txt");
        if is_blessed() {
            fs::write(&golden, &told).unwrap();
        }
        assert_eq!(told, fs::read_to_string(&golden).unwrap_or_default(), "{}", golden.display());
    }
}

#[test]
fn a_capture_is_written_as_it_is_read() {
    let copy = std::env::temp_dir().join(format!("macrotick-doctor-{}.json", std::process::id()));
    for path in hosts() {
        let host = capture::read(&path).unwrap();
        capture::write(&copy, &host).unwrap();
        assert_eq!(capture::read(&copy).unwrap(), host, "{}", path.display());
    }
    fs::remove_file(copy).unwrap();
}

#[test]
fn the_page_lists_each_check() {
    let page = root().join("../../docs/reference/doctor.md");
    let text = fs::read_to_string(&page).unwrap();
    let (begin, end) = ("<!-- all checks -->\n", "<!-- end of all checks -->\n");
    let (before, rest) = text.split_once(begin).unwrap();
    let (_, after) = rest.split_once(end).unwrap();
    let wanted = format!("{before}{begin}{}{end}{after}", reference::table());
    if is_blessed() {
        fs::write(&page, &wanted).unwrap();
    }
    assert!(text == wanted || is_blessed(), "the table of {} is not that of the checks", page.display());
}
