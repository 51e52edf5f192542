//! The packages: what they contain, the units and rules in them, the completions, and their way through a host.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use macrotick_fixtures::{hold, read_tree, repository};

/// Makes a folder for one test, below the target folder.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages").join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a command that must succeed; returns its output.
fn done(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert!(status.success(), "{command:?}: {status}\n{}{}", text(&stdout), text(&stderr));
    text(&stdout)
}

/// Installs all files of the packages below a folder, as `debian/rules` does, with the program of this test.
fn install(name: &str) -> PathBuf {
    let folder = folder(name);
    let mut make = Command::new("make");
    make.arg("-C").arg(repository("packaging")).args(["--silent", "install"]).env_remove("MAKEFLAGS");
    make.arg(format!("DESTDIR={}", folder.display())).arg(concat!("MACROTICK=", env!("CARGO_BIN_EXE_macrotick")));
    done(&mut make);
    folder
}

/// Returns all paths below a folder, relative to it and in order, without the folder itself. It follows no links, and
/// enters no other file system.
fn below(root: &Path) -> BTreeSet<PathBuf> {
    let device = fs::metadata(root).unwrap().dev();
    let (mut found, mut folders) = (BTreeSet::new(), vec![root.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            if meta.is_dir() && meta.dev() == device {
                folders.push(path.clone());
            }
            found.insert(path.strip_prefix(root).unwrap().to_path_buf());
        }
    }
    found
}

/// The packages, each with the beginnings of the paths that it takes.
fn packages() -> Vec<(&'static str, Vec<String>)> {
    let entries = |name| {
        let list = read_tree(&format!("packaging/debian/{name}.install"));
        list.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    ["macrotick", "libmacrotick-dev"].map(|name| (name, entries(name))).into()
}

/// `MACROTICK_BLESS=1` writes the list again.
#[test]
fn each_file_belongs_to_one_package() {
    let installed = install("contents");
    let mut list = String::new();
    let paths = below(&installed);
    for (package, entries) in packages() {
        writeln!(list, "{package}").unwrap();
        for path in paths.iter().filter(|path| entries.iter().any(|entry| path.starts_with(entry))) {
            let file = installed.join(path);
            let meta = fs::symlink_metadata(&file).unwrap();
            let is_empty = meta.is_dir() && fs::read_dir(&file).unwrap().next().is_none();
            if meta.is_file() || is_empty {
                writeln!(list, "  {:04o} /{}", meta.mode() & 0o7777, path.display()).unwrap();
            }
        }
    }
    let listed = |path: &&PathBuf| list.matches(&format!(" /{}\n", path.display())).count();
    for path in paths.iter().filter(|path| installed.join(path).is_file()) {
        assert_eq!(listed(&path), 1, "{} belongs to none or several packages", path.display());
    }
    hold("crates/macrotick/tests/packages/contents.txt", &list);
}

#[test]
fn programs_compile_with_the_installed_headers() {
    let installed = install("headers");
    let pc = fs::read_to_string(installed.join("usr/share/pkgconfig/macrotick.pc")).unwrap();
    assert!(pc.contains(&format!("\nVersion: {}\n", env!("CARGO_PKG_VERSION"))), "{pc}");
    assert!(pc.contains("\nprefix=/usr\n") || pc.starts_with("prefix=/usr\n"), "{pc}");
    let path = pc.lines().find_map(|line| line.strip_prefix("includedir=${prefix}/")).expect("a directory of headers");
    let include = installed.join("usr").join(path);
    let doc = installed.join("usr/share/doc/libmacrotick-dev");
    let cases = [("cc", "examples/minimal.c"), ("c++", "examples/filter.cpp"), ("cc", "bindings/macrotick.c")];
    for (compiler, source) in cases {
        done(Command::new(compiler).args(["-fsyntax-only", "-Werror", "-I"]).arg(&include).arg(doc.join(source)));
    }
}

/// The same sources give the same wheel. The module finds its library, which finds no runner here.
#[test]
fn the_wheel_of_python_has_its_library() {
    let folder = folder("wheel");
    let build = |name: &str| {
        let out = folder.join(name);
        fs::create_dir(&out).unwrap();
        let script = "import sys; sys.dont_write_bytecode = True; sys.path.insert(0, sys.argv[1]); import backend\n\
                      print(backend.build_wheel(sys.argv[2]))";
        let python = repository("bindings/python");
        let name = done(Command::new("python3").args(["-c", script]).arg(python).arg(&out));
        out.join(name.trim())
    };
    let [first, second] = ["first", "second"].map(build);
    assert_eq!(
        first.file_name().unwrap().to_str().unwrap(),
        concat!("macrotick-", env!("CARGO_PKG_VERSION"), "-py3-none-linux_x86_64.whl")
    );
    assert_eq!(fs::read(&first).unwrap(), fs::read(&second).unwrap());
    let place = folder.join("place");
    done(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(&first).arg(&place));
    let script = "import macrotick\ntry: macrotick.Task('x')\nexcept OSError as error: print(error.errno)";
    let told = done(Command::new("python3").args(["-c", script]).current_dir(&place).env_remove("MACROTICK_TASK"));
    assert_eq!(told, "2\n");
}

#[test]
fn podman_calls_the_installed_program() {
    let installed = install("hook");
    let file = fs::read_to_string(installed.join("usr/share/containers/oci/hooks.d/macrotick.json")).unwrap();
    let file: serde_json::Value = serde_json::from_str(&file).unwrap();
    assert_eq!(file["hook"]["path"], "/usr/bin/macrotick");
    let refused = Command::new(env!("CARGO_BIN_EXE_macrotick"))
        .args(["hook", "install", "--program", "bin/macrotick", "--directory"])
        .arg(&installed)
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("does not begin with `/`"), "{}", text(&refused.stderr));
}

