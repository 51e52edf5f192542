//! Rules of sync windows.

use super::Rules;
use crate::system::SyncWindow;
use crate::time::Duration;

/// The shortest window (`MACROTICK_MIN_WINDOW_NS`). A sync window must not become shorter.
const MIN_WINDOW: Duration = Duration::from_micros(1);

impl Rules<'_> {
    pub(super) fn sync(&mut self) {
        let Some(SyncWindow { period, offset, length, bound }) = self.system.sync() else { return };
        for (key, value) in [("period", period), ("offset", offset), ("length", length)] {
            self.on_grid("clock.tai.", key, value);
        }
        self.place_in_period(period, offset, length);
        let rest = length.checked_sub(bound).unwrap_or(Duration::ZERO);
        if bound > Duration::ZERO && rest < MIN_WINDOW {
            let text = format!("bound {bound} leaves less than {MIN_WINDOW} of a sync window of {length}");
            self.add("clock.tai.bound", &["clock.tai.length"], text);
        }
    }

    fn place_in_period(&mut self, period: Duration, offset: Duration, length: Duration) {
        let needs = ["clock.tai.period", "clock.tai.length"];
        let end = offset.checked_add(length).unwrap_or(Duration::from_nanos(i64::MAX));
        if length > period && period > Duration::ZERO {
            let text = format!("length {length} is longer than the period {period}");
            self.add("clock.tai.length", &needs[..1], text);
        } else if offset < Duration::ZERO {
            self.add("clock.tai.offset", &needs, format!("offset {offset} is before the period"));
        } else if end > period && period > Duration::ZERO {
            let text = format!("the sync window [{offset}, {end}) reaches beyond its period of {period}");
            self.add("clock.tai.offset", &needs, text);
        }
    }
}
