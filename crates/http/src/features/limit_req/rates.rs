//! The rate of requests by key: nginx's leaky bucket, with the time as an argument.
//!
//! A bucket leaks at the zone's rate. A request adds one to it, unless it would then exceed the
//! burst. With several limits, each only reserves ([`Rates::reserve`]), and adds once all have
//! agreed ([`Rates::commit`]); a reserved entry is not removed.

use session::slabs::SlabUse;

use super::sums::{OutgoingSum, SharedSums, SumPlace, ToldSum};
use crate::keyed::{Counted, Table};
use crate::lru::LruEntry;

/// The size of an entry in nginx, without its key.
const ENTRY_BYTES: u64 = 80;

/// One request, in thousandths.
pub const REQUEST: u64 = 1000;

/// The idle time after which an empty entry may be removed.
const IDLE_MIN_MS: u64 = 60_000;

/// While sums are exchanged: how long after the last exchange they are still worth sending.
const SHARING_GAP_MS: u64 = 2000;

/// The most keys without new requests that are looked at while the zone is locked. Others follow
/// with the next exchange.
const LOOKS_MAX: usize = 1000;

/// The most entries to remove when another is added.
const EXPIRED_PER_INSERT: usize = 2;

/// The rates of a zone.
pub struct Rates {
    table: Table<Bucket>,
    /// The keys that are exchanged with other machines, while the store is there.
    sums: Option<Box<SharedSums>>,
}

#[derive(Default)]
struct Bucket {
    /// `None` before the first request.
    last_ms: Option<u64>,
    excess: u64,
    reserved: u32,
    /// Requests that the other machines do not know of.
    unsent: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateExceeded {
    /// The bucket would contain this much.
    Excess(u64),
    /// There is no memory for another key.
    Room,
}

impl Counted for Rates {
    const DIRECTIVE: &'static str = "limit_req_zone";
    const KIND: &'static str = "limit_req";
    fn new(zone_bytes: u64) -> Self {
        Self { table: Table::new(zone_bytes, ENTRY_BYTES), sums: None }
    }

    fn memory(&self) -> SlabUse {
        self.table.memory()
    }
}

impl Bucket {
    fn idle_ms(&self, now_ms: u64) -> u64 {
        self.last_ms.map_or(u64::MAX, |last_ms| now_ms.saturating_sub(last_ms))
    }

    /// The content of the bucket after adding `request` to it.
    fn excess_with(&self, request: u64, rate: u64, now_ms: u64) -> u64 {
        let leaked = rate.saturating_mul(self.idle_ms(now_ms)) / 1000;
        self.excess.saturating_add(request).saturating_sub(leaked)
    }

    fn add(&mut self, rate: u64, now_ms: u64) -> u64 {
        self.excess = self.excess_with(REQUEST, rate, now_ms);
        self.last_ms = self.last_ms.max(Some(now_ms));
        self.excess
    }

    /// Sets the content, unless it is more. Nothing fills it beyond `most`.
    fn raise(&mut self, excess: u64, most: u64, rate: u64, now_ms: u64) {
        let own = self.excess_with(0, rate, now_ms);
        self.excess = own.max(excess.min(most));
        self.last_ms = self.last_ms.max(Some(now_ms));
    }

    /// The content with the request that an empty bucket admits without an excess.
    fn filling(&self, rate: u64, now_ms: u64) -> u64 {
        self.excess_with(REQUEST, rate, now_ms)
    }
}

impl Rates {
    /// Adds a request, unless the bucket would exceed `burst`. Returns its content.
    pub fn add(
        &mut self,
        key: &[u8],
        rate: u64,
        burst: u64,
        now_ms: u64,
    ) -> Result<u64, RateExceeded> {
        if let Some(entry) = self.table.find(key) {
            self.check(entry, rate, burst, now_ms)?;
            self.note_unsent(entry);
            return Ok(self.table.value(entry).add(rate, now_ms));
        }
        let bucket = Bucket { last_ms: Some(now_ms), ..Bucket::default() };
        let entry = self.insert(key, bucket, rate, now_ms)?;
        self.note_unsent(entry);
        Ok(0)
    }