/// Where there is no systemd, nothing can judge the units.
#[test]
fn systemd_accepts_the_units() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        eprintln!("no systemd-analyze: the units are not verified");
        return;
    }
    let installed = install("units");
    let services = ["macrotick@x.service", "macrotick-soak@x.service", "macrotick-doctor@x.service"];
    for unit in services.into_iter().chain(["macrotick-grant@x.service", "macrotick-grant.socket"]) {
        // Paths in units are absolute. With a root of its own, systemd would miss the units that ours refer to.
        let unit = installed.join("usr/lib/systemd/system").join(unit);
        let template = unit.to_str().unwrap().replace("@x", "@");
        let text_of = fs::read_to_string(template).unwrap();
        assert!(text_of.contains("=/usr/bin/macrotick ") || unit.ends_with("macrotick-grant.socket"), "{text_of}");
        fs::write(&unit, text_of.replace("/usr/bin/macrotick", env!("CARGO_BIN_EXE_macrotick"))).unwrap();
        let Output { status, stdout, stderr } =
            Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&unit).output().unwrap();
        let told = [text(&stdout), text(&stderr)].concat();
        // systemd-analyze also reports faults of the host's own units.
        let ours: Vec<&str> = told.lines().filter(|line| line.contains("macrotick")).collect();
        assert!(status.success() && ours.is_empty(), "{status}\n{told}");
    }
}

/// The commands in the units, and their options, are those of this program.
#[test]
fn the_program_knows_the_commands_of_the_units() {
    let folder = folder("commands");
    fs::write(folder.join("x.yaml"), "system: x\ntasks: 1\n").unwrap();
    let mut count = 0;
    for unit in ["macrotick@.service", "macrotick-soak@.service", "macrotick-doctor@.service"] {
        let unit = read_tree(&format!("packaging/systemd/{unit}"));
        for line in unit.lines().filter_map(|line| line.strip_prefix("Exec")?.split_once("=/usr/bin/macrotick ")) {
            let words = line.1.replace("/etc/macrotick/%i.yaml", "x.yaml");
            // A journal of steps would be undone.
            let words = words.replace("--undo", "--undo --help");
            let output = Command::new(env!("CARGO_BIN_EXE_macrotick"))
                .args(words.split_whitespace())
                .current_dir(&folder)
                .output()
                .unwrap();
            let errors = text(&output.stderr);
            let reads = errors.contains("x.yaml:2:") || text(&output.stdout).contains("Usage: macrotick doctor");
            assert!(reads && !errors.contains("unexpected argument"), "{words}: {errors}");
            count += 1;
        }
    }
    assert_eq!(count, 5);
}

