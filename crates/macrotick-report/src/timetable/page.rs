//! A plan as one HTML file: the verdict, the timetable, and the times of tasks, pools and chains.

use std::collections::{BTreeMap, BTreeSet};

use macrotick_check::{TaskVerdict, Verdict};
use macrotick_model::visible::visible;
use macrotick_model::{Duration, Plan};

use super::arrows::{self, Arrow};
use super::draw;
use super::rows::Rows;
use crate::html::write::{self, card, list, section};
use crate::plot::svg::{escape, number};
use crate::table::{toned, Cell, Table, Tone};
use crate::words;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// A page begins with the arrows of at most this many chains.
const FIRST_CHAINS: usize = 3;

/// Returns the plan as a page of its own: with the timetable, which can be zoomed and searched, and with `verdict`.
pub fn page(plan: &Plan, verdict: &Verdict) -> String {
    let rows = Rows::of(plan);
    let arrows = arrows::of(plan, &rows);
    let sections = [
        header(plan),
        banner(verdict),
        cards(plan, verdict),
        timetable(plan, &rows, &arrows),
        tasks(plan, verdict),
        pools(verdict),
        chains(verdict),
        format!(
            "<details>\n<summary>The judge's verdict as text</summary>\n<pre>{}</pre>\n</details>\n",
            escape(&visible(&verdict.to_string()))
        ),
        format!("<script>\n{SCRIPT}</script>\n"),
    ];
    let style = format!("<style>\n{}{STYLE}</style>\n", draw::STYLE);
    write::page(&format!("Plan of {}", visible(&plan.system.name)), &(style + &sections.concat()))
}

fn time(length: Duration) -> String {
    words::short_time(length.as_nanos()).replace(" us", " µs")
}

fn header(plan: &Plan) -> String {
    format!(
        "<header>\n<p class=\"eyebrow\">Macrotick plan</p>\n<h1>{}</h1>\n<p>cycle of {}, planned by {}</p>\n</header>\n",
        escape(&visible(&plan.system.name)),
        time(plan.cycle),
        escape(&visible(&plan.solver))
    )
}

fn banner(verdict: &Verdict) -> String {
    const SHOWN: usize = 20;
    let count = verdict.violations.len();
    if count == 0 {
        return "<div class=\"banner\"><strong>✓ Feasible</strong><span class=\"line\">the judge found no broken rule\
                </span></div>\n"
            .into();
    }
    let mut each: Vec<String> = verdict.violations.iter().take(SHOWN).map(ToString::to_string).collect();
    each.extend((count > SHOWN).then(|| format!("and {} more", count - SHOWN)));
    format!(
        "<div class=\"banner bad\"><strong>✗ Not feasible</strong><span class=\"line\">{count} violation{}</span>\n{}\
         </div>\n",
        if count == 1 { "" } else { "s" },
        list(&each)
    )
}

fn cards(plan: &Plan, verdict: &Verdict) -> String {
    let card = |name: &str, value: &str, of: &str| card(name, value, &visible(of), false);
    let mut cards = String::new();
    if let Some(cpu) = verdict.cpus.iter().max_by(|one, other| one.utilisation.total_cmp(&other.utilisation)) {
        cards += &card("Highest load", &share(cpu.utilisation), &format!("windows on CPU {}", cpu.cpu));
    }
    let windows: usize = plan.tables.iter().map(|table| table.windows.len()).sum();
    let jobs: usize = verdict.tasks.iter().map(|task| task.jobs).sum();
    let of = match jobs {
        1 => "for one job in a cycle".to_owned(),
        jobs => format!("for {} jobs in a cycle", words::grouped(jobs as u64)),
    };
    cards += &card("Windows", &words::grouped(windows as u64), &of);
    if let Some(task) = verdict.tasks.iter().min_by_key(|task| task.slack) {
        cards += &card("Least slack", &time(task.slack), &task.name);
    }
    let bounded = verdict
        .chains
        .iter()
        .flat_map(|chain| chain.bounds().map(move |(kind, reached, bound)| (chain, kind, reached, bound)));
    let used = |reached: Duration, bound: Duration| reached.as_nanos() as f64 / bound.as_nanos().max(1) as f64;
    if let Some((chain, kind, reached, bound)) = bounded.max_by(|a, b| used(a.2, a.3).total_cmp(&used(b.2, b.3))) {
        let of = format!("{kind} of {}: {} of {}", chain.name, time(reached), time(bound));
        cards += &card("Closest chain", &share(used(reached, bound)), &of);
    }
    format!("<div class=\"cards\">\n{cards}</div>\n")
}