    /// Reserves a request, without adding it.
    pub fn reserve(
        &mut self,
        key: &[u8],
        rate: u64,
        burst: u64,
        now_ms: u64,
    ) -> Result<LruEntry, RateExceeded> {
        let entry = match self.table.find(key) {
            Some(entry) => {
                self.check(entry, rate, burst, now_ms)?;
                entry
            }
            None => self.insert(key, Bucket::default(), rate, now_ms)?,
        };
        self.table.value(entry).reserved += 1;
        Ok(entry)
    }

    /// Adds a reserved request. Returns the content of the bucket.
    pub fn commit(&mut self, entry: LruEntry, rate: u64, now_ms: u64) -> u64 {
        self.note_unsent(entry);
        let bucket = self.table.value(entry);
        bucket.reserved -= 1;
        bucket.add(rate, now_ms)
    }

    pub fn release(&mut self, entry: LruEntry) {
        self.table.value(entry).reserved -= 1;
    }

    fn check(
        &mut self,
        entry: LruEntry,
        rate: u64,
        burst: u64,
        now_ms: u64,
    ) -> Result<(), RateExceeded> {
        self.table.touch(entry);
        match self.table.value(entry).excess_with(REQUEST, rate, now_ms) {
            excess if excess > burst => Err(RateExceeded::Excess(excess)),
            _ => Ok(()),
        }
    }

    fn insert(
        &mut self,
        key: &[u8],
        bucket: Bucket,
        rate: u64,
        now_ms: u64,
    ) -> Result<LruEntry, RateExceeded> {
        self.expire(EXPIRED_PER_INSERT, rate, now_ms);
        if !self.table.has_room(key) {
            self.remove_oldest();
            self.expire(EXPIRED_PER_INSERT, rate, now_ms);
        }
        self.table.insert(key, bucket).ok_or(RateExceeded::Room)
    }

    /// Removes up to `most` of the oldest entries that are empty and idle.
    fn expire(&mut self, most: usize, rate: u64, now_ms: u64) {
        for _ in 0..most {
            let Some(oldest) = self.table.oldest() else { return };
            let bucket = self.table.value(oldest);
            let idle = bucket.reserved == 0 && bucket.idle_ms(now_ms) >= IDLE_MIN_MS;
            if !idle || bucket.excess_with(0, rate, now_ms) > 0 {
                return;
            }
            self.remove(oldest);
        }
    }

    /// Removes the oldest entry, whatever its content, unless it is reserved.
    fn remove_oldest(&mut self) {
        if let Some(oldest) = self.table.oldest()
            && self.table.value(oldest).reserved == 0
        {
            self.remove(oldest);
        }
    }

    fn remove(&mut self, entry: LruEntry) {
        self.table.remove(entry);
        if let Some(sums) = &mut self.sums {
            sums.forget(entry);
        }
    }
}

/// The exchange with other machines.
impl Rates {
    /// Counts what the other machines have to know from now on. Sums of an exchange that has gone
    /// on until just now stay.
    pub(super) fn begin_sharing(&mut self, now_ms: u64) {
        let goes_on = |sums: &SharedSums| now_ms.saturating_sub(sums.turn_ms) <= SHARING_GAP_MS;
        if !self.sums.as_deref().is_some_and(goes_on) {
            self.end_sharing();
            let mut sums = Box::<SharedSums>::default();
            sums.turn_ms = now_ms;
            self.sums = Some(sums);
        }
    }

    /// Counts for this machine alone. What was not sent is not sent later: the others could not
    /// tell when it was.
    pub(super) fn end_sharing(&mut self) {
        for entry in self.sums.take().into_iter().flat_map(|sums| sums.fresh) {
            if let Some(bucket) = self.table.live(entry) {
                bucket.unsent = 0;
            }
        }
    }

