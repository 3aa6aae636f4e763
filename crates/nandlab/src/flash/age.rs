//! Ages: the time since a unit's data was last corrected, measured on the age clock.
//!
//! The age clock runs `reliability.clock_scale` times as fast as simulated time. An age stamp has four bytes for
//! seconds on the age clock. The error models need no finer resolution: Eq. 1 of LaLDPC has the term ln(1 + t / 1 h).

use super::reliability::Retention;
use crate::base::geometry::SuperblockId;
use crate::base::rng::Stream;
use crate::base::state::{state, value};
use crate::base::units::{SECOND, Span, Time};

/// A time on the age clock, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct AgeStamp(u32);

impl AgeStamp {
    /// The mark of data that could not be corrected when it was moved. Such data has no age, and no read decodes it.
    pub const LOST: AgeStamp = AgeStamp(0);
    /// The start of the run. The clock covers 68 years before the start and 68 years after it.
    pub const START: AgeStamp = AgeStamp(1 << 31);

    /// The age stamp of data that is `age_ns` old at the start of the run; 68 years at most.
    pub fn before_start(age_ns: Span) -> Self {
        let seconds = u32::try_from(age_ns / SECOND).unwrap_or(u32::MAX);
        AgeStamp(Self::START.0.saturating_sub(seconds).max(1))
    }

    /// This age stamp plus `seconds`, at most the end of the clock.
    pub fn plus_s(self, seconds: u32) -> Self {
        AgeStamp(self.0.saturating_add(seconds))
    }

    /// This age stamp minus `seconds`, at least the age stamp of the oldest data that is not lost.
    pub fn minus_s(self, seconds: u32) -> Self {
        AgeStamp(self.0.saturating_sub(seconds).max(1))
    }

    /// Seconds from `before` to this age stamp; 0 if `before` is later.
    pub fn later_s_than(self, before: AgeStamp) -> u32 {
        self.0.saturating_sub(before.0)
    }

    /// Seconds from this age stamp to `now`.
    #[inline(always)]
    pub fn age_s(self, now: AgeStamp) -> u32 {
        now.0 - self.0
    }
}

/// Seconds from the start to the end of the age clock.
const AGE_SECONDS: u32 = u32::MAX - (1 << 31);

/// The age clock: converts simulated times to age stamps.
#[derive(Clone, Copy, Debug)]
pub struct AgeClock {
    scale: f64,
    seconds_per_ns: f64,
}

impl AgeClock {
    /// A clock that runs `scale` times as fast as simulated time.
    pub fn new(scale: f64) -> Self {
        Self { scale, seconds_per_ns: scale / SECOND.ns() as f64 }
    }

    /// Seconds of the age clock per second of simulated time.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// The last simulated time that the clock covers, at most [`Time::LIMIT`].
    pub fn end(&self) -> Time {
        Time::from_ns_f64(f64::from(AGE_SECONDS) / self.seconds_per_ns).unwrap_or(Time::LIMIT)
    }

    /// The first simulated time whose age stamp is `stamp`. It is 0 for a stamp up to the start of the run, and
    /// [`Time::NEVER`] for a stamp that the clock does not reach before its end or [`Time::LIMIT`].
    pub fn time_of(&self, stamp: AgeStamp) -> Time {
        let seconds = f64::from(stamp.0.saturating_sub(AgeStamp::START.0));
        let Some(mut time) = Time::from_ns_f64(libm::ceil(seconds / self.seconds_per_ns)) else {
            return Time::NEVER;
        };
        if stamp.0 == u32::MAX {
            return Time::NEVER;
        }
        // The division rounds, so the time may be some nanoseconds early.
        while self.at(time) < stamp {
            time += Span::from_ns(1);
        }
        time
    }

    /// The age stamp of a simulated time. The age stamp no longer grows after the end of the clock, 68 years on the age
    /// clock after the start.
    #[inline(always)]
    pub fn at(&self, now: Time) -> AgeStamp {
        AgeStamp(AgeStamp::START.0.saturating_add((now.ns() as f64 * self.seconds_per_ns) as u32))
    }
}

/// The ages of the data on the drive at the start of the run. All data of a superblock has the same age.
#[derive(Clone, Debug)]
pub struct InitialAges {
    /// Age stamps with cumulative shares: the share of all superblocks that have this age stamp or the age stamp of an
    /// earlier entry. Empty if the ages are spread evenly.
    shares: Box<[(AgeStamp, f64)]>,
    /// Lowest and highest age, if the ages are spread evenly.
    spread: Option<(Span, Span)>,
    seed: u64,
    /// The superblock of the last [`InitialAges::of_next`], and its age stamp.
    last: Option<(SuperblockId, AgeStamp)>,
}

