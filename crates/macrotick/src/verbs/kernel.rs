//! `macrotick kernel`

use std::io::IsTerminal;

use macrotick_cli::{KernelArgs, KernelBuildArgs, KernelVerb};
use macrotick_lab::machine::{self, Base, Change, Configured, MachineKernel};
use macrotick_lab::progress::Terminal;
use macrotick_lab::{Arch, Layout};
use macrotick_report::output;
use macrotick_report::table::Table;

use crate::error::CliError;
use crate::Outcome;

/// The options of the base that are named when they are lost.
const NAMED: usize = 12;

/// Builds a kernel for a machine.
pub fn execute(args: &KernelArgs) -> Result<Outcome, CliError> {
    let KernelVerb::Build(args) = &args.verb;
    build(args)
}

fn build(args: &KernelBuildArgs) -> Result<Outcome, CliError> {
    let kernel = MachineKernel {
        base: Base::named(&args.from),
        fragments: args.fragments.clone(),
        debug_information: args.debug_info,
        packages: args.deb,
    };
    let arch = Arch::from_name(&args.arch).expect("the parser knows the names");
    let (layout, mut progress) = (Layout::find()?.on(arch), Terminal::new());
    if args.dry_run {
        print(&args.from, &machine::configure(&layout, &kernel, &mut progress)?);
        return Ok(Outcome::Done);
    }
    let results = machine::build(&layout, &kernel, &mut progress, &mut |configured| print(&args.from, configured))?;
    output::print("\n");
    for result in results {
        output::print_line(format_args!("built: {}", result.display()));
    }
    Ok(Outcome::Done)
}

/// Prints the differences from the base.
fn print(base: &str, configured: &Configured) {
    let merge = &configured.merge;
    let changed = counted(merge.changes.len(), "option");
    output::print_line(format_args!("Linux {}: {changed} changed from {base}", configured.release));
    output::print(table(&merge.changes));
    if !merge.refused.is_empty() {
        output::print("\nnot as requested: another option demands it, or this source does not have the value\n");
        output::print(table(&merge.refused));
    }
    let off = |names: &[String], why: &str| {
        if !names.is_empty() {
            output::print_line(format_args!("\noff, {why} ({}): {}", names.len(), few(names)));
        }
    };
    off(&merge.excluded, "because this Linux does not have it together with PREEMPT_RT");
    off(&merge.lost, "because options that it depends on are off");
    off(&merge.unknown, "because this Linux does not have it");
    output::print_line(format_args!("\nconfiguration: {}", configured.config.display()));
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn few(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ") + &more
}

fn table(changes: &[Change]) -> String {
    let mut table = Table::new(4, &["option", "base", "here", "reason"]);
    for change in changes {
        let cells = [change.name.as_str(), &change.before, &change.now, &change.why];
        table.rows.push(cells.map(Into::into).into());
    }
    table.text(std::io::stdout().is_terminal(), 120)
}
