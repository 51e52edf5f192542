//! Containers through the engines' command lines: create, start, remove.
//!
//! An engine creates and starts a container in two steps, as in the OCI runtime specification. After the first step the
//! container's first process is in its control group, and waits to execute the program.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use macrotick_host::lock::Lock;
use macrotick_host::sys::Tid;
use macrotick_host::{cgroup, HostFailure};
use macrotick_model::{ContainerLoad, ContainerRoot, Engine};
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};

/// The directory of the runtimes' bundles. A bundle lives as long as its container.
const BUNDLES: &str = "/run";
/// The prefix of the bundles, and of the engines' names of containers.
const PREFIX: &str = "macrotick-";
/// The suffix of a container that replaces another one of the same name. A name in a description has no capital
/// letters.
const SUCCESSOR: &str = "-B";
/// The highest real-time priority that a container may request. It also gets unlimited locked memory. A program needs
/// both for SCHED_FIFO, SCHED_DS and mlockall(2) without a privilege.
const RTPRIO: u64 = 99;

/// The place of a container.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Site {
    /// The control group above its own.
    pub parent: PathBuf,
    /// Whether the parent is made for this container only.
    pub own_parent: bool,
    /// The file of its network namespace. `None`: a namespace of its own, without an interface.
    pub network: Option<PathBuf>,
}

impl Site {
    /// Adds a suffix to the name of the parent, if it is made for this container only.
    fn with_own(&self, suffix: &str) -> Site {
        let mut parent = self.parent.clone().into_os_string();
        parent.push(if self.own_parent { suffix } else { "" });
        Site { parent: parent.into(), ..self.clone() }
    }
}