/// The rule repeats the kernel's mode: it allows no user more, and none less.
#[test]
fn the_mode_of_the_device_is_that_of_the_kernel() {
    let rule = read_tree("packaging/udev/60-macrotick.rules");
    let device = read_tree("kernel/overlay/kernel/sched/macrotick/device.c");
    let mode = device.lines().find_map(|line| line.trim().strip_prefix(".mode\t= ")?.strip_suffix(',')).unwrap();
    let rule: Vec<&str> = rule.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(rule, [format!(r#"SUBSYSTEM=="misc", KERNEL=="macrotick", GROUP="macrotick", MODE="{mode}""#)]);
}

/// Settings of the whole host need a reason: SECURITY.md has it.
#[test]
fn each_offered_setting_of_the_host_is_explained() {
    let offered = read_tree("packaging/sysctl/60-macrotick.conf");
    let security = read_tree("SECURITY.md");
    let settings: Vec<&str> = offered.lines().filter_map(|line| Some(line.split_once(" = ")?.0)).collect();
    assert_eq!(settings.len(), 2, "{offered}");
    for setting in settings {
        assert!(security.contains(&format!("| `{setting}")), "SECURITY.md does not explain {setting}");
    }
}

/// A verb with its parents, such as `["hook", "run"]`.
type Verbs = Vec<String>;

fn help(verbs: &[String]) -> String {
    done(Command::new(env!("CARGO_BIN_EXE_macrotick")).args(verbs).arg("--help"))
}

/// Returns the verbs that a help lists, without `help` itself. Further lines of a text are indented more.
fn verbs_of(help: &str) -> Verbs {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let verbs = lines.filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    let verbs = verbs.filter_map(|line| line.split_whitespace().next()).filter(|verb| *verb != "help");
    verbs.map(str::to_owned).collect()
}

/// Returns the long options that a help lists.
fn options_of(help: &str) -> Verbs {
    let words = help.lines().filter(|line| line.trim_start().starts_with('-')).flat_map(str::split_whitespace);
    words.filter(|word| word.starts_with("--")).map(|word| word.trim_end_matches(',').to_owned()).collect()
}

/// Returns all verbs, with all that one may complete after them.
fn all_verbs() -> Vec<(Verbs, Verbs)> {
    let (mut all, mut open) = (Vec::new(), vec![Verbs::new()]);
    while let Some(verbs) = open.pop() {
        let help = help(&verbs);
        let below = verbs_of(&help);
        open.extend(below.iter().map(|verb| [verbs.as_slice(), std::slice::from_ref(verb)].concat()));
        all.push((verbs, [below, options_of(&help)].concat()));
    }
    all
}

/// Completes in bash itself, as after a press of the key.
#[test]
fn bash_completes_each_verb_and_option() {
    let folder = folder("bash");
    done(Command::new(env!("CARGO_BIN_EXE_macrotick")).arg("completions").arg(&folder));
    let verbs = all_verbs();
    assert!(verbs.len() > 25, "{verbs:?}");
    let mut script = format!(
        "source {}/macrotick.bash\n{}\n",
        folder.display(),
        r#"offer() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
            _macrotick macrotick "${@: -1}" "${@: -2:1}"; echo "${COMPREPLY[*]}"; }"#
    );
    for (verbs, _) in &verbs {
        writeln!(script, "offer macrotick {} ''", verbs.join(" ")).unwrap();
        writeln!(script, "offer macrotick {} --", verbs.join(" ")).unwrap();
    }
    let output = done(Command::new("bash").args(["-euc", &script]));
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines.len(), 2 * verbs.len(), "{output}");
    for ((verbs, wanted), lines) in verbs.iter().zip(lines.chunks(2)) {
        let offered: BTreeSet<&str> = lines.iter().flat_map(|line| line.split(' ')).collect();
        for word in wanted {
            assert!(offered.contains(word.as_str()), "macrotick {}: no {word} in {offered:?}", verbs.join(" "));
        }
        assert!(!offered.contains("completions") && !offered.contains("man"), "{offered:?}");
    }
}

/// These shells need not be installed here.
#[test]
fn zsh_and_fish_complete_each_verb() {
    let folder = folder("shells");
    done(Command::new(env!("CARGO_BIN_EXE_macrotick")).arg("completions").arg(&folder));
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let (zsh, fish) = (read("_macrotick"), read("macrotick.fish"));
    assert!(zsh.starts_with("#compdef macrotick\n"), "{zsh}");
    for (verbs, _) in all_verbs() {
        if let Some(verb) = verbs.last() {
            assert!(zsh.contains(&format!("\n({verb})\n")) || zsh.contains(&format!("'{verb}:")), "zsh: {verbs:?}");
            assert!(fish.contains(&format!(" -a \"{verb}\"")), "fish: {verbs:?}");
        }
    }
}

/// The scripts in `debian` are those of dpkg's names, and a shell reads them.
#[test]
fn the_scripts_of_the_packages_are_read_by_a_shell() {
    let scripts = ["packaging/deb", "debian/macrotick.postinst", "debian/macrotick.prerm", "debian/macrotick.postrm"];
    for script in scripts.map(|name| name.replace("debian/", "packaging/debian/")) {
        done(Command::new("sh").arg("-n").arg(repository(&script)));
    }
    assert!(fs::metadata(repository("packaging/deb")).unwrap().permissions().mode() & 0o111 != 0);
}

/// The version of the workspace, and a later one.
const VERSIONS: [&str; 2] = [env!("CARGO_PKG_VERSION"), concat!(env!("CARGO_PKG_VERSION"), "+later")];

/// Builds the packages of both versions below a folder, in one folder for each version.
fn build(folder: &Path) -> [PathBuf; 2] {
    VERSIONS.map(|version| {
        let directory = folder.join(version);
        done(Command::new(repository("packaging/deb")).arg(&directory).arg(version));
        directory
    })
}

fn packages_in(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|kind| kind == "deb")).collect();
    found.sort();
    found
}