fn share(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn timetable(plan: &Plan, rows: &Rows, arrows: &[Arrow]) -> String {
    if rows.rows.is_empty() {
        return section("Timetable", "The plan has no windows and no gates.", "");
    }
    let height = number(draw::height(rows));
    let body = format!(
        "{}{}<div class=\"timetable\"><svg class=\"plot labels\" width=\"{}\" height=\"{height}\">{}</svg><div \
         class=\"scroll\"><svg class=\"plot time\" height=\"{height}\" data-length=\"{}\" data-bottom=\"{}\" \
         role=\"img\" aria-label=\"Timetable\">{}</svg></div></div>\n",
        controls(plan),
        legend(rows),
        number(draw::labels_width(rows)),
        draw::labels(rows),
        rows.until.as_nanos(),
        number(draw::bottom(rows)),
        draw::contents(rows, arrows, Duration::ZERO)
    );
    let note = format!(
        "{}. Each coloured bar is a window; hold the pointer over it for its job and times, or select it to see only \
         this task. An arrow of a chain leads from the end of a job to the first job that reads its value. \
         Ctrl and the mouse wheel zoom, and so do the keys + and -.",
        draw::shown(plan, rows)
    );
    section("Timetable", &note, &body)
}

/// A legend names at most this many tasks and groups. With more, the colours repeat.
const NAMED: usize = 8;

/// Returns the colours of tasks and groups, and the meaning of the other bars. Each is there only if the timetable has it.
fn legend(rows: &Rows) -> String {
    let bars = || rows.rows.iter().flat_map(|row| &row.bars);
    let key = |&(class, drawn, text): &(&str, &str, &str)| {
        let is_drawn = bars().any(|bar| bar.class.split(' ').any(|one| one == class));
        is_drawn.then(|| write::bar_key(drawn, text))
    };
    let keys = [
        ("paper", "series s0 paper", "window of a group"),
        ("lead", "lead", "lead"),
        ("sync", "sync", "sync window"),
        ("gate", "gate", "open gate"),
    ];
    let named = bars().filter(|bar| !bar.name.is_empty());
    let mut owners: BTreeSet<(&str, &str)> = named.map(|bar| (bar.class.as_str(), bar.name.as_str())).collect();
    if owners.len() > NAMED {
        owners.clear();
    }
    let owners = owners.into_iter().map(|(class, name)| write::bar_key(class, &escape(name)));
    let all: Vec<String> = owners.chain(keys.iter().filter_map(key)).collect();
    write::keys(&all)
}

/// Returns the controls. The script shows them: nothing works without it.
fn controls(plan: &Plan) -> String {
    let chains = &plan.system.chains;
    let chain = |(index, name): (usize, &str)| {
        let checked = if chains.len() <= FIRST_CHAINS { " checked" } else { "" };
        let name = escape(&visible(name));
        format!("<label><input type=\"checkbox\" data-chain=\"{index}\"{checked}> {name}</label>\n")
    };
    let chains: String = chains.iter().map(|chain| chain.name.as_str()).enumerate().map(chain).collect();
    format!(
        "<div class=\"controls\" hidden>\n<button data-key=\"-\" title=\"Zoom out\">−</button>\n<button \
         data-key=\"+\" title=\"Zoom in\">+</button>\n<button data-key=\"0\">Whole</button>\n<input type=\"search\" \
         placeholder=\"Find a task or group\" aria-label=\"Find a task or group\">\n<output></output>\n{chains}</div>\n"
    )
}

fn tasks(plan: &Plan, verdict: &Verdict) -> String {
    let mut windows: BTreeMap<&str, usize> = BTreeMap::new();
    let served = plan.tables.iter().flat_map(|table| &table.windows);
    served.for_each(|window| *windows.entry(&window.task).or_default() += 1);
    let judged: BTreeMap<&str, &TaskVerdict> = verdict.tasks.iter().map(|task| (task.name.as_str(), task)).collect();
    let mut table =
        Table::new(2, &["task", "CPU", "period", "wcet", "jobs", "windows per job", "response", "jitter", "slack"]);
    for task in &plan.system.tasks {
        let mut row: Vec<Cell> = vec![
            visible(&task.name).into(),
            plan.cpus(&task.name).to_string().into(),
            time(task.period).into(),
            time(task.wcet).into(),
        ];
        match judged.get(task.name.as_str()) {
            Some(judged) => {
                let each = windows.get(task.name.as_str()).copied().unwrap_or(0) as f64 / judged.jobs.max(1) as f64;
                let slack = if judged.slack < Duration::ZERO { Tone::Bad } else { Tone::Plain };
                row.push(words::grouped(judged.jobs as u64).into());
                row.push(format!("{each:.2}").into());
                row.extend([time(judged.response), time(judged.jitter)].map(Cell::from));
                row.push(toned(time(judged.slack), slack));
            }
            None => {
                let why = if task.reservation().is_some() { "SCHED_DEADLINE" } else { "-" };
                row.extend(["-", "-", "-", "-", why].map(Cell::from));
            }
        }
        table.rows.push(row);
    }
    if table.rows.is_empty() {
        return String::new();
    }
    let body = format!("<div id=\"tasks\">{}</div>\n", write::table(&table));
    let note = "Response: the longest time from the nominal instant of a job to the end of its last window. Jitter: \
                the variation of the nominal instants. Slack: the shortest time from the end of the last window to \
                the deadline.";
    section("Tasks", note, &body)
}

fn pools(verdict: &Verdict) -> String {
    if verdict.pools.is_empty() {
        return String::new();
    }
    let mut table =
        Table::new(1, &["group", "CPU", "windows", "period", "required", "given", "longest time without a window"]);
    for pool in &verdict.pools {
        let times = [pool.period, pool.budget, pool.given, pool.gap].map(|length| Cell::from(time(length)));
        let mut row: Vec<Cell> = vec![visible(&pool.name).into(), pool.cpu.to_string().into()];
        row.push(words::grouped(pool.windows as u64).into());
        row.extend(times);
        table.rows.push(row);
    }
    section("Groups with windows", "", &write::table(&table))
}

fn chains(verdict: &Verdict) -> String {
    if verdict.chains.is_empty() {
        return String::new();
    }
    let mut table = Table::new(1, &["chain", "reaction", "bound", "age", "bound"]);
    let cells = |reached: Option<Duration>, bound: Option<Duration>| {
        let broken = reached.zip(bound).is_some_and(|(reached, bound)| reached > bound);
        let tone = if broken || reached.is_none() { Tone::Bad } else { Tone::Plain };
        let bound = bound.map_or(toned("none", Tone::Faint), |bound| time(bound).into());
        [toned(reached.map_or("unknown".into(), time), tone), bound]
    };
    for chain in &verdict.chains {
        let mut row: Vec<Cell> = vec![visible(&chain.name).into()];
        row.extend(cells(chain.reaction, chain.reaction_bound));
        row.extend(cells(chain.age, chain.age_bound));
        table.rows.push(row);
    }
    let note = "Reaction time counts from the sampling that just missed an input to the end of the first job of the \
                last task that reflects the next sampling. Data age counts from a sampling to the end of the last job \
                that uses it.";
    section("Chains", note, &write::table(&table))
}
