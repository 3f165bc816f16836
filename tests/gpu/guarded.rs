//! Memory between pages that cannot be touched.

use std::ops::{Deref, DerefMut};

const PAGE: usize = 4096;

/// Values that end just before, or begin just after, a page that cannot be touched.
pub struct Guarded<T> {
    pages: *mut u8,
    length: usize,
    first: *mut T,
    count: usize,
}

impl<T: Copy> Guarded<T> {
    pub fn new(values: &[T], at_the_end: bool) -> Self {
        let bytes = size_of_val(values);
        let room = bytes.next_multiple_of(PAGE);
        let length = room + 2 * PAGE;
        // SAFETY: fresh pages, of which those in between are made accessible, and the values copied there.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let pages = libc::mmap(std::ptr::null_mut(), length, libc::PROT_NONE, flags, -1, 0);
            assert_ne!(pages, libc::MAP_FAILED);
            let pages: *mut u8 = pages.cast();
            let inner = pages.add(PAGE);
            if room > 0 {
                let access = libc::PROT_READ | libc::PROT_WRITE;
                assert_eq!(libc::mprotect(inner.cast(), room, access), 0);
            }
            let first: *mut T = inner.add(if at_the_end { room - bytes } else { 0 }).cast();
            first.copy_from_nonoverlapping(values.as_ptr(), values.len());
            Self {
                pages,
                length,
                first,
                count: values.len(),
            }
        }
    }

    pub fn address(&self) -> u64 {
        self.first as u64
    }
}

impl<T> Deref for Guarded<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: `new` put that many values there.
        unsafe { std::slice::from_raw_parts(self.first, self.count) }
    }
}

impl<T> DerefMut for Guarded<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.first, self.count) }
    }
}

impl<T> Drop for Guarded<T> {
    fn drop(&mut self) {
        // SAFETY: `new` mapped these pages.
        unsafe { libc::munmap(self.pages.cast(), self.length) };
    }
}
