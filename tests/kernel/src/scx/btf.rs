//! The kernel's types in `/sys/kernel/btf/vmlinux` (Documentation/bpf/btf.rst), as far as the load of a scheduler needs
//! them.

use crate::check::Check;

const PATH: &str = "/sys/kernel/btf/vmlinux";
const MAGIC: u16 = 0xeb9f;

/// The kinds of types.
const STRUCT: u32 = 4;
const FUNC: u32 = 12;

/// The types of one kernel.
pub struct Btf {
    bytes: Vec<u8>,
    types: std::ops::Range<usize>,
    strings: usize,
}

/// A structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Struct {
    /// The number of the structure among all types.
    pub id: u32,
    /// The size in bytes.
    pub size: usize,
    /// The members in order: names and offsets in bytes. The offset of a bit field is that of its first byte.
    pub members: Vec<(String, usize)>,
}

impl Struct {
    /// Returns the index and the offset of a member.
    pub fn member(&self, name: &str) -> Check<(u32, usize)> {
        let found = self.members.iter().position(|(member, _)| member == name);
        let at = found.ok_or_else(|| format!("the structure has no {name}"))?;
        Ok((at as u32, self.members[at].1))
    }
}

/// Encodes types in the kernel's form: words after a header, and names.
fn pack(types: &[&[u32]], names: &[u8]) -> Vec<u8> {
    let types: Vec<u8> = types.concat().into_iter().flat_map(u32::to_le_bytes).collect();
    let head = [u32::from(MAGIC) | 1 << 16, 24, 0, types.len() as u32, types.len() as u32, names.len() as u32];
    [head.into_iter().flat_map(u32::to_le_bytes).collect(), types, names.to_vec()].concat()
}

/// Returns the smallest types, only `int`.
pub fn smallest() -> Vec<u8> {
    pack(&[&[1, 1 << 24, 4, 32]], b"\0int\0")
}

/// A type in its encoded form.
struct Raw<'a> {
    id: u32,
    name: &'a [u8],
    kind: u32,
    count: usize,
    /// Whether the upper bytes of the members' offsets are the sizes of bit fields.
    flag: bool,
    size: u32,
    extra: &'a [u8],
}

/// Returns how many bytes follow a type.
fn extra_bytes(kind: u32, count: usize) -> Option<usize> {
    match kind {
        // INT, VAR, DECL_TAG
        1 | 14 | 17 => Some(4),
        // ARRAY
        3 => Some(12),
        // STRUCT, UNION, DATASEC, ENUM64
        4 | 5 | 15 | 19 => Some(12 * count),
        // ENUM, FUNC_PROTO
        6 | 13 => Some(8 * count),
        // PTR, FWD, TYPEDEF, VOLATILE, CONST, RESTRICT, FUNC, FLOAT, TYPE_TAG
        2 | 7..=12 | 16 | 18 => Some(0),
        _ => None,
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

impl Btf {
    /// Reads the types of the running kernel.
    pub fn of_kernel() -> Check<Btf> {
        Btf::new(std::fs::read(PATH).map_err(|error| format!("{PATH}: {error}"))?)
    }

    fn new(bytes: Vec<u8>) -> Check<Btf> {
        let header = |at: usize| word(&bytes, at).map(|word| word as usize).ok_or("a short header of BTF");
        if header(0)? as u16 != MAGIC {
            return Err("this is no BTF".into());
        }
        let (begin, types, length, strings) = (header(4)?, header(8)?, header(12)?, header(16)?);
        Ok(Btf { types: begin + types..begin + types + length, strings: begin + strings, bytes })
    }

    fn name(&self, offset: u32) -> &[u8] {
        let rest = self.bytes.get(self.strings + offset as usize..).unwrap_or_default();
        rest.split(|byte| *byte == 0).next().unwrap_or_default()
    }

    fn raw(&self) -> impl Iterator<Item = Raw<'_>> {
        let (mut at, mut id) = (self.types.start, 0);
        std::iter::from_fn(move || {
            let (info, size) = (word(&self.bytes, at + 4)?, word(&self.bytes, at + 8)?);
            let (kind, count, name) = (info >> 24 & 31, (info & 0xffff) as usize, word(&self.bytes, at)?);
            let from = at + 12;
            at = from + extra_bytes(kind, count)?;
            id += 1;
            let extra = self.bytes.get(from..at).filter(|_| at <= self.types.end)?;
            Some(Raw { id, name: self.name(name), kind, count, flag: info >> 31 != 0, size, extra })
        })
    }

    fn find(&self, kind: u32, name: &str) -> Check<Raw<'_>> {
        let mut all = self.raw();
        all.find(|one| one.kind == kind && one.name == name.as_bytes()).ok_or_else(|| format!("no type {name}"))
    }

    /// Returns the structure with a name.
    pub fn structure(&self, name: &str) -> Check<Struct> {
        let raw = self.find(STRUCT, name)?;
        let member = |i: usize| {
            let bits = word(raw.extra, 12 * i + 8)? & if raw.flag { 0xff_ffff } else { u32::MAX };
            let name = String::from_utf8_lossy(self.name(word(raw.extra, 12 * i)?)).into_owned();
            Some((name, bits as usize / 8))
        };
        Ok(Struct { id: raw.id, size: raw.size as usize, members: (0..raw.count).filter_map(member).collect() })
    }

    /// Returns the number of the function with a name.
    pub fn function(&self, name: &str) -> Check<u32> {
        Ok(self.find(FUNC, name)?.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns `int`, a pointer, `struct pair { int a; int b:3; }`, and a function `go`.
    fn small() -> Vec<u8> {
        let strings = b"\0int\0pair\0a\0b\0go\0";
        let types: [&[u32]; 4] = [
            &[1, 1 << 24, 4, 32],
            &[0, 2 << 24, 1],
            &[5, 1 << 31 | 4 << 24 | 2, 8, 10, 1, 0, 12, 1, 3 << 24 | 32],
            &[14, 12 << 24, 0],
        ];
        pack(&types, strings)
    }

    #[test]
    fn structures_and_functions_are_found_by_name() {
        let btf = Btf::new(small()).unwrap();
        let pair = btf.structure("pair").unwrap();
        assert_eq!((pair.id, pair.size), (3, 8));
        assert_eq!(pair.members, [("a".to_owned(), 0), ("b".to_owned(), 4)]);
        assert_eq!(pair.member("b"), Ok((1, 4)));
        assert_eq!(btf.function("go"), Ok(4));
        assert!(pair.member("c").is_err() && btf.structure("go").is_err() && btf.function("pair").is_err());
    }

    #[test]
    fn what_is_cut_off_or_no_btf_is_refused() {
        assert!(Btf::new(vec![0; 24]).is_err());
        assert!(Btf::new(small()[..10].to_vec()).is_err());
        let mut cut = small();
        cut.truncate(24 + 16 + 12 + 20);
        assert!(Btf::new(cut).unwrap().structure("pair").is_err());
    }
}