/// Returns each path below a root with its kind, mode, owner, group, and content or target.
fn snapshot(root: &Path) -> BTreeMap<PathBuf, String> {
    let describe = |path: PathBuf| {
        let file = root.join(&path);
        let meta = fs::symlink_metadata(&file).unwrap();
        let mut hasher = DefaultHasher::new();
        if meta.is_file() {
            fs::read(&file).unwrap().hash(&mut hasher);
        } else if meta.is_symlink() {
            fs::read_link(&file).unwrap().hash(&mut hasher);
        }
        let text = format!("{:o} {}:{} {:x}", meta.mode(), meta.uid(), meta.gid(), hasher.finish());
        (path, text)
    };
    below(root).into_iter().map(describe).collect()
}

/// Notes that dpkg, apt and the programs for groups keep for themselves.
const NOTES: [&str; 12] = [
    "var/lib/dpkg/status",
    "var/lib/dpkg/status-old",
    "var/lib/dpkg/lock",
    "var/lib/dpkg/lock-frontend",
    "var/lib/dpkg/triggers",
    "var/lib/apt",
    "var/cache",
    "var/log",
    "etc/group-",
    "etc/gshadow-",
    "etc/.pwd.lock",
    "tmp",
];

/// Returns what differs between two snapshots, without [`NOTES`].
fn differences(before: &BTreeMap<PathBuf, String>, after: &BTreeMap<PathBuf, String>) -> Vec<String> {
    let paths: BTreeSet<&PathBuf> = before.keys().chain(after.keys()).collect();
    let differ = paths.into_iter().filter(|path| before.get(*path) != after.get(*path));
    let ours = differ.filter(|path| !NOTES.iter().any(|note| path.starts_with(note)));
    let text = |path: &PathBuf| format!("{}: {:?} became {:?}", path.display(), before.get(path), after.get(path));
    ours.map(text).collect()
}

