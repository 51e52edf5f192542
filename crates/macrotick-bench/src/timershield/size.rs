//! The size of TimerShield at rest: its objects, and its memory per CPU.

use std::path::{Path, PathBuf};

use macrotick_lab::Kernel;
use macrotick_report::Figure;

use super::aims::Aim;
use crate::error::BenchError;
use crate::kit::footprint::{self, Segments};

/// The design's limits, in bytes.
const AIM_TEXT: f64 = 4.0 * 1024.0;
const AIM_PER_CPU: f64 = 35.0 * 1024.0;
/// TimerShield's own objects.
const OWN: [&str; 1] = ["timershield/control.o"];
/// The object that includes the rest of TimerShield.
const SHARED: &str = "hrtimer.o";
/// Its variables per CPU.
const VARIABLES: [&str; 2] = ["ts_cpus", "ts_stats"];

/// Bytes of an object, of each of [`KINDS`].
type Bytes = [i64; 4];

const KINDS: [&str; 4] = ["code", "text", "data", "bss"];

/// The sizes of all parts.
pub struct Size {
    /// The growth of each object; an own object counts as a whole.
    objects: Vec<(&'static str, Bytes)>,
    per_cpu: u64,
}

impl Size {
    /// Reads the sizes from the trees of the kernels.
    pub fn measure(pristine: &Kernel, patched: &Kernel) -> Result<Size, BenchError> {
        let (before, after) = (bytes(pristine, SHARED)?, bytes(patched, SHARED)?);
        let mut objects = vec![(SHARED, [0, 1, 2, 3].map(|kind| after[kind] - before[kind]))];
        for name in OWN {
            objects.push((name, bytes(patched, name)?));
        }
        Ok(Size { objects, per_cpu: footprint::variable_sizes(patched, VARIABLES)?.iter().sum() })
    }

    fn all(&self) -> Bytes {
        [0, 1, 2, 3].map(|kind| self.objects.iter().map(|(_, bytes)| bytes[kind]).sum())
    }

    /// Returns the growth of the kernel's text, as `size` defines it: with constants and unwind tables.
    pub fn text(&self) -> f64 {
        self.all()[1] as f64
    }

    /// Returns TimerShield's bytes for each CPU.
    pub fn per_cpu(&self) -> f64 {
        self.per_cpu as f64
    }

    /// Returns the aims.
    pub fn aims(&self) -> Vec<Aim> {
        vec![
            Aim::of_ours("text of the kernel: more", "B", self.text(), AIM_TEXT),
            Aim::of_ours("memory per CPU: more", "B", self.per_cpu(), AIM_PER_CPU),
        ]
    }

    /// Returns a table with a row for each object.
    pub fn markdown(&self) -> String {
        let mut text =
            "### size\n\n| `kernel/time` | text [B] | of it code [B] | data [B] | bss [B] |\n|---|---:|---:|---:|---:|\n"
                .to_owned();
        for (name, [code, all_text, data, bss]) in self.objects.iter().copied().chain([("all", self.all())]) {
            text += &format!("| {name} | {all_text:+} | {code:+} | {data:+} | {bss:+} |\n");
        }
        text + &format!(
            "\nEach CPU has {} B of the data. The rest of the text beside the code is constants and unwind \
             tables.\n",
            self.per_cpu
        )
    }

    /// Returns the same values as figures.
    pub fn figures(&self) -> Vec<Figure> {
        let figure =
            |figure: String, case: &str, value: f64| Figure { figure, case: case.into(), value, unit: "B".into() };
        let of_object = |(name, bytes): &(&'static str, Bytes)| {
            let (name, bytes) = (*name, *bytes);
            KINDS.iter().zip(bytes).map(move |(kind, bytes)| figure(format!("size.{kind}"), name, bytes as f64))
        };
        let mut all: Vec<Figure> = self.objects.iter().flat_map(of_object).collect();
        all.push(figure("memory".into(), "CPU", self.per_cpu()));
        all
    }
}

/// Returns the sizes of one object in a kernel's tree.
fn bytes(kernel: &Kernel, object: &str) -> Result<Bytes, BenchError> {
    let path = time_folder(kernel).join(object);
    let Segments { text, data, bss } = footprint::segments_of(&path)?;
    Ok([footprint::code_of(&path)?, text, data, bss].map(|bytes| bytes as i64))
}

fn time_folder(kernel: &Kernel) -> PathBuf {
    kernel.vmlinux.parent().unwrap_or(Path::new("")).join("kernel/time")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_summed() {
        let objects = vec![(SHARED, [2_000, 3_000, 8_000, 0]), (OWN[0], [1_000, 1_097, 0, 64])];
        let size = Size { objects, per_cpu: 8_000 };
        let text = size.markdown();
        assert!(text.contains("| hrtimer.o | +3000 | +2000 | +8000 | +0 |\n"), "{text}");
        assert!(text.contains("| all | +4097 | +3000 | +8000 | +64 |\n"), "{text}");
        assert_eq!(size.figures().last().map(|figure| figure.value), Some(8_000.0));
        assert_eq!(size.aims()[0].values[2], Some(4_097.0));
    }
}
