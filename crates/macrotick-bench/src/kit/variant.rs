//! The kernels that are compared where TimerShield matters, and the state of TimerShield.

use macrotick_host::settings::TIMERSHIELD;
use macrotick_lab::Flavor;

use crate::kit::group::write;

/// A kernel and the state of TimerShield.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// The kernel without our changes.
    Pristine,
    /// Our kernel, with TimerShield off.
    Off,
    /// Our kernel, with TimerShield on.
    On,
}

impl Variant {
    /// All variants.
    pub const ALL: [Variant; 3] = [Variant::Pristine, Variant::Off, Variant::On];

    /// Returns the name on a guest's command line, and in figures.
    pub fn name(self) -> &'static str {
        match self {
            Variant::Pristine => "pristine",
            Variant::Off => "off",
            Variant::On => "on",
        }
    }

    /// Parses a name of [`Variant::name`].
    pub fn from_name(name: &str) -> Option<Variant> {
        Variant::ALL.into_iter().find(|variant| variant.name() == name)
    }

    /// Returns the kernel.
    pub fn flavor(self) -> Flavor {
        match self {
            Variant::Pristine => Flavor::Pristine,
            Variant::Off | Variant::On => Flavor::Patched,
        }
    }

    /// Returns the state of TimerShield; `None` for the pristine kernel, which has none.
    fn switch(self) -> Option<bool> {
        match self {
            Variant::Pristine => None,
            Variant::Off => Some(false),
            Variant::On => Some(true),
        }
    }
}

/// Switches TimerShield on or off, if the kernel has it.
pub fn switch(variant: Variant) -> Result<(), String> {
    let Some(on) = variant.switch() else { return Ok(()) };
    write(TIMERSHIELD, if on { "1" } else { "0" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_have_names_of_their_own() {
        for variant in Variant::ALL {
            assert_eq!(Variant::from_name(variant.name()), Some(variant));
        }
        assert_eq!(Variant::from_name("none"), None);
    }
}