    /// The keys that wait for an exchange.
    pub(super) fn unsent_keys(&self) -> usize {
        self.sums.as_ref().map_or(0, |sums| sums.fresh.len())
    }

    /// Takes up to `most` sums for the exchange of a number and time: those with requests first.
    pub(super) fn take_sums(
        &mut self,
        most: usize,
        rate: u64,
        (turn, now_ms): (u64, u64),
    ) -> Vec<OutgoingSum> {
        let mut taken = Vec::new();
        let Self { table, sums: Some(sums) } = self else { return taken };
        sums.turn_ms = now_ms;
        let mut take = |sums: &mut SharedSums, table: &mut Table<Bucket>, entry, admitted| {
            let (place, counted) = sums.send(entry, admitted, (turn, now_ms));
            let filling = table.value(entry).filling(rate, now_ms);
            let empty_in_ms = filling.saturating_mul(1000).div_ceil(rate);
            taken.push(OutgoingSum { place, key: table.key(entry), empty_in_ms, counted });
            taken.len() < most
        };
        while let Some(entry) = sums.fresh.pop_front() {
            // Another key may have the entry by now, and be listed twice.
            let unsent = table.live(entry).map(|bucket| std::mem::take(&mut bucket.unsent));
            if let Some(admitted @ 1..) = unsent
                && !take(sums, table, entry, admitted)
            {
                return taken;
            }
        }
        for _ in 0..LOOKS_MAX {
            let Some((entry, is_asked)) = sums.look(turn, now_ms) else { break };
            if is_asked {
                continue;
            }
            if sums.is_told(entry) && table.value(entry).filling(rate, now_ms) == 0 {
                sums.forget(entry);
            } else if !take(sums, table, entry, 0) {
                return taken;
            }
        }
        taken
    }

    /// Takes a reply: the store's sum, how full it knows the bucket to be, and the part of the sum
    /// that is in that.
    pub(super) fn tell(
        &mut self,
        place: SumPlace,
        (total, stored, counted): (i64, u64, i64),
        (rate, excess_max): (u64, u64),
        now_ms: u64,
    ) {
        let Self { table, sums: Some(sums) } = self else { return };
        let (told, bucket) = (sums.tell(place, total), table.live(place.entry));
        let (Some(told), Some(bucket)) = (told, bucket) else { return };
        let excess = match told {
            ToldSum::Others(0) => return,
            ToldSum::Others(others) => {
                bucket.excess_with(others.saturating_mul(REQUEST), rate, now_ms)
            }
            ToldSum::Anew => {
                let admitted = i64::from(place.admitted);
                let uncounted = total.saturating_sub(admitted).saturating_sub(counted);
                let uncounted = u64::try_from(uncounted).unwrap_or(0).saturating_mul(REQUEST);
                let of_others = stored.saturating_add(uncounted);
                if of_others == 0 {
                    return;
                }
                let filling = of_others.saturating_add(u64::from(place.admitted) * REQUEST);
                filling.saturating_sub(REQUEST)
            }
        };
        bucket.raise(excess, excess_max, rate, now_ms);
    }

    /// The memory of all lists of keys, about.
    #[cfg(test)]
    pub(super) fn shared_bytes(&self) -> usize {
        self.sums.as_ref().map_or(0, |sums| sums.bytes())
    }

