//! One expression for several registers.

/// `[e(0), e(1), e(2), e(3)]`. A closure for `array::map` would be a function of its own, called with its
/// registers in memory.
macro_rules! four {
    (|$i:ident| $e:expr) => {
        [four!(0, $i, $e), four!(1, $i, $e), four!(2, $i, $e), four!(3, $i, $e)]
    };
    ($n:expr, $i:ident, $e:expr) => {{
        let $i: usize = $n;
        $e
    }};
}

/// As `four`.
macro_rules! two {
    (|$i:ident| $e:expr) => {
        [four!(0, $i, $e), four!(1, $i, $e)]
    };
}

/// As `four`.
macro_rules! eight {
    (|$i:ident| $e:expr) => {
        [
            four!(0, $i, $e),
            four!(1, $i, $e),
            four!(2, $i, $e),
            four!(3, $i, $e),
            four!(4, $i, $e),
            four!(5, $i, $e),
            four!(6, $i, $e),
            four!(7, $i, $e),
        ]
    };
}
