//! The kernels that are compared where TimerShield matters, and its switch.

use macrotick_host::settings::TIMERSHIELD;
use macrotick_lab::Flavor;

use crate::kit::group::write;

/// The kernels, and the state of the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Without our changes.
    Pristine,
    /// Ours, TimerShield switched off.
    Off,
    /// Ours, TimerShield switched on.
    On,
}

impl Variant {
    /// All of them.
    pub const ALL: [Variant; 3] = [Variant::Pristine, Variant::Off, Variant::On];

    /// The name on a guest's command line, and in figures.
    pub fn name(self) -> &'static str {
        match self {
            Variant::Pristine => "pristine",
            Variant::Off => "off",
            Variant::On => "on",
        }
    }

    /// The reverse of [`Variant::name`].
    pub fn from_name(name: &str) -> Option<Variant> {
        Variant::ALL.into_iter().find(|variant| variant.name() == name)
    }

    /// Which kernel it is.
    pub fn flavor(self) -> Flavor {
        match self {
            Variant::Pristine => Flavor::Pristine,
            Variant::Off | Variant::On => Flavor::Patched,
        }
    }

    /// What the switch is set to; the pristine kernel has none.
    fn switch(self) -> Option<bool> {
        match self {
            Variant::Pristine => None,
            Variant::Off => Some(false),
            Variant::On => Some(true),
        }
    }
}

/// Sets TimerShield's switch, where there is one.
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