/// Mounts what programs expect in a root, privately, and runs a script in it. A host's systemd, udev and Macrotick are
/// pretended there: the commands only log their calls.
const IN_ROOT: &str = r#"
root=$1 packages=$2 script=$3
mount --make-rprivate /
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/dev"
mknod -m 666 "$root/dev/null" c 1 3
mknod -m 666 "$root/dev/urandom" c 1 9
mknod -m 666 "$root/dev/macrotick" c 1 3
mount --bind "$packages" "$root/mnt"
mkdir -p "$root/run/systemd/system" "$root/run/pretended"
for command in systemctl udevadm macrotick; do
    printf '#!/bin/sh\necho "%s $*" >>/run/calls\n' $command >"$root/run/pretended/$command"
    chmod 755 "$root/run/pretended/$command"
done
export PATH=/run/pretended:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C DEBIAN_FRONTEND=noninteractive
exec chroot "$root" /bin/sh -euc "$script" sh
"#;

fn in_root(root: &Path, packages: &Path, script: &str) -> String {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "sh", "-euc", IN_ROOT, "sh"]).arg(root).arg(packages).arg(script);
    done(&mut command)
}

/// Functions of scripts. apt gives dpkg a PATH of its own. `calls` prints the calls since the last one, without those of other packages.
const FUNCTIONS: &str = r#"
apt() { apt-get --yes --quiet --no-install-recommends -o DPkg::Path="$PATH" "$@" >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }; }
calls() { echo "== $1"; grep macrotick /run/calls || true; : >/run/calls; }
: >/run/calls
"#;

/// Install, upgrade, remove and purge, in Debian 13.
#[test]
#[ignore = "needs root, the network and ./setup packages"]
fn full_packages_leave_a_host_as_they_found_it() {
    let folder = folder("debian");
    let directories = build(&folder.join("packages"));
    for directory in &directories {
        let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        let changes = entries.filter(|path| path.extension().is_some_and(|kind| kind == "changes"));
        let changes: Vec<PathBuf> = changes.collect();
        assert_eq!(changes.len(), 1, "{directory:?}");
        done(Command::new("lintian").args(["--fail-on", "error", "--allow-root"]).args(&changes));
    }
    let again = folder.join("again");
    done(Command::new(repository("packaging/deb")).arg(&again));
    for (one, other) in packages_in(&directories[0]).iter().zip(packages_in(&again)) {
        assert!(fs::read(one).unwrap() == fs::read(&other).unwrap(), "{} is not reproducible", one.display());
    }
    let root = folder.join("root");
    macrotick_lab::debian_root(&root, "trixie", &["systemd", "udev"]).unwrap_or_else(|error| panic!("{error}"));
    let before = snapshot(&root);

    let [first, second] = VERSIONS;
    let script = format!(
        r#"{FUNCTIONS}
apt install /mnt/{first}/*.deb
calls install
getent group macrotick >/dev/null; /usr/bin/macrotick --version
echo 'system: x' >/etc/macrotick/x.yaml
SYSTEMD_OFFLINE=1 /usr/bin/systemctl --quiet enable macrotick@x macrotick-doctor@x macrotick-soak@x
mkdir -p /var/lib/macrotick/soak-x
apt install /mnt/{second}/*.deb
calls upgrade
dpkg-query -W -f '${{Version}}\n' macrotick libmacrotick-dev
touch /run/macrotick-doctor.json
apt remove macrotick libmacrotick-dev
calls remove
ls /usr/bin/macrotick /usr/share/containers/oci/hooks.d/macrotick.json 2>/dev/null || echo removed
ls /etc/macrotick /etc/systemd/system/*/macrotick*
apt purge macrotick libmacrotick-dev
calls purge
getent group macrotick || echo no group
cat /etc/macrotick/x.yaml
rm -r /etc/macrotick"#
    );
    let told = in_root(&root, &folder.join("packages"), &script);
    let expected = format!(
        "== install\nudevadm trigger --action=change --subsystem-match=misc --sysname-match=macrotick\n\
         macrotick {first}\n\
         == upgrade\nudevadm trigger --action=change --subsystem-match=misc --sysname-match=macrotick\n\
         {second}\n{second}\n\
         == remove\nsystemctl stop macrotick@*.service macrotick-soak@*.service macrotick-doctor@*.service\nmacrotick stop\n\
         macrotick doctor --undo\nremoved\n\
         /etc/systemd/system/multi-user.target.wants/macrotick-doctor@x.service\n\
         /etc/systemd/system/multi-user.target.wants/macrotick-soak@x.service\n\
         /etc/systemd/system/multi-user.target.wants/macrotick@x.service\n\n/etc/macrotick:\nx.yaml\n\
         == purge\nno group\nsystem: x\n"
    );
    assert_eq!(told, expected);
    assert_eq!(differences(&before, &snapshot(&root)), Vec::<String>::new());

    let script = format!("{FUNCTIONS}\napt install /mnt/{second}/*.deb\napt purge macrotick libmacrotick-dev");
    in_root(&root, &folder.join("packages"), &script);
    assert_eq!(differences(&before, &snapshot(&root)), Vec::<String>::new());
    fs::remove_dir_all(&folder).unwrap();
}

