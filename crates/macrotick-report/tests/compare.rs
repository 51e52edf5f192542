//! Comparisons of several runs.

#[allow(dead_code)]
mod synthetic;

use macrotick_model::{Backend, Duration};
use macrotick_report::*;

fn reports() -> Vec<Report> {
    [Backend::Other, Backend::Kernel].map(|backend| Report::new(&synthetic::small(backend))).into()
}

#[test]
fn rows_are_what_the_reports_say() {
    let reports = reports();
    let comparison = compare(&reports);
    assert_eq!(comparison.runs.iter().map(|run| run.holds).collect::<Vec<_>>(), [false, true]);
    let task = comparison.task("control").unwrap();
    for (row, report) in task.rows.iter().zip(&reports) {
        let expected = report.task("control").unwrap();
        assert_eq!(row.label, report.backend.name());
        assert_eq!((row.lateness, row.response, row.missed), (expected.lateness, expected.response, expected.missed));
        assert_eq!(row.samples(Metric::Response), expected.samples(Metric::Response));
    }
    assert!(comparison.remarks.is_empty(), "{:?}", comparison.remarks);
}

#[test]
fn runs_of_different_plans_are_called_out() {
    let other = Report::new(&synthetic::robot_arm(Backend::Kernel, Duration::from_secs(1)));
    let comparison = compare_labelled(&[("a", &reports()[1]), ("b", &other)]);
    assert_eq!(comparison.remarks, ["b ran another plan than a: the two are not comparable"]);
}

#[test]
fn runs_of_different_systems_or_tasks_are_refused() {
    let reports = reports();
    let refusal = |other: &Report| check_comparable(&[("a", &reports[0]), ("b", other)]).unwrap_err().to_string();
    assert_eq!(check_comparable(&[("a", &reports[0]), ("b", &reports[1])]), Ok(()));
    assert_eq!(check_comparable(&[]), Ok(()));
    let mut other = reports[1].clone();
    other.system = "crane".into();
    assert_eq!(refusal(&other), "a ran the system `robot-arm`, but b ran `crane`");
    let mut other = reports[1].clone();
    other.tasks[1].name = "lidar".into();
    other.tasks[0].period_ns = 2_000_000;
    assert_eq!(
        refusal(&other),
        "a and b have different tasks: only a has `vision`; only b has `lidar`; the period of `control` is 1 ms and \
         2 ms"
    );
}

#[test]
fn the_headline_tells_who_missed() {
    let reports = reports();
    assert_eq!(compare(&reports).headline(), "other (SCHED_OTHER): 26 of 30 missed; kernel (SCHED_TT): none");
    assert_eq!(compare(&reports[1..]).headline(), "kernel (SCHED_TT): none of 30 missed");
    let labelled = compare_labelled(&[("before", &reports[1]), ("after", &reports[1])]);
    assert_eq!(labelled.headline(), "before: none of 30 missed; after: none");
}

#[test]
fn chains_stand_beside_their_bounds() {
    let reports = reports();
    let comparison = compare(&reports);
    let chain = &comparison.chains[0];
    assert_eq!((chain.name.as_str(), chain.rows.len()), ("sense-to-act", 2));
    for (row, report) in chain.rows.iter().zip(&reports) {
        assert_eq!((&row.reaction, &row.age), (&report.chains[0].reaction, &report.chains[0].age));
    }
    let html = comparison.html();
    assert_eq!(html.matches(">bound</text>").count(), 2);
    assert_eq!(html.matches("<script").count() + html.matches("<link").count() + html.matches("src=").count(), 0);
}

#[test]
fn figures_carry_ours_and_theirs() {
    let comparison = compare(&reports()[1..]).with_references(Reference::sched_tt_figure_3());
    let figures = comparison.figures();
    let value = |figure: &str, case: &str| {
        figures.iter().find(|entry| entry.figure == figure && entry.case == case).map(|entry| entry.value)
    };
    let mean = comparison.task("control").unwrap().rows[0].lateness.unwrap().mean_ns.as_us_f64();
    assert_eq!(value("control.lateness.mean", "kernel"), Some(mean));
    assert_eq!(value("vision.misses", "kernel"), Some(0.0));
    assert_eq!(value("response.mean", "paper: CFS"), Some(67.4));
    assert_eq!(value("response.std", "paper: kernel TT"), Some(1.7));
}

#[test]
fn tables_have_a_line_per_run_and_reference() {
    let comparison = compare(&reports()).with_references(Reference::sched_tt_figure_3());
    let text = comparison.terminal(false, 100);
    assert_eq!(text.lines().filter(|line| line.starts_with("kernel")).count(), 1 + 4);
    assert_eq!(text.lines().filter(|line| line.starts_with("paper: CFS")).count(), 2);
    let markdown = comparison.markdown();
    assert_eq!(markdown.lines().filter(|line| line.starts_with("| kernel |")).count(), 1 + 4);
    assert!(markdown.contains("\n* SCHED_TT paper"));
}

#[test]
fn a_folder_gets_every_rendering() {
    let folder = std::env::temp_dir().join(format!("macrotick-compare-{}", std::process::id()));
    let files = compare(&reports()).write(&folder).unwrap();
    let names: Vec<String> =
        files.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
    for name in ["figures.json", "comparison.json", "tables.md", "report.html", "control-response-cdf.svg"] {
        assert!(names.iter().any(|file| file == name), "{names:?}");
    }
    // SCHED_OTHER is hundreds of times later than the kernel class, and would hide it.
    assert!(names.contains(&"control-lateness-histogram-close.svg".to_string()), "{names:?}");
    for path in &files {
        let text = std::fs::read_to_string(path).unwrap();
        assert!(!text.is_empty() && !text.contains("NaN"), "{}", path.display());
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn nothing_compared_is_an_empty_comparison() {
    let comparison = compare(&[]);
    assert!(comparison.tasks.is_empty() && comparison.figures().is_empty());
    assert!(comparison.html().ends_with("</html>\n"));
}

#[test]
fn runs_that_share_a_backend_have_colours_of_their_own() {
    let reports = reports();
    let colours = |comparison: &Comparison| {
        let svg = comparison.histogram_svg(&comparison.tasks[0], Metric::Response);
        let class = |part: &str| part.split('"').next().unwrap().to_string();
        svg.split("class=\"series ").skip(1).map(class).collect::<Vec<_>>()
    };
    assert_eq!(colours(&compare(&reports)), ["s0", "s4"]);
    let twice = compare_labelled(&[("no lead", &reports[1]), ("lead", &reports[1])]);
    assert_eq!(colours(&twice), ["s0", "s1"]);
}
