//! The programs of a plan, taken along into the lab.
//!
//! A name without a slash is looked up in the guest's `PATH`. A path names a file of the host, which is put into the
//! guest under the same path; a relative one counts from the directory in which `macrotick` was started, as it does
//! in a run on the host, and the guest's working directory stands for it. A path of the guest's own image, such as
//! `/bin/sh`, means the program there.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use macrotick_lab::program::Unfit;
use macrotick_lab::{guest, image, program};
use macrotick_model::{Load, Plan, Workload};

use crate::error::CliError;

/// Why a program cannot be taken along.
#[derive(Debug, thiserror::Error)]
pub enum ProgramFault {
    /// The file cannot be read on the host.
    #[error("{0} (build it here first, and link with -static)")]
    Unreadable(#[from] io::Error),
    /// It has no execute permission on the host.
    #[error("it is not an executable file")]
    NotExecutable,
    /// A relative path whose place in the guest is not its own.
    #[error("the path leads out of the directory in which macrotick was started: use an absolute one")]
    Outside,
    /// The guest cannot execute it.
    #[error(transparent)]
    Unfit(#[from] Unfit),
}

/// The files for the guest: absolute path and content.
pub fn files(plan: &Plan) -> Result<Vec<(String, Vec<u8>)>, CliError> {
    let named = named(plan);
    if named.is_empty() {
        return Ok(Vec::new());
    }
    let image = image::programs()?;
    let mut files = BTreeMap::new();
    for (owner, program) in named {
        let failed = |reason| CliError::Program { owner, program: program.into(), reason };
        if let Some((path, content)) = file(program, &image).map_err(failed)? {
            files.insert(path, content);
        }
    }
    Ok(files.into_iter().collect())
}

/// The programs that are named by a path, each with the task or background load that names it.
fn named(plan: &Plan) -> Vec<(String, &str)> {
    let mut commands = Vec::new();
    for task in &plan.system.tasks {
        if let Workload::Program(command) = &task.workload {
            commands.push((format!("task `{}`", task.name), command));
        }
    }
    for background in &plan.system.background {
        if let Load::Program(command) = &background.load {
            commands.push((format!("background load `{}`", background.name), command));
        }
    }
    let programs = commands.into_iter().filter_map(|(owner, command)| Some((owner, command.first()?.as_str())));
    programs.filter(|(_, program)| program.contains('/')).collect()
}

/// Where a program goes in the guest, and what it is; nothing if the guest has one there.
fn file(program: &str, image: &BTreeSet<String>) -> Result<Option<(String, Vec<u8>)>, ProgramFault> {
    let start = if program.starts_with('/') { "/" } else { guest::DIRECTORY };
    if image.contains(&resolve(start, program)?) {
        return Ok(None);
    }
    let meta = fs::metadata(program)?;
    if !meta.is_file() || meta.permissions().mode() & 0o111 == 0 {
        return Err(ProgramFault::NotExecutable);
    }
    let content = fs::read(program)?;
    program::check(&content, image)?;
    Ok(Some((Path::new(start).join(program).to_string_lossy().into_owned(), content)))
}

/// What a path means in the guest, without `.` and `..`.
fn resolve(start: &str, program: &str) -> Result<String, ProgramFault> {
    let mut path = PathBuf::from(start);
    for component in Path::new(program).components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::ParentDir if start != "/" && path == Path::new(start) => return Err(ProgramFault::Outside),
            Component::ParentDir => drop(path.pop()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    Ok(path.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use macrotick_model::System;
    use macrotick_plan::Solver;

    use super::*;

    fn plan(workload: &str, load: &str) -> Plan {
        let text = format!(
            "system: s\ntasks:\n  - {{name: a, period: 1ms, wcet: 100us}}\n  - {{name: t, period: 1ms, wcet: 100us, \
             workload: {{program: [{workload}, -x/y]}}}}\nbackground:\n  - {{name: b, load: {{program: [{load}]}}}}\n"
        );
        let system = System::parse(&text, "s.yaml").unwrap();
        macrotick_plan::plan(&system, Solver::default_for(&system)).unwrap()
    }

    /// A file in a folder of its own, executable or not.
    fn write(name: &str, content: &[u8], mode: u32) -> String {
        let path = std::env::temp_dir().join(format!("macrotick-programs-{}-{name}", std::process::id()));
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn image() -> BTreeSet<String> {
        BTreeSet::from(["/bin/sh".to_owned()])
    }

    #[test]
    fn only_programs_with_a_path_are_named() {
        let plan = plan("tasks/t", "sleep");
        assert_eq!(named(&plan), [("task `t`".to_owned(), "tasks/t")]);
    }

    #[test]
    fn a_script_is_taken_along_under_its_path() {
        let script = write("script", b"#!/bin/sh\n", 0o755);
        let taken = file(&script, &image()).unwrap();
        fs::remove_file(&script).unwrap();
        assert_eq!(taken, Some((script, b"#!/bin/sh\n".to_vec())));
    }

    #[test]
    fn relative_paths_count_from_the_directory_in_which_the_program_starts() {
        assert_eq!(resolve("/root", "tasks/./x/../t").unwrap(), "/root/tasks/t");
        assert!(matches!(resolve("/root", "tasks/../../t"), Err(ProgramFault::Outside)));
        assert_eq!(resolve("/", "/../root/../bin/./sh").unwrap(), "/bin/sh");
    }

    #[test]
    fn what_the_image_has_is_not_replaced() {
        assert_eq!(file("/bin/../bin/sh", &image()).unwrap(), None);
    }

    #[test]
    fn what_may_not_be_executed_on_the_host_may_not_in_the_lab() {
        let plain = write("plain", b"#!/bin/sh\n", 0o644);
        assert!(matches!(file(&plain, &image()), Err(ProgramFault::NotExecutable)));
        fs::remove_file(&plain).unwrap();
        assert!(matches!(file("/tmp/", &image()), Err(ProgramFault::NotExecutable)));
    }

    #[test]
    fn errors_name_owner_program_and_reason() {
        let missing = files(&plan("no/such", "sleep")).unwrap_err();
        assert_eq!(
            missing.to_string(),
            "task `t`: the program `no/such` cannot run in the lab: No such file or directory (os error 2) (build it \
             here first, and link with -static)"
        );
        let text = write("text", b"hello\n", 0o755);
        let foreign = files(&plan("sleep", &text)).unwrap_err();
        fs::remove_file(&text).unwrap();
        assert_eq!(
            foreign.to_string(),
            format!(
                "background load `b`: the program `{text}` cannot run in the lab: it is neither a program for x86-64 \
                 (link with -static) nor a script"
            )
        );
    }
}