/// Under systemd and the scheduling class.
#[test]
#[ignore = "needs the lab and ./setup packages"]
fn full_a_deployment_survives_an_upgrade() {
    let folder = folder("upgrade");
    let [first, second] = build(&folder).map(|directory| packages_in(&directory));
    let list = |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ");
    let script = format!(
        r#"
dpkg() {{ command dpkg "$@" >/tmp/log 2>&1 || cat /tmp/log; }}
jobs() {{ macrotick status --json | grep -o '"released": *[0-9]*' | grep -o '[0-9]*'; }}
dpkg -i {first}
for name in keep other; do
    printf 'system: %s\ntasks:\n  - {{name: %s, period: 10ms, wcet: 1ms, run: {{spin: 300us}}}}\n' $name $name >/etc/macrotick/$name.yaml
done
systemctl start macrotick@keep || journalctl -u macrotick@keep
main=$(systemctl show --value -p MainPID macrotick@keep)
sleep 0.3; before=$(jobs)
dpkg -i {second}
after=$(jobs)
echo "version $(command dpkg-query -W -f '${{Version}}' macrotick)"
[ "$main" = "$(systemctl show --value -p MainPID macrotick@keep)" ] && echo "same supervisor"
[ "$after" -gt "$before" ] && echo "jobs went on"
macrotick status >/dev/null && echo "no problem"
systemctl start macrotick@other 2>/dev/null || echo "a second deployment fails"
systemctl stop macrotick@other
macrotick status | grep -q 'deployment *keep' && echo "the first one stays"
systemctl reload macrotick@keep && echo "the new program changes it"
dpkg --remove macrotick
[ -e /usr/bin/macrotick ] || echo "no program"
kill -0 "$main" 2>/dev/null || echo "no supervisor"
ls /run/macrotick 2>/dev/null | grep -e json -e sock || echo "no state"
systemctl is-active macrotick@keep"#,
        first = list(&first),
        second = list(&second),
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_macrotick"));
    command.current_dir(repository("")).args(["lab", "exec", "--flavor", "engines"]);
    command.args(first.iter().chain(&second).flat_map(|path| ["--file".into(), path.clone().into_os_string()]));
    let output = command.args(["--", "/bin/bash", "-c", &script]).output().unwrap();
    let expected = format!(
        "version {}\nsame supervisor\njobs went on\nno problem\na second deployment fails\nthe first one stays\n\
         the new program changes it\nno program\nno supervisor\nno state\ninactive\n",
        VERSIONS[1]
    );
    assert!(text(&output.stdout).ends_with(&expected), "{}{}", text(&output.stdout), text(&output.stderr));
}