impl InitialAges {
    /// The ages that `retention` states; `seed`: the seed of the drive.
    pub fn new(retention: &Retention, seed: u64) -> Self {
        let mut sum = 0.0;
        let (shares, spread) = match retention {
            Retention::Shares(shares) => (&shares[..], None),
            &Retention::Spread { from, until } => (&[][..], Some((from, until))),
        };
        let share = |&(age_ns, share): &(Span, f64)| {
            sum += share;
            (AgeStamp::before_start(age_ns), sum)
        };
        Self {
            shares: shares.iter().map(share).collect(),
            spread,
            seed: Stream::new(seed, "reliability.retention").bits(),
            last: None,
        }
    }

    /// [`InitialAges::of`] where successive calls often ask for the same superblock: a draw takes longer than a
    /// program.
    #[inline]
    pub fn of_next(&mut self, superblock: SuperblockId) -> AgeStamp {
        match self.last {
            Some((last, stamp)) if last == superblock => stamp,
            _ => {
                let stamp = self.of(superblock);
                self.last = Some((superblock, stamp));
                stamp
            }
        }
    }

    /// The age stamp of the data that `superblock` holds at the start of the run.
    pub fn of(&self, superblock: SuperblockId) -> AgeStamp {
        if let [(age, _)] = *self.shares {
            return age;
        }
        // The draw is a hash of the superblock number. So the age of a superblock does not depend on the superblocks
        // queried before.
        let draw = Stream::new(self.seed ^ u64::from(superblock.0), "block").unit();
        if let Some((from, until)) = self.spread {
            let more = Span::from_ns(((until - from).ns() as f64 * draw) as u64);
            return AgeStamp::before_start(from + more);
        }
        let last = self.shares[self.shares.len() - 1].0;
        self.shares.iter().find(|&&(_, share)| draw < share).map_or(last, |&(stamp, _)| stamp)
    }
}

value! { AgeStamp { ..tuple seconds } }
state! { InitialAges { last } fixed { shares, spread, seed } }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::DAY;

    #[test]
    fn ages_are_measured_on_the_age_clock() {
        let clock = AgeClock::new(86_400.0);
        let old = AgeStamp::before_start(365 * DAY);
        assert_eq!(old.age_s(clock.at(Time::START)), 365 * 86_400);
        assert_eq!(old.age_s(clock.at(Time::START + 2 * SECOND)), 367 * 86_400);
        assert_eq!(clock.at(Time::START + 3 * SECOND).age_s(clock.at(Time::START + 5 * SECOND)), 2 * 86_400);
    }

    #[test]
    fn the_clock_ends_at_the_time_limit_or_at_its_last_second() {
        for scale in [1e-3, 1.0, 3.0, 86_400.0, 1e9] {
            let clock = AgeClock::new(scale);
            let end = clock.end();
            assert!(end <= Time::LIMIT && clock.at(end) <= AgeStamp(u32::MAX), "{scale}");
            assert_eq!(end == Time::LIMIT, scale < 1.0, "{scale}");
            assert_eq!(clock.time_of(AgeStamp(u32::MAX)), Time::NEVER, "{scale}");
            let late = AgeStamp(u32::MAX - 1);
            let when = clock.time_of(late);
            assert!(
                if scale < 0.1 { when == Time::NEVER } else { clock.at(when) == late },
                "{scale}: {when:?}"
            );
        }
    }

    #[test]
    fn the_clock_stops_at_its_end_and_no_data_has_the_stamp_of_lost_data() {
        let clock = AgeClock::new(1e9);
        assert_eq!(clock.at(Time::NEVER), AgeStamp(u32::MAX));
        assert!(AgeStamp::before_start(Span::MAX) > AgeStamp::LOST);
    }

    #[test]
    fn the_share_of_superblocks_of_an_age_is_as_in_the_spec() {
        let ages = InitialAges::new(&Retention::Shares(vec![(7 * DAY, 0.25), (365 * DAY, 0.75)]), 1);
        let young = (0..4000)
            .filter(|&superblock| ages.of(SuperblockId(superblock)) == AgeStamp::before_start(7 * DAY))
            .count();
        assert!((900..1100).contains(&young), "{young} of 4000");
        assert_eq!(ages.of(SuperblockId(17)), ages.of(SuperblockId(17)));
    }

    #[test]
    fn spread_ages_are_uniform_between_their_limits() {
        let ages = InitialAges::new(&Retention::Spread { from: 2 * DAY, until: 12 * DAY }, 1);
        let days =
            |superblock| f64::from(ages.of(SuperblockId(superblock)).age_s(AgeStamp::START)) / 86_400.0;
        let of_tenth = |tenth: u32| (0..4000).map(days).filter(|&age| age as u32 == 2 + tenth).count();
        for tenth in 0..10 {
            // 400 of 4000, with a standard deviation of 19.
            assert!((320..480).contains(&of_tenth(tenth)), "{} of 4000 in tenth {tenth}", of_tenth(tenth));
        }
        assert!((0..4000).map(days).all(|age| (2.0..=12.0).contains(&age)));
        assert_eq!(ages.of(SuperblockId(17)), ages.of(SuperblockId(17)));
    }
}
