//! The files that a guest needs to execute a file: no others, shared libraries, or an interpreter.

/// The dependencies of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needs {
    /// None: it is linked statically.
    Nothing,
    /// Its loader and shared libraries ([`crate::libraries`]).
    Libraries,
    /// The program that its first line names.
    Interpreter(Interpreter),
}

/// The first line of a script, as the kernel reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpreter {
    /// The program.
    pub path: String,
    /// The name that `env` looks up in its `PATH`, if the program is `env`.
    pub command: Option<String>,
}

/// The file is neither a program for x86-64 nor a script: another format, another processor, or damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is neither a program for x86-64 nor a script")]
pub struct Foreign;

/// Returns the dependencies of a file with this content.
pub fn needs(content: &[u8]) -> Result<Needs, Foreign> {
    if let Some(rest) = content.strip_prefix(b"#!") {
        return Ok(Needs::Interpreter(interpreter(rest)));
    }
    let elf = Elf::decode(content).ok_or(Foreign)?;
    Ok(if elf.is_dynamic().ok_or(Foreign)? { Needs::Libraries } else { Needs::Nothing })
}

fn interpreter(rest: &[u8]) -> Interpreter {
    let line = rest.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_whitespace();
    let path = words.next().unwrap_or_default().to_owned();
    let command = words.next().filter(|_| path.ends_with("/env")).map(str::to_owned);
    Interpreter { path, command }
}

/// An ELF file for x86-64: a program or a shared library. Layout: the 64-bit forms of elf(5), in little-endian order.
struct Elf<'a> {
    bytes: &'a [u8],
    headers_at: usize,
    header_size: usize,
    header_count: usize,
}

/// Magic number, 64 bits, little-endian.
const IDENTITY: &[u8] = b"\x7fELF\x02\x01";
/// `e_type`: a program at fixed addresses; a program or a library at any address.
const LOADABLE: [u16; 2] = [2, 3];
/// `e_machine`: x86-64.
const X86_64: u16 = 62;
/// `p_type` of the headers for the dynamic loader: its work, and its path.
const FOR_THE_LOADER: [u32; 2] = [2, 3];

impl Elf<'_> {
    fn decode(bytes: &[u8]) -> Option<Elf<'_>> {
        let fits = bytes.starts_with(IDENTITY) && LOADABLE.contains(&half(bytes, 16)?) && half(bytes, 18)? == X86_64;
        fits.then_some(())?;
        let headers_at = xword(bytes, 32)?;
        Some(Elf { bytes, headers_at, header_size: half(bytes, 54)?.into(), header_count: half(bytes, 56)?.into() })
    }

    /// Whether the file needs a dynamic loader; `None`: it is cut short.
    fn is_dynamic(&self) -> Option<bool> {
        for index in 0..self.header_count {
            let at = self.headers_at.checked_add(index * self.header_size)?;
            if FOR_THE_LOADER.contains(&word(self.bytes, at)?) {
                return self.segment(at).map(|_| true);
            }
        }
        Some(false)
    }

    /// Returns the segment of a program header.
    fn segment(&self, header_at: usize) -> Option<&[u8]> {
        let (from, length) = (xword(self.bytes, header_at + 8)?, xword(self.bytes, header_at + 32)?);
        self.bytes.get(from..from.checked_add(length)?)
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

fn xword(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u64::from_le_bytes(bytes.get(at..)?.first_chunk().copied()?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: &[u8] = b"/lib64/ld-linux-x86-64.so.2\0";

    /// Returns a file with one header of a type; the header's segment is the end of the file.
    fn elf(kind: u16, machine: u16, header_type: u32) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, IDENTITY);
        put(16, &kind.to_le_bytes());
        put(18, &machine.to_le_bytes());
        put(32, &64u64.to_le_bytes());
        put(54, &56u16.to_le_bytes());
        put(56, &1u16.to_le_bytes());
        put(64, &header_type.to_le_bytes());
        put(64 + 8, &120u64.to_le_bytes());
        put(64 + 32, &(DATA.len() as u64).to_le_bytes());
        [&bytes, DATA].concat()
    }

    #[test]
    fn static_programs_need_nothing() {
        const LOAD: u32 = 1;
        assert_eq!(needs(&elf(2, X86_64, LOAD)), Ok(Needs::Nothing));
        assert_eq!(needs(&elf(3, X86_64, LOAD)), Ok(Needs::Nothing), "position-independent");
        assert_eq!(needs(&elf(1, X86_64, LOAD)), Err(Foreign), "an object file");
        assert_eq!(needs(&elf(2, 183, LOAD)), Err(Foreign), "another processor");
    }

    #[test]
    fn dynamic_programs_and_libraries_need_libraries() {
        FOR_THE_LOADER.iter().for_each(|&header| assert_eq!(needs(&elf(3, X86_64, header)), Ok(Needs::Libraries)));
    }

    #[test]
    fn no_cut_of_a_program_is_fit_or_a_panic() {
        let whole = elf(3, X86_64, FOR_THE_LOADER[1]);
        (0..whole.len()).for_each(|length| assert!(needs(&whole[..length]).is_err(), "{length}"));
        let mut wild = whole;
        wild[32..40].fill(0xff);
        assert_eq!(needs(&wild), Err(Foreign));
        assert_eq!(needs(b"text\n"), Err(Foreign));
    }

    #[test]
    fn scripts_need_what_their_first_line_names() {
        let interpreter = |path: &str, command: Option<&str>| {
            Ok(Needs::Interpreter(Interpreter { path: path.into(), command: command.map(str::to_owned) }))
        };
        assert_eq!(needs(b"#!/bin/sh\nexit\n"), interpreter("/bin/sh", None));
        assert_eq!(needs(b"#! /usr/bin/awk -f\n"), interpreter("/usr/bin/awk", None));
        assert_eq!(needs(b"#!/usr/bin/env python3\n"), interpreter("/usr/bin/env", Some("python3")));
        assert_eq!(needs(b"#!"), interpreter("", None));
    }
}
