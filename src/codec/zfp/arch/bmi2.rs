//! Bit manipulation by the x86-64 instructions for it.

use super::Bmi;
use std::arch::x86_64::{__cpuid, _pdep_u64, _pext_u64};
use std::sync::OnceLock;

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

/// Whether the machine does not have bit extraction in microcode, at a cycle or more a bit. It does not say; but the
/// makers are known that had it so, and up to which family.
pub fn is_quick() -> bool {
    // (On a virtual machine the question takes longer than coding a thousand values.)
    static IS_QUICK: OnceLock<bool> = OnceLock::new();
    *IS_QUICK.get_or_init(|| {
        let [vendor, version] = [0, 1].map(__cpuid);
        let vendor = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes);
        is_quick_on(vendor.as_flattened(), version.eax)
    })
}

/// Given the maker's name and the signature, as the instruction `cpuid` tells them.
fn is_quick_on(vendor: &[u8], signature: u32) -> bool {
    const ZEN_3: u32 = 0x19;
    let family = match signature >> 8 & 0xf {
        0xf => 0xf + (signature >> 20 & 0xff),
        family => family,
    };
    let is_amd = [b"AuthenticAMD", b"HygonGenuine"]
        .iter()
        .any(|&amd| vendor == amd);
    !is_amd || family >= ZEN_3
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

#[cfg(test)]
mod tests {
    use super::is_quick_on;

    #[test]
    fn machines_with_bit_extraction_in_microcode_are_told() {
        let amd = |signature| is_quick_on(b"AuthenticAMD", signature);
        assert!(!amd(0x0066_0f01), "Excavator");
        assert!(!amd(0x0080_0f12), "Zen 1");
        assert!(!amd(0x0083_0f10), "Zen 2");
        assert!(amd(0x00a0_0f11), "Zen 3");
        assert!(amd(0x00b0_0f21), "Zen 5");
        assert!(!is_quick_on(b"HygonGenuine", 0x0090_0f02), "Dhyana");
        assert!(is_quick_on(b"GenuineIntel", 0x0003_06c3), "Haswell");
    }
}
