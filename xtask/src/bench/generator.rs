//! Pseudo-random numbers: the same on every run, and nothing that would compress.

/// xorshift64*, after Vigna, "An experimental exploration of Marsaglia's xorshift generators".
#[derive(Clone, Debug)]
pub(super) struct Generator(u64);

impl Generator {
    pub(super) fn new(seed: u64) -> Self {
        // Zero is the one state it cannot leave.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Evenly between 0 and 1, both excluded.
    fn unit(&mut self) -> f64 {
        let bits = u32::try_from(self.next() >> 32).expect("32 bits are left");
        (f64::from(bits) + 0.5) / (f64::from(u32::MAX) + 1.0)
    }

    /// Standard normal, by Box and Muller.
    pub(super) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.unit().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    pub(super) fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.next().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
        let bytes = |seed| {
            let mut out = [0; 13];
            Generator::new(seed).fill(&mut out);
            out
        };
        assert_eq!(bytes(7), bytes(7));
        assert_ne!(bytes(7), bytes(8));
    }

    #[test]
    fn normal_numbers_have_mean_zero_and_variance_one() {
        const COUNT: usize = 20_000;
        let mut generator = Generator::new(1);
        let numbers: Vec<f64> = (0..COUNT).map(|_| generator.normal()).collect();
        #[expect(clippy::cast_precision_loss, reason = "20,000 is exact in f64")]
        let mean_of = |values: &[f64]| values.iter().sum::<f64>() / COUNT as f64;
        let squares: Vec<f64> = numbers.iter().map(|x| x * x).collect();
        assert!(mean_of(&numbers).abs() < 0.03);
        assert!((mean_of(&squares) - 1.0).abs() < 0.05);
    }
}
