//! The forms of `lead` in a description and in a plan file.

use macrotick_fixtures::{by_hand, ms};
use macrotick_model::{Duration, Lead, Plan, System};

fn described(lead: &str) -> System {
    let source = format!("system: s\n{lead}tasks:\n  - {{name: a, period: 10ms, wcet: 1ms}}\n");
    System::parse(&source, "s.yaml").unwrap_or_else(|errors| panic!("{errors}"))
}

fn plan_file(system: System) -> String {
    by_hand(system, ms(10), Vec::new()).to_json()
}

#[test]
fn every_form_is_read_and_says_what_to_reserve() {
    let us = Duration::from_micros;
    for (text, lead, reserved) in [
        ("lead: 6us\n", Lead::Fixed(us(6)), us(6)),
        ("lead: 1ms\n", Lead::Fixed(us(1000)), us(1000)),
        ("lead: auto\n", Lead::Auto(us(20)), us(20)),
        ("lead: {auto: 50us}\n", Lead::Auto(us(50)), us(50)),
    ] {
        assert_eq!(described(text).lead, Some(lead), "{text}");
        assert_eq!(lead.reserved(), reserved, "{text}");
    }
    assert_eq!(described("").lead, None);
}

#[test]
fn a_plan_without_a_lead_does_not_mention_it() {
    let text = plan_file(described(""));
    assert!(!text.contains("lead"), "{text}");
    assert_eq!(Plan::from_json(&text, "plan.json").expect("a valid plan").system.lead, None);
}

#[test]
fn a_plan_file_keeps_the_lead_and_its_bounds() {
    let text = plan_file(described("lead: {auto: 50us}\n"));
    let read = Plan::from_json(&text, "plan.json").expect("a valid plan");
    assert_eq!(read.system.lead, Some(Lead::Auto(Duration::from_micros(50))));
    let mut system = described("");
    system.lead = Some(Lead::Fixed(Duration::from_millis(2)));
    let error = Plan::from_json(&plan_file(system), "plan.json").expect_err("too long").to_string();
    assert_eq!(error, "plan.json: system.lead: lead 2ms is out of range: 1ns to 1ms");
}
