//! Rules of the reserve.

use super::Rules;
use crate::system::Reserve;
use crate::time::Duration;

impl Rules<'_> {
    pub(super) fn reserve(&mut self) {
        let Some(Reserve { period, length }) = self.system.reserve else { return };
        if !self.system.has_windows() {
            let text = "`reserve` applies to tables, but no task or group has windows";
            self.add("reserve", &["tasks", "groups"], text);
            return;
        }
        self.on_grid("reserve.", "period", period);
        self.on_grid("reserve.", "length", length);
        if length > period && period > Duration::ZERO {
            let text = format!("length {length} is longer than the period {period}");
            self.add("reserve.length", &["reserve.period"], text);
        }
        let interfaces = self.system.network.iter().flat_map(|network| &network.interfaces).enumerate();
        let led: Vec<usize> =
            interfaces.filter(|(_, interface)| interface.lead.is_some()).map(|(index, _)| index).collect();
        for index in led {
            let text = "the windows of the thread that opens these gates can take time of the `reserve`";
            let hint = "leave out `reserve` or this `lead`";
            self.add(format!("network.interfaces[{index}].lead"), &["reserve"], text).hint = Some(hint.into());
        }
    }
}
