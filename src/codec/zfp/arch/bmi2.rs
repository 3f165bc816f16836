//! Bit manipulation by the x86-64 instructions for it.

use super::Bmi;
use std::arch::x86_64::{_pdep_u64, _pext_u64};

/// Proof that the machine has BMI1 and BMI2.
#[derive(Clone, Copy)]
pub struct Bmi2(());

impl Bmi2 {
    /// # Safety
    /// The machine must have BMI1 and BMI2.
    #[inline(always)]
    pub unsafe fn assumed() -> Bmi2 {
        Bmi2(())
    }
}

const EVERY_FOURTH: u64 = 0x1111_1111_1111_1111;

impl Bmi for Bmi2 {
    const EXTRACTS: bool = true;

    #[inline(always)]
    fn extract(self, word: u64, mask: u64) -> u64 {
        // SAFETY: `self` proves that the machine has the instruction.
        unsafe { _pext_u64(word, mask) }
    }

    #[inline(always)]
    fn select(self, mask: u64, rank: u32) -> u32 {
        // SAFETY: `self` proves that the machine has the instruction.
        unsafe { _pdep_u64(1u64.unbounded_shl(rank), mask) }.trailing_zeros()
    }

    #[inline(always)]
    fn spread(self, word: u64) -> u64 {
        // SAFETY: `self` proves that the machine has the instruction.
        unsafe { _pdep_u64(word, EVERY_FOURTH) }
    }

    #[inline(always)]
    fn unspread(self, word: u64) -> u64 {
        // SAFETY: `self` proves that the machine has the instruction.
        unsafe { _pext_u64(word, EVERY_FOURTH) }
    }
}