    fn note_unsent(&mut self, entry: LruEntry) {
        if let Some(sums) = &mut self.sums {
            let bucket = self.table.value(entry);
            if bucket.unsent > 0 || sums.list(entry) {
                bucket.unsent = bucket.unsent.saturating_add(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One request per second.
    const RATE: u64 = 1000;
    const ZONE: u64 = 32 * 1024;

    #[test]
    fn a_bucket_fills_and_leaks() {
        let mut rates = Rates::new(ZONE);
        let mut add = |burst, now_ms| rates.add(b"k", RATE, burst, now_ms);
        assert_eq!(add(2000, 0), Ok(0));
        assert_eq!(add(2000, 0), Ok(1000));
        assert_eq!(add(2000, 250), Ok(1750));
        assert_eq!(add(2000, 500), Err(RateExceeded::Excess(2500)));
        // A refused request adds nothing.
        assert_eq!(add(2000, 1000), Ok(2000));
        assert_eq!(add(2000, 1000), Err(RateExceeded::Excess(3000)));
        assert_eq!(add(0, 3999), Err(RateExceeded::Excess(1)));
        assert_eq!(add(0, 4000), Ok(0));
        assert_eq!(add(2000, 1_000_000_000), Ok(0));
    }

    #[test]
    fn the_time_of_another_worker_may_be_older() {
        let mut rates = Rates::new(ZONE);
        assert_eq!(rates.add(b"k", RATE, 5000, 1000), Ok(0));
        assert_eq!(rates.add(b"k", RATE, 5000, 900), Ok(1000));
        assert_eq!(rates.add(b"k", RATE, 5000, 1100), Ok(1900));
    }

    #[test]
    fn slow_rates_lose_nothing_to_rounding() {
        let mut rates = Rates::new(ZONE);
        // One request per minute is 16 thousandths per second.
        let rate = REQUEST / 60;
        assert_eq!(rates.add(b"k", rate, 0, 0), Ok(0));
        assert_eq!(rates.add(b"k", rate, 0, 62_499), Err(RateExceeded::Excess(1)));
        assert_eq!(rates.add(b"k", rate, 0, 62_500), Ok(0));
    }

    #[test]
    fn a_reservation_is_committed_or_released() {
        let mut rates = Rates::new(ZONE);
        let first = rates.reserve(b"k", RATE, 1000, 5).unwrap();
        let second = rates.reserve(b"k", RATE, 1000, 5).unwrap();
        assert_eq!(first, second);
        assert_eq!(rates.commit(first, RATE, 5), 0);
        rates.release(second);
        assert_eq!(rates.add(b"k", RATE, 1000, 5), Ok(1000));
        assert_eq!(rates.reserve(b"k", RATE, 1000, 5), Err(RateExceeded::Excess(2000)));
    }

    fn keys() -> impl Iterator<Item = [u8; 4]> {
        (0_u32..).map(u32::to_be_bytes)
    }

    #[test]
    fn a_full_zone_removes_its_oldest_entry() {
        let mut rates = Rates::new(ZONE);
        let count = keys().take_while(|key| rates.table.has_room(key) && add(&mut rates, key));
        let count = count.count();
        assert_eq!(count, 7 * 32);
        assert!(add(&mut rates, b"another"));
        assert!(rates.table.find(&[0; 4]).is_none());
        assert!(rates.table.find(&[0, 0, 0, 1]).is_some());
    }

    fn add(rates: &mut Rates, key: &[u8]) -> bool {
        rates.add(key, RATE, 0, 0).is_ok()
    }

    #[test]
    fn a_zone_whose_oldest_is_reserved_has_no_room() {
        let mut rates = Rates::new(ZONE);
        let entry = rates.reserve(b"reserved", RATE, 0, 0).unwrap();
        keys().take_while(|key| rates.table.has_room(key) && add(&mut rates, key)).count();
        assert_eq!(rates.add(b"another", RATE, 0, 0), Err(RateExceeded::Room));
        rates.release(entry);
        assert!(add(&mut rates, b"another"));
    }

    #[test]
    fn empty_and_idle_entries_are_removed_two_at_a_time() {
        let mut rates = Rates::new(ZONE);
        for key in keys().take(5) {
            add(&mut rates, &key);
        }
        let mut left = |key: &[u8], now_ms| {
            rates.add(key, RATE, 0, now_ms).unwrap();
            keys().take(5).filter(|key| rates.table.find(key).is_some()).count()
        };
        assert_eq!(left(b"a", IDLE_MIN_MS - 1), 5);
        assert_eq!(left(b"b", IDLE_MIN_MS), 3);
        assert_eq!(left(b"c", IDLE_MIN_MS), 1);
        assert_eq!(left(b"d", IDLE_MIN_MS), 0);
    }
}
