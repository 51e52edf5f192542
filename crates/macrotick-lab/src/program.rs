//! What a guest can execute: static programs for x86-64, and scripts for an interpreter that its image has.

use std::collections::BTreeSet;

/// Why a guest cannot execute a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It is linked dynamically; the image has no shared libraries for it.
    #[error("it is linked dynamically, for the loader {0}: link with -static")]
    Dynamic(String),
    /// Another format or another processor, or a damaged file.
    #[error("it is neither a program for x86-64 (link with -static) nor a script")]
    Foreign,
    /// A script whose interpreter is not in the image.
    #[error("it is a script for `{0}`, but the lab has busybox only: use /bin/sh, or a program (link with -static)")]
    Interpreter(String),
}

/// Whether a guest can execute a file of this content. `image` are the programs of its image
/// ([`crate::image::programs`]).
pub fn check(content: &[u8], image: &BTreeSet<String>) -> Result<(), Unfit> {
    if let Some(rest) = content.strip_prefix(b"#!") {
        return check_interpreter(rest, image);
    }
    match Elf::decode(content).ok_or(Unfit::Foreign)?.loader() {
        Ok(None) => Ok(()),
        Ok(Some(loader)) => Err(Unfit::Dynamic(loader)),
        Err(CutShort) => Err(Unfit::Foreign),
    }
}

/// The first word after `#!`, as the kernel reads it.
fn check_interpreter(rest: &[u8], image: &BTreeSet<String>) -> Result<(), Unfit> {
    let line = rest.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let interpreter = line.split_whitespace().next().unwrap_or_default();
    if image.contains(interpreter) {
        return Ok(());
    }
    Err(Unfit::Interpreter(interpreter.to_owned()))
}

/// A structure of the file lies beyond its end.
struct CutShort;

/// An ELF file for x86-64 that can be executed (layout: elf(5), the 64-bit forms in little-endian order).
struct Elf<'a> {
    bytes: &'a [u8],
    headers_at: usize,
    header_size: usize,
    header_count: usize,
}

/// Magic number, 64 bits, little-endian.
const IDENTITY: &[u8] = b"\x7fELF\x02\x01";
/// `e_type`: a program at fixed addresses, and one at any.
const EXECUTABLE: [u16; 2] = [2, 3];
/// `e_machine`: x86-64.
const X86_64: u16 = 62;
/// `p_type` of the header that names a dynamic loader.
const INTERP: u32 = 3;

impl Elf<'_> {
    fn decode(bytes: &[u8]) -> Option<Elf<'_>> {
        let fits = bytes.starts_with(IDENTITY) && EXECUTABLE.contains(&half(bytes, 16)?) && half(bytes, 18)? == X86_64;
        fits.then_some(())?;
        let headers_at = xword(bytes, 32)?;
        Some(Elf { bytes, headers_at, header_size: half(bytes, 54)?.into(), header_count: half(bytes, 56)?.into() })
    }

    /// The dynamic loader that the program asks for.
    fn loader(&self) -> Result<Option<String>, CutShort> {
        for index in 0..self.header_count {
            let at = self.headers_at.checked_add(index * self.header_size).ok_or(CutShort)?;
            if word(self.bytes, at).ok_or(CutShort)? == INTERP {
                return self.text(at).map(Some).ok_or(CutShort);
            }
        }
        Ok(None)
    }

    /// The zero-terminated text that a program header's segment holds.
    fn text(&self, header_at: usize) -> Option<String> {
        let (from, length) = (xword(self.bytes, header_at + 8)?, xword(self.bytes, header_at + 32)?);
        let text = self.bytes.get(from..from.checked_add(length)?)?;
        Some(String::from_utf8_lossy(text).trim_end_matches('\0').to_owned())
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

    const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";

    /// A program with one header of a type, whose segment is the loader's name.
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
        put(64 + 32, &(LOADER.len() as u64 + 1).to_le_bytes());
        [&bytes, LOADER.as_bytes(), b"\0"].concat()
    }

    fn judge(content: &[u8]) -> Result<(), Unfit> {
        check(content, &BTreeSet::from(["/bin/sh", "/usr/bin/awk"].map(str::to_owned)))
    }

    #[test]
    fn static_programs_for_this_processor_are_fit() {
        const LOAD: u32 = 1;
        assert_eq!(judge(&elf(2, X86_64, LOAD)), Ok(()));
        assert_eq!(judge(&elf(3, X86_64, LOAD)), Ok(()), "position-independent");
        assert_eq!(judge(&elf(1, X86_64, LOAD)), Err(Unfit::Foreign), "an object file");
        assert_eq!(judge(&elf(2, 183, LOAD)), Err(Unfit::Foreign), "another processor");
    }

    #[test]
    fn a_dynamic_program_is_told_how_to_be_linked() {
        let unfit = judge(&elf(3, X86_64, INTERP)).unwrap_err();
        assert_eq!(unfit, Unfit::Dynamic(LOADER.into()));
        assert!(unfit.to_string().ends_with("link with -static"), "{unfit}");
    }

    #[test]
    fn no_cut_of_a_program_is_fit_or_a_panic() {
        let whole = elf(3, X86_64, INTERP);
        (0..whole.len()).for_each(|length| assert!(judge(&whole[..length]).is_err(), "{length}"));
        let mut wild = whole;
        wild[32..40].fill(0xff);
        assert_eq!(judge(&wild), Err(Unfit::Foreign));
        assert_eq!(judge(b"text\n"), Err(Unfit::Foreign));
    }

    #[test]
    fn scripts_need_an_interpreter_of_the_image() {
        assert_eq!(judge(b"#!/bin/sh\nexit\n"), Ok(()));
        assert_eq!(judge(b"#! /usr/bin/awk -f\n"), Ok(()));
        assert_eq!(judge(b"#!/usr/bin/python3\n"), Err(Unfit::Interpreter("/usr/bin/python3".into())));
        assert_eq!(judge(b"#!"), Err(Unfit::Interpreter(String::new())));
    }
}
