//! Pins in memory; the twin of `sqlite/cache/pins`.

use super::Cache;
use crate::Fingerprint;
use crate::cache::{Pin, PinMoves, PinOutcome, PinSubject, bytes_besides};

impl Cache {
    pub(in super::super) fn pins(&self) -> Vec<Pin> {
        self.pins.clone()
    }

    pub(in super::super) fn pin(&mut self, pin: &Pin, bytes_max: u64) -> PinOutcome {
        let Some(entry) = self.entries.get(&pin.key) else { return PinOutcome::NoEntry };
        let own = entry.summary.bytes;
        let bytes = bytes_besides(&self.pins, &pin.subject, &pin.key).saturating_add(own);
        if bytes > bytes_max {
            return PinOutcome::TooMuch { bytes };
        }
        self.unpin(&pin.subject);
        self.pins.push(Pin { bytes: own, ..pin.clone() });
        self.pins.sort_by_key(|pin| (pin.pinned_at, pin.subject.kind(), pin.subject));
        PinOutcome::Pinned { bytes: own }
    }

    pub(in super::super) fn unpin(&mut self, subject: &PinSubject) -> Option<Pin> {
        let at = self.pins.iter().position(|pin| pin.subject == *subject)?;
        Some(self.pins.remove(at))
    }

    pub(in super::super) fn move_pins(&mut self, moves: &PinMoves) {
        for moved in &moves.moves {
            let Some(entry) = self.entries.get(&moved.key) else { continue };
            let (subject, own) = (PinSubject::View(moved.view), entry.summary.bytes);
            let besides = bytes_besides(&self.pins, &subject, &moved.key);
            let is_meant = |pin: &&mut Pin| pin.subject == subject && pin.program == moved.program;
            let Some(pin) = self.pins.iter_mut().find(is_meant) else { continue };
            if besides.saturating_add(own) <= moves.bytes_max {
                (pin.key, pin.bytes) = (moved.key, own);
            }
        }
    }

    pub(super) fn is_pinned(&self, key: &Fingerprint) -> bool {
        self.pins.iter().any(|pin| pin.key == *key)
    }
}
