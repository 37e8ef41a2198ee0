//! A small deterministic source of numbers: the same seed gives the same data and the same choices on every machine and
//! with every version of every library, which no crate promises across its releases.

/// SplitMix64 (Steele, Lea, Flood 2014): one 64-bit state, passes BigCrush, and a stream can be split off for each
/// purpose, so that adding a draw in one place changes nothing elsewhere.
#[derive(Debug, Clone)]
pub struct Rng {
    state: u64,
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64's finaliser: spreads every bit of `x` over the result.
pub fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Rng {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Rng { state: mix(seed ^ GOLDEN) }
    }

    /// An independent stream for one purpose (`"folders"`) and number (a row).
    pub fn split(seed: u64, purpose: &str, number: u64) -> Self {
        let named = purpose
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Rng { state: mix(mix(seed ^ named).wrapping_add(number.wrapping_mul(GOLDEN))) }
    }

    /// The next 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// A number below `bound` (0 when `bound` is 0). The bias of the multiplication is below 2^-32 for the bounds used
    /// here.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(bound)) >> 64) as u64
    }

    /// A number below `bound`, as an index.
    pub fn index(&mut self, bound: usize) -> usize {
        self.below(bound as u64) as usize
    }

    /// True with this chance, in parts of a thousand.
    pub fn chance(&mut self, per_thousand: u64) -> bool {
        self.below(1000) < per_thousand
    }

    /// One of these; `None` only of nothing.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.index(from.len()))
    }

    /// A number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Puts these in a random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_forever() {
        let mut rng = Rng::new(1);
        let first: Vec<u64> = (0..3).map(|_| rng.below(1000)).collect();
        assert_eq!(first, [366, 740, 510], "published data would change with these");
    }

    #[test]
    fn streams_of_different_purposes_differ() {
        let a = Rng::split(1, "folders", 0).draw();
        assert_ne!(a, Rng::split(1, "files", 0).draw());
        assert_ne!(a, Rng::split(1, "folders", 1).draw());
        assert_ne!(a, Rng::split(2, "folders", 0).draw());
        assert_eq!(a, Rng::split(1, "folders", 0).draw());
    }

    #[test]
    fn a_shuffle_keeps_everything_and_moves_most() {
        let mut items: Vec<u32> = (0..1000).collect();
        Rng::new(7).shuffle(&mut items);
        let still = items.iter().enumerate().filter(|(i, n)| *i as u32 == **n).count();
        assert!(still < 20, "{still} of 1000 stayed");
        items.sort_unstable();
        assert!(items.iter().copied().eq(0..1000));
    }

    #[test]
    fn numbers_below_a_bound_are_spread_evenly() {
        let mut rng = Rng::new(3);
        let mut seen = [0_u32; 10];
        for _ in 0..100_000 {
            seen[rng.index(10)] += 1;
        }
        assert!(seen.iter().all(|n| (9_500..10_500).contains(n)), "{seen:?}");
        assert_eq!(rng.below(0), 0);
    }
}