/// The reason why an engine failed. The engine writes details to its standard error.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The engine cannot be executed.
    #[error("cannot execute {engine}: {source}")]
    Execute {
        /// The name of the engine.
        engine: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// The engine failed.
    #[error("{engine} failed to {what}")]
    Refused {
        /// The name of the engine.
        engine: &'static str,
        /// The requested action.
        what: &'static str,
    },
    /// The engine's configuration of a container lacks an expected key.
    #[error("cannot understand the configuration that {0} writes")]
    Config(&'static str),
    /// The engine does not report the container's first process.
    #[error("{0} does not report the container's first process")]
    NoProcess(&'static str),
    /// The lock of the container.
    #[error(transparent)]
    Lock(#[from] HostFailure),
    /// Two containers of this name exist, and their keepers are alive.
    #[error("two other containers of its name exist")]
    Kept,
    /// The bundle cannot be made.
    #[error("cannot write {}: {source}", path.display())]
    Bundle {
        /// The file of the bundle.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// A container that was created. Dropping it removes it, with all processes in it.
pub struct Container {
    engine: Engine,
    id: String,
    site: Site,
    bundle: PathBuf,
    /// The lock on the id: no other keeper has a container of this id meanwhile.
    _kept: Option<Lock>,
}

impl Container {
    /// Creates a container, and returns its first process. Removes a container of this name that has no keeper. A
    /// container with a keeper stays; the new one gets the other id and replaces it later.
    pub fn create(name: &str, load: &ContainerLoad, site: &Site) -> Result<(Container, Tid), EngineError> {
        let mut free = Vec::new();
        for suffix in ["", SUCCESSOR] {
            let id = format!("{PREFIX}{name}{suffix}");
            let bundle = Path::new(BUNDLES).join(&id);
            match Lock::take(Some(&lock_of(&bundle))) {
                Ok(kept) => {
                    let (site, engine) = (site.with_own(suffix), load.engine);
                    free.push(Container { engine, id, site, bundle, _kept: Some(kept) });
                }
                Err(HostFailure::Busy { .. }) => {}
                Err(fault) => return Err(fault.into()),
            }
        }
        // The unneeded ones are dropped, and so removed.
        let container = free.into_iter().next().ok_or(EngineError::Kept)?;
        container.remove();
        let process = match load.engine {
            Engine::Podman => container.create_by_podman(load),
            Engine::Crun | Engine::Runc => container.create_by_runtime(load),
        }?;
        Ok((container, process))
    }

    /// Starts the program.
    pub fn start(&self) -> Result<(), EngineError> {
        self.run("start the container", self.command().args(["start", &self.id]))
    }

    fn create_by_podman(&self, load: &ContainerLoad) -> Result<Tid, EngineError> {
        let mut create = self.command();
        create.args(["create", "--name", &self.id, "--pull", "never", "--read-only", "--log-driver", "none"]);
        create.args(["--ulimit", &format!("rtprio={RTPRIO}"), "--ulimit", "memlock=-1", "--cgroup-parent"]);
        create.arg(below_root(&self.site.parent)).arg("--network").arg(match &self.site.network {
            Some(file) => format!("ns:{}", file.display()),
            None => "none".into(),
        });
        let program = load.program.as_ref();
        program.iter().flat_map(|program| &program.env).for_each(|variable| _ = create.args(["--env", variable]));
        program
            .iter()
            .filter_map(|program| program.directory.as_ref())
            .for_each(|at| _ = create.args(["--workdir", at]));
        program.iter().filter_map(|program| program.user.as_ref()).for_each(|user| {
            let number = user.parse::<u32>().map(|number| format!("{number}:{number}"));
            create.args(["--user", number.as_ref().unwrap_or(user)]);
        });
        match &load.root {
            ContainerRoot::Rootfs(path) => create.args(["--rootfs", path]),
            ContainerRoot::Image(name) => create.arg(name),
        };
        self.run("create the container", create.args(program.iter().flat_map(|program| &program.command)))?;
        self.run("prepare the container", self.command().args(["init", &self.id]))?;
        let told = self.command().args(["inspect", "--format", "{{.State.Pid}}", &self.id]).output();
        let told = told.map_err(|source| self.unexecuted(source))?;
        self.process(&String::from_utf8_lossy(&told.stdout))
    }

    fn create_by_runtime(&self, load: &ContainerLoad) -> Result<Tid, EngineError> {
        let (config, process) = (self.bundle.join("config.json"), self.bundle.join("pid"));
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| EngineError::Bundle { path, source }
        };
        fs::create_dir(&self.bundle).map_err(failed(&self.bundle))?;
        self.run("write a configuration", self.command().arg("spec").current_dir(&self.bundle))?;
        let text = fs::read_to_string(&config).map_err(failed(&config))?;
        let text = self.configure(&text, load).ok_or(EngineError::Config(self.engine.name()))?;
        fs::write(&config, text).map_err(failed(&config))?;
        let mut create = self.command();
        create.arg("create").arg("--bundle").arg(&self.bundle).arg("--pid-file").arg(&process).arg(&self.id);
        self.run("create the container", &mut create)?;
        self.process(&fs::read_to_string(&process).unwrap_or_default())
    }

    /// Returns the engine's own configuration with the properties of this container.
    fn configure(&self, text: &str, load: &ContainerLoad) -> Option<String> {
        let mut config: Value = serde_json::from_str(text).ok()?;
        let ContainerRoot::Rootfs(rootfs) = &load.root else { return None };
        config["root"] = json!({ "path": rootfs, "readonly": true });
        config["linux"].as_object_mut()?.insert("cgroupsPath".into(), below_root(&self.own_group()).into());
        let process = config["process"].as_object_mut()?;
        process.insert("terminal".into(), false.into());
        let program = load.program.as_ref()?;
        process.insert("args".into(), json!(program.command));
        let own = process.get("env").and_then(Value::as_array).cloned().unwrap_or_default();
        process
            .insert("env".into(), own.into_iter().chain(program.env.iter().map(|variable| json!(variable))).collect());
        program.directory.iter().for_each(|at| _ = process.insert("cwd".into(), json!(at)));
        if let Some(number) = program.user.as_ref().and_then(|user| user.parse::<u32>().ok()) {
            process.insert("user".into(), json!({ "uid": number, "gid": number }));
        }
        let limit = |name: &str, limit: u64| json!({ "type": name, "soft": limit, "hard": limit });
        process.insert("rlimits".into(), json!([limit("RLIMIT_RTPRIO", RTPRIO), limit("RLIMIT_MEMLOCK", u64::MAX)]));
        if let Some(file) = &self.site.network {
            let spaces = config["linux"]["namespaces"].as_array_mut()?;
            let network = spaces.iter_mut().find(|space| space["type"] == "network")?;
            network.as_object_mut()?.insert("path".into(), json!(file));
        }
        Some(config.to_string())
    }

    /// Returns the control group for a runtime. Podman chooses the name itself.
    fn own_group(&self) -> PathBuf {
        self.site.parent.join(&self.id)
    }

    /// Removes the container. Usually there is nothing to remove, and no reaction to a failure is possible.
    fn remove(&self) {
        let mut remove = self.command();
        match self.engine {
            Engine::Podman => remove.args(["rm", "--force", "--ignore", "--time", "0", &self.id]),
            Engine::Crun | Engine::Runc => remove.args(["delete", "--force", &self.id]),
        };
        let _ = remove.stdout(Stdio::null()).stderr(Stdio::null()).status();
        let _ = fs::remove_dir_all(&self.bundle);
        if self.site.own_parent && self.site.parent.is_dir() {
            cgroup::remove(&self.site.parent);
        }
    }

    /// Returns a command of the engine. Its standard output and error are those of this process, and so are the
    /// container's.
    fn command(&self) -> Command {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(self.engine.name());
        if self.engine == Engine::Podman {
            command.args(["--cgroup-manager", "cgroupfs"]);
        }
        // The engine has its own process group: a signal that ends this process must not interrupt the engine.
        command.stdin(Stdio::null()).process_group(0);
        command
    }

    fn run(&self, what: &'static str, command: &mut Command) -> Result<(), EngineError> {
        // Podman writes the container's long id there.
        if self.engine == Engine::Podman {
            command.stdout(Stdio::null());
        }
        match command.status().map_err(|source| self.unexecuted(source))?.success() {
            true => Ok(()),
            false => Err(EngineError::Refused { engine: self.engine.name(), what }),
        }
    }

    fn unexecuted(&self, source: io::Error) -> EngineError {
        EngineError::Execute { engine: self.engine.name(), source }
    }

    fn process(&self, text: &str) -> Result<Tid, EngineError> {
        let process = text.trim().parse().ok().filter(|process| *process > 0);
        process.ok_or(EngineError::NoProcess(self.engine.name()))
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        self.remove();
        // No reaction to a failure is possible. The next owner of the name takes the file.
        let _ = fs::remove_file(lock_of(&self.bundle));
    }
}

/// Returns the lock file. It is beside the bundle, because the bundle comes and goes.
fn lock_of(bundle: &Path) -> PathBuf {
    let mut path = bundle.as_os_str().to_owned();
    path.push(".lock");
    path.into()
}

/// Returns a path as runtimes expect it: relative to the root of the hierarchy.
fn below_root(group: &Path) -> String {
    format!("/{}", group.strip_prefix(cgroup::ROOT).unwrap_or(group).display())
}

#[cfg(test)]
mod tests {
    use macrotick_model::Program;

    use super::*;

    /// `runc spec` and `crun spec` write this form.
    const SPEC: &str = r#"{"process": {"terminal": true, "args": ["sh"], "rlimits": [{"type": "RLIMIT_NOFILE"}]},
        "root": {"path": "rootfs", "readonly": true},
        "linux": {"namespaces": [{"type": "pid"}, {"type": "network"}]}}"#;

    fn container(network: Option<&str>) -> std::mem::ManuallyDrop<Container> {
        let network = network.map(PathBuf::from);
        let site = Site { parent: "/sys/fs/cgroup/macrotick-vision".into(), own_parent: false, network };
        let (id, bundle) = ("macrotick-filter".into(), "/run/macrotick-filter".into());
        std::mem::ManuallyDrop::new(Container { engine: Engine::Crun, id, site, bundle, _kept: None })
    }

    #[test]
    fn a_configuration_says_what_the_container_is() {
        let root = ContainerRoot::Rootfs("/srv/web".into());
        let (env, directory) = (vec!["LOG=warn".into()], Some("/data".into()));
        let program = Program { env, directory, user: Some("1000".into()), ..Program::new(["web", "-x"]) };
        let load = ContainerLoad { root, program: Some(program), engine: Engine::Crun };
        let text = container(Some("/run/netns/macrotick-left")).configure(SPEC, &load).unwrap();
        let config: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(config["root"], json!({ "path": "/srv/web", "readonly": true }));
        assert_eq!(config["process"]["args"], json!(["web", "-x"]));
        assert_eq!(config["process"]["env"].as_array().and_then(|env| env.last()), Some(&json!("LOG=warn")));
        assert_eq!(config["process"]["cwd"], "/data");
        assert_eq!(config["process"]["user"], json!({ "uid": 1000, "gid": 1000 }));
        assert_eq!(config["process"]["terminal"], false);
        assert_eq!(config["process"]["rlimits"][0], json!({ "type": "RLIMIT_RTPRIO", "soft": 99, "hard": 99 }));
        assert_eq!(config["linux"]["cgroupsPath"], "/macrotick-vision/macrotick-filter");
        assert_eq!(config["linux"]["namespaces"][1]["path"], "/run/netns/macrotick-left");
        assert_eq!(container(None).configure("{}", &load), None);
    }
}
