//! The files of the host that a system needs in the lab: its programs and its files.
//!
//! A program without a slash is looked up in the guest's `PATH`; a path names a file of the host.

use macrotick_model::{Load, System, Workload};

use crate::error::LabError;
use crate::guest_files::GuestFiles;
use crate::image::ImageKind;

/// Returns the files for the guest: absolute path and content.
pub(crate) fn of(system: &System) -> Result<Vec<(String, Vec<u8>)>, LabError> {
    let programs = programs(system);
    if programs.is_empty() && system.lab.files.is_empty() {
        return Ok(Vec::new());
    }
    let mut files = GuestFiles::for_image(ImageKind::Small)?;
    for (owner, program) in programs {
        let failed = |reason| LabError::Program { owner, program: program.into(), reason: Box::new(reason) };
        files.add_program(program).map_err(failed)?;
    }
    add(&mut files, &system.lab.files)?;
    Ok(files.into_files())
}

/// Returns files for a guest with an image, without a plan: absolute path and content.
pub fn taken_along(patterns: &[String], image: ImageKind) -> Result<Vec<(String, Vec<u8>)>, LabError> {
    if patterns.is_empty() {
        return Ok(Vec::new());
    }
    let mut files = GuestFiles::for_image(image)?;
    add(&mut files, patterns)?;
    Ok(files.into_files())
}

fn add(files: &mut GuestFiles, patterns: &[String]) -> Result<(), LabError> {
    patterns.iter().try_for_each(|pattern| {
        let failed = |reason| LabError::GuestFile { pattern: pattern.clone(), reason: Box::new(reason) };
        files.add(pattern).map_err(failed)
    })
}

/// Returns the programs that have a path, each with its task or process.
fn programs(system: &System) -> Vec<(String, &str)> {
    let mut commands = Vec::new();
    for task in &system.tasks {
        if let Workload::Program(program) = &task.run {
            commands.push((format!("task `{}`", task.name), &program.command));
        }
    }
    for process in system.groups.iter().flat_map(|group| &group.run).chain(&system.load) {
        if let Load::Program(program) = &process.run {
            commands.push((format!("process `{}`", process.name), &program.command));
        }
    }
    let programs = commands.into_iter().filter_map(|(owner, command)| Some((owner, command.first()?.as_str())));
    programs.filter(|(_, program)| program.contains('/')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(workload: &str, load: &str, file: &str) -> System {
        let text = format!(
            "system: s\ntasks:\n  - {{name: a, period: 1ms, wcet: 100us}}\n  - {{name: t, period: 1ms, wcet: 100us, \
             run: {{program: [{workload}, -x/y]}}}}\nload:\n  - {{name: b, program: [{load}]}}\n\
             lab: {{files: [{file}]}}\n"
        );
        System::parse(&text, "s.yaml").unwrap()
    }

    #[test]
    fn only_programs_with_a_path_are_taken() {
        assert_eq!(programs(&system("tasks/t", "sleep", "")), [("task `t`".to_owned(), "tasks/t")]);
    }

    #[test]
    fn files_are_taken_without_programs() {
        let taken = of(&system("sleep", "sleep", "/etc/passwd")).unwrap();
        assert_eq!(taken.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(), ["/etc/passwd"]);
    }

    #[test]
    fn errors_name_owner_program_and_reason() {
        let fault = |workload, load, file| of(&system(workload, load, file)).unwrap_err().to_string();
        assert_eq!(
            fault("no/such", "sleep", ""),
            "task `t`: the program `no/such` cannot run in the lab: No such file or directory (os error 2)"
        );
        assert_eq!(
            fault("sleep", "/etc/passwd", ""),
            "process `b`: the program `/etc/passwd` cannot run in the lab: it is not an executable file"
        );
        assert_eq!(
            fault("sleep", "sleep", "no/such"),
            "files: `no/such` cannot be taken into the lab: this host has no such file"
        );
    }
}
