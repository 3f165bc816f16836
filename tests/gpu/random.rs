//! A small generator, so that a failing case is a seed.

pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }
    /// In -1..1.
    pub fn unit(&mut self) -> f64 {
        (self.next() as i64) as f64 / (1u64 << 63) as f64
    }
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}
