//! How a thread rounds, and whether it takes subnormal numbers for zeros.

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FloatMode(u64);

impl FloatMode {
    #[cfg(target_arch = "x86_64")]
    pub fn here() -> Self {
        /// The flags of what happened so far.
        const FLAGS: u32 = 0x3f;
        let mut register = 0_u32;
        // SAFETY: it writes these four bytes and nothing else.
        unsafe {
            std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut register, options(nostack, preserves_flags));
        }
        FloatMode((register & !FLAGS).into())
    }

    #[cfg(target_arch = "aarch64")]
    pub fn here() -> Self {
        let register: u64;
        // SAFETY: it reads a register.
        unsafe {
            std::arch::asm!("mrs {}, fpcr", out(reg) register, options(nomem, nostack, preserves_flags));
        }
        FloatMode(register)
    }

    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub fn here() -> Self {
        FloatMode(0)
    }
}
