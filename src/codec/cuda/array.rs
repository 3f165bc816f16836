//! Items in memory of a device, and their way there and back.

use super::kernels::{BoxJob, FieldsJob, GatherJob, SampledError, Span, Survey};
use super::{Entered, Lent, Memory, Pinned, Result};
use std::marker::PhantomData;

/// What kernels read and write: any bytes make one.
///
/// # Safety
/// So it must be, and the type have no padding.
pub unsafe trait Plain: Copy {}

// SAFETY: numbers.
unsafe impl Plain for i16 {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}
// SAFETY: as above.
unsafe impl Plain for f32 {}
// SAFETY: as above.
unsafe impl Plain for f64 {}
// SAFETY: as above.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

macro_rules! plain {
    ($($job:ty),*) => {$(
        // SAFETY: numbers without a gap, as the assertions on their layout say.
        unsafe impl Plain for $job {}
    )*};
}
plain!(BoxJob, FieldsJob, GatherJob, SampledError, Span, Survey);

/// Items in memory of a device.
pub struct Array<T> {
    memory: Lent<Memory>,
    len: usize,
    items: PhantomData<T>,
}

impl<T: Plain> Array<T> {
    /// Room for items; what is there is left over from others.
    pub fn room(work: &Entered, len: usize) -> Result<Self> {
        Ok(Self {
            memory: work.device().lend_memory((len * size_of::<T>()).max(1))?,
            len,
            items: PhantomData,
        })
    }

    pub fn of(work: &Entered, items: &[T]) -> Result<Self> {
        let array = Self::room(work, items.len())?;
        // SAFETY: plain items, as bytes.
        let bytes =
            unsafe { std::slice::from_raw_parts(items.as_ptr().cast::<u8>(), size_of_val(items)) };
        // SAFETY: the memory was lent for as many bytes.
        unsafe { work.upload(array.address(), bytes)? };
        Ok(array)
    }

    /// The same without a copy on the way; fastest from page-locked memory.
    ///
    /// # Safety
    /// The items must stay as they are until the work is done.
    pub unsafe fn of_borrowed(work: &Entered, items: &[T]) -> Result<Self> {
        let array = Self::room(work, items.len())?;
        // SAFETY: the memory was lent for as many bytes; for the items, the caller's promise.
        unsafe {
            work.upload_from(array.address(), items.as_ptr().cast(), size_of_val(items))?;
        }
        Ok(array)
    }

    pub fn address(&self) -> u64 {
        self.memory.address()
    }

    /// Address of the item at `index`.
    pub fn address_of(&self, index: usize) -> u64 {
        self.address() + (index * size_of::<T>()) as u64
    }

    /// Starts to bring the items back.
    pub fn fetch<'a>(&self, work: &'a Entered) -> Result<Fetched<'a, T>> {
        let bytes = self.len * size_of::<T>();
        let mut fetched = Fetched {
            pinned: work.device().lend_pinned(bytes.max(1))?,
            work,
            len: self.len,
            items: PhantomData,
        };
        let to = fetched.pinned.bytes_mut().as_mut_ptr();
        // SAFETY: both were lent for as many bytes, and neither goes back before the work is done.
        unsafe { work.download(to, self.address(), bytes)? };
        Ok(fetched)
    }
}

/// Items that are on their way from a device.
pub struct Fetched<'a, T> {
    pinned: Lent<Pinned>,
    work: &'a Entered,
    len: usize,
    items: PhantomData<T>,
}

impl<T: Plain> Fetched<'_, T> {
    /// The items, once they have come.
    pub fn items(&self) -> Result<&[T]> {
        self.work.settle()?;
        let words = self.pinned.words();
        // SAFETY: as many bytes were lent, aligned for words, and any bytes make plain items.
        Ok(unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), self.len) })
    }
}

impl<T> Drop for Fetched<'_, T> {
    fn drop(&mut self) {
        // The device may still be writing to what is given back here.
        let _ = self.work.settle();
    }
}
