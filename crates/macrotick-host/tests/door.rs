//! Only this crate writes the files of this host. Other crates write only files of their own.

use std::collections::BTreeMap;

use macrotick_fixtures::{repository, source, sources, Source};

/// The calls that write, make or remove a file, or change its owner.
const WRITES: [&str; 48] = [
    "std::fs::*",
    "std::fs::DirBuilder",
    "std::fs::File::create",
    "std::fs::File::create_new",
    "std::fs::File::options",
    "std::fs::OpenOptions",
    "std::fs::copy",
    "std::fs::create_dir",
    "std::fs::create_dir_all",
    "std::fs::hard_link",
    "std::fs::remove_dir",
    "std::fs::remove_dir_all",
    "std::fs::remove_file",
    "std::fs::rename",
    "std::fs::set_permissions",
    "std::fs::soft_link",
    "std::fs::write",
    "std::os::unix::fs::chown",
    "std::os::unix::fs::fchown",
    "std::os::unix::fs::lchown",
    "std::os::unix::fs::mkfifo",
    "std::os::unix::fs::symlink",
    "std::os::unix::net::UnixDatagram::bind",
    "std::os::unix::net::UnixDatagram::bind_addr",
    "std::os::unix::net::UnixListener::bind",
    "std::os::unix::net::UnixListener::bind_addr",
    "libc::bind",
    "libc::chmod",
    "libc::chown",
    "libc::creat",
    "libc::fchmod",
    "libc::fchmodat",
    "libc::fchown",
    "libc::fopen",
    "libc::lchown",
    "libc::link",
    "libc::mkdir",
    "libc::mkfifo",
    "libc::mknod",
    "libc::mount",
    "libc::open",
    "libc::openat",
    "libc::rename",
    "libc::rmdir",
    "libc::setxattr",
    "libc::symlink",
    "libc::umount2",
    "libc::unlink",
];
/// Methods of an open file that do the same.
const METHODS: [&str; 1] = ["set_permissions"];

/// The exceptions: sources that write files of their own, and which files these are.
const OTHERS: [(&str, &str); 18] = [
    ("macrotick/src/verbs/man.rs", "the manual pages, where the user wants them"),
    ("macrotick/src/verbs/mod.rs", "the folder that the user names for what a verb writes"),
    ("macrotick/src/verbs/recording.rs", "the folder of recorded misses"),
    ("macrotick/src/verbs/report.rs", "the output of tasks that a run before has left in that folder"),
    ("macrotick-node/src/workload/processes.rs", "what the load of system calls writes"),
    ("macrotick-node/src/workload/engine.rs", "a container's bundle, in the folder of a run"),
    ("macrotick-hook/src/install.rs", "podman's own folder of hooks"),
    ("macrotick-hook/src/report.rs", "a runtime's log"),
    ("macrotick-bench/src/isolation/victim.rs", "in a guest: what the attacker owns"),
    ("macrotick-bench/src/kit/bench.rs", "the folders of results"),
    ("macrotick-bench/src/kit/disk.rs", "in a guest: a disk to write to"),
    ("macrotick-bench/src/kit/loads.rs", "in a guest: what a load writes"),
    ("macrotick-bench/src/publication.rs", "the logs of experiments that run at the same time"),
    ("macrotick-bench/src/network/pair.rs", "in a guest: no file, but the address of a packet socket"),
    ("macrotick-bench/src/network/slots_guest.rs", "in a guest: the capture of the slots"),
    ("macrotick-bench/src/udp/hub.rs", "in a guest: no file, but a view of one namespace's network cards"),
    ("macrotick-bench/src/udp/stress.rs", "in a guest: what a load writes"),
    ("macrotick-bench/src/plan/memory.rs", "its own largest resident set, which begins again"),
];

/// Returns the ways in which a source writes files.
fn writes(source: &Source) -> Vec<&str> {
    let methods = METHODS.into_iter().filter(|method| source.methods.contains(*method));
    source.named(&WRITES).map(String::as_str).chain(methods).collect()
}

#[test]
fn other_crates_write_no_file_of_the_host() {
    let (mut found, mut count) = (BTreeMap::new(), 0);
    for name in [
        "macrotick-node",
        "macrotick-hook",
        "macrotick-measure",
        "macrotick-reserve",
        "macrotick-grant",
        "macrotick-bench",
        "macrotick",
    ] {
        for root in ["lib.rs", "main.rs"].map(|root| repository(&format!("crates/{name}/src/{root}"))) {
            for source in root.is_file().then(|| sources(&root)).into_iter().flatten() {
                let file = source.file.strip_prefix(repository("crates")).expect("a file of ours");
                let ways = writes(&source);
                found.extend((!ways.is_empty()).then(|| (file.to_str().expect("UTF-8").to_owned(), ways.join(", "))));
                count += 1;
            }
        }
    }
    assert!(count > 100, "only {count} sources");
    for (file, _) in OTHERS {
        assert!(found.remove(file).is_some(), "{file} writes nothing: it is no exception");
    }
    assert!(found.is_empty(), "they write files: {found:#?}");
}

#[test]
fn every_way_to_write_is_seen() {
    for text in [
        "fn f() { std::fs::write(a, b); }",
        "use std::fs; fn f() { fs::rename(a, b); }",
        "use std::fs as files; fn f() { files::remove_file(a); }",
        "use std::fs::{self, File}; fn f() { File::options().append(true).open(a); }",
        "use std::fs::remove_dir_all as gone; fn f() { gone(a); }",
        "use std::fs::*;",
        "use std::os::unix::net::UnixListener; fn f() { UnixListener::bind(a); }",
        "fn f() { assert!(file.set_permissions(mode).is_ok()); }",
        "fn f() { unsafe { libc::chmod(a, b) }; }",
        "#[cfg(test)] mod tests {} fn f() { std::fs::create_dir(a); }",
        "mod a { fn f() { std::fs::OpenOptions::new(); } }",
    ] {
        assert!(!writes(&source(text)).is_empty(), "{text}");
    }
    for text in [
        "use std::fs; fn f() { fs::read(a); fs::File::open(b); } fn write() {}",
        "use macrotick_host::file; fn f() { file::write(a, b); }",
        "#[cfg(test)] mod tests { fn f() { std::fs::write(a, b); } }",
        "fn f() { UdpSocket::bind(a); }",
    ] {
        assert_eq!(writes(&source(text)), [""; 0], "{text}");
    }
}
