//! The link of a device of this namespace, as its driver tells it.

use std::path::Path;

use macrotick_model::Speed;

use super::fault::DeployFault;

/// The link of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkFacts {
    /// Whether there is such a device.
    pub exists: bool,
    /// The largest payload of a frame (MTU), in bytes.
    pub mtu: u32,
    /// The speed, if the driver tells one.
    pub speed: Option<Speed>,
}

impl LinkFacts {
    /// The link of virtual Ethernet (`veth_get_link_ksettings()` in drivers/net/veth.c).
    pub const VIRTUAL: LinkFacts = LinkFacts { exists: true, mtu: 1500, speed: Some(Speed::VIRTUAL) };
    /// The speed at which gates and shapers take a device without one (`taprio_set_picos_per_byte()` in
    /// net/sched/sch_taprio.c, `cbs_set_port_rate()` in net/sched/sch_cbs.c).
    const UNKNOWN: Speed = Speed::from_bits(10_000_000);

    /// Returns the speed at which gates and shapers take the device.
    pub fn taken(&self) -> Speed {
        self.speed.unwrap_or(Self::UNKNOWN)
    }

    /// Refuses a device that is slower than its description: a frame would take longer than its gate is open. Another
    /// step reports a device that does not exist.
    ///
    /// # Errors
    ///
    /// The device, both speeds, and a remedy.
    pub fn check(&self, device: &str, described: Speed) -> Result<(), Box<DeployFault>> {
        let taken = self.taken();
        if taken >= described || !self.exists {
            return Ok(());
        }
        let (reason, remedy) = match self.speed {
            Some(speed) => (
                format!("it has {speed}, and its description has {described}"),
                format!("set `speed: {speed}`, or look at the cable and the far end"),
            ),
            None => (
                format!("its driver tells no speed, so the kernel takes {taken}, and its description has {described}"),
                format!(
                    "is the link up? A virtual device may get a speed by `ethtool -s {device} speed {} duplex full`",
                    described.bits() / 1_000_000
                ),
            ),
        };
        Err(DeployFault::unfit(device, "use its link", reason, Some(remedy)))
    }
}

/// Returns the link of a device in this namespace; the MTU of Ethernet if that cannot be read.
pub fn link_of(device: &str) -> LinkFacts {
    let read = |file: &str| std::fs::read_to_string(format!("/sys/class/net/{device}/{file}"));
    let number = |file: &str| read(file).ok().and_then(|text| text.trim().parse::<u32>().ok());
    // An unknown speed is -1, or 4294967295 in older kernels.
    let speed = number("speed").filter(|speed| (1..u32::MAX).contains(speed));
    LinkFacts {
        exists: Path::new("/sys/class/net").join(device).exists(),
        mtu: number("mtu").unwrap_or(1500),
        speed: speed.map(|speed| Speed::from_bits(u64::from(speed) * 1_000_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_slower_than_described_is_refused_with_the_remedy() {
        let speed = |bits| Speed::from_bits(bits);
        let giga = speed(1_000_000_000);
        let refused = |known: Option<Speed>, described| {
            LinkFacts { exists: true, mtu: 1500, speed: known }
                .check("eth1", described)
                .err()
                .map(|fault| fault.to_string())
        };
        assert_eq!(refused(Some(giga), giga), None);
        assert_eq!(refused(Some(Speed::VIRTUAL), giga), None);
        assert_eq!(refused(None, speed(10_000_000)), None);
        assert_eq!(link_of("no-such-device").check("no-such-device", giga), Ok(()));
        assert_eq!(
            refused(Some(speed(100_000_000)), giga).as_deref(),
            Some(
                "device `eth1`: cannot use its link: it has 100Mb/s, and its description has 1Gb/s; set `speed: \
                 100Mb/s`, or look at the cable and the far end"
            )
        );
        assert_eq!(
            refused(None, giga).as_deref(),
            Some(
                "device `eth1`: cannot use its link: its driver tells no speed, so the kernel takes 10Mb/s, and its \
                 description has 1Gb/s; is the link up? A virtual device may get a speed by `ethtool -s eth1 speed 1000 \
                 duplex full`"
            )
        );
    }
}
