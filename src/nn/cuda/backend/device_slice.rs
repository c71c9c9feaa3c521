//! Typed slices of device memory. All addresses of the engine come from here, and all checks of sizes end here: a slice knows the
//! type and the number of its elements, it is cut by [`DeviceSlice::part`] alone, and it borrows the tensor, buffer or arena that
//! owns the memory. Its bare address can be read where a kernel's arguments and parameter structs are filled ([`Address`]).

use super::{Arg, storage_address, tensor_address};
use candle_core::backend::BackendStorage;
use candle_core::{CudaStorage, DType, Layout, Result, Tensor, bail};
use std::marker::PhantomData;

/// Element types that kernels work on.
pub(crate) trait Element: Copy + 'static {
    /// Candle's name of the type.
    const DTYPE: DType;
}

impl Element for f32 {
    const DTYPE: DType = DType::F32;
}

impl Element for u32 {
    const DTYPE: DType = DType::U32;
}

impl Element for half::f16 {
    const DTYPE: DType = DType::F16;
}

/// A device address as a field of a kernel's parameter struct; the default stands for a missing buffer. It is made of a slice.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Address(pub(super) u64);

impl Address {
    /// Whether it is a multiple of `bytes`; a missing buffer is.
    pub fn is_aligned(self, bytes: u64) -> bool {
        self.0.is_multiple_of(bytes)
    }
}

impl<T> From<DeviceSlice<'_, T>> for Address {
    fn from(slice: DeviceSlice<'_, T>) -> Self {
        Self(slice.at)
    }
}

impl<T> From<Option<DeviceSlice<'_, T>>> for Address {
    fn from(slice: Option<DeviceSlice<'_, T>>) -> Self {
        slice.map(Self::from).unwrap_or_default()
    }
}

impl<T: Into<Address>> From<T> for Arg {
    fn from(slice: T) -> Self {
        Self::Address(slice.into())
    }
}

/// `len` elements of type `T` in device memory that is borrowed for `'m`.
#[derive(Debug, PartialEq)]
pub(crate) struct DeviceSlice<'m, T> {
    at: u64,
    len: usize,
    memory: PhantomData<&'m [T]>,
}

// A slice is copied whatever its elements are, as a reference is; a derived implementation would ask `T: Copy`.
impl<T> Clone for DeviceSlice<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for DeviceSlice<'_, T> {}

impl<'m, T> DeviceSlice<'m, T> {
    pub(super) fn new(at: u64, len: usize) -> Self {
        Self { at, len, memory: PhantomData }
    }

    /// Number of elements.
    pub fn len(self) -> usize {
        self.len
    }

    /// `n` elements from `from` on.
    ///
    /// # Panics
    /// When there are not as many, as cutting a slice of the host does.
    #[track_caller]
    pub fn part(self, from: usize, n: usize) -> Self {
        let end = from.checked_add(n);
        assert!(
            end.is_some_and(|end| end <= self.len),
            "{n} elements from {from} on in a device slice of {}",
            self.len
        );
        Self::new(self.at + (from * size_of::<T>()) as u64, n)
    }

    /// All elements from `from` on.
    ///
    /// # Panics
    /// When it begins behind the end.
    #[track_caller]
    pub fn rest(self, from: usize) -> Self {
        assert!(from <= self.len, "the elements from {from} on in a device slice of {}", self.len);
        self.part(from, self.len - from)
    }

    /// The slice, if it has `n` elements or more.
    ///
    /// # Errors
    /// When it has fewer; the sentence names them as `what`.
    pub fn holding(self, n: usize, what: &str) -> Result<Self> {
        if self.len < n {
            bail!("{what}: {n} elements are asked of a device slice of {}", self.len)
        }
        Ok(self)
    }

    /// The slice, if it holds an array of `(number, distance between neighbours)` in each dimension.
    ///
    /// # Errors
    /// As [`DeviceSlice::holding`].
    pub fn holding_strided(self, dimensions: &[(usize, usize)], what: &str) -> Result<Self> {
        self.holding(extent(dimensions), what)
    }

    /// The slice without its borrow, for a value that is kept beside the owner of the memory, as captured graphs are: the owner is
    /// dropped together with it.
    pub fn resident(self) -> DeviceSlice<'static, T> {
        DeviceSlice::new(self.at, self.len)
    }
}

impl<'m, T: Element> DeviceSlice<'m, T> {
    /// The elements of a contiguous tensor.
    ///
    /// # Errors
    /// When the tensor is not on a GPU, not contiguous, or of another type.
    pub fn of(t: &'m Tensor) -> Result<Self> {
        Ok(Self::new(tensor_address(t, T::DTYPE)?, t.elem_count()))
    }

    /// The elements of a contiguous tensor whose elements have as many bytes, taken as `T`: batches travel as one tensor.
    ///
    /// # Errors
    /// As [`DeviceSlice::of`].
    pub fn of_bits(t: &'m Tensor) -> Result<Self> {
        if t.dtype().size_in_bytes() != size_of::<T>() {
            bail!("expected elements of {} bytes, not {:?}", size_of::<T>(), t.dtype())
        }
        Ok(Self::new(tensor_address(t, t.dtype())?, t.elem_count()))
    }

    /// The elements of a storage that a contiguous layout names.
    ///
    /// # Errors
    /// When the layout is not contiguous or the elements are of another type.
    pub fn of_storage(storage: &'m CudaStorage, layout: &Layout) -> Result<Self> {
        if !layout.is_contiguous() || storage.dtype() != T::DTYPE {
            bail!("expected contiguous elements of {:?}, not {:?} laid out as {layout:?}", T::DTYPE, storage.dtype())
        }
        let at = storage_address(storage, T::DTYPE)? + (layout.start_offset() * size_of::<T>()) as u64;
        Ok(Self::new(at, layout.shape().elem_count()))
    }

    /// The bits of the elements taken as another type of the same size.
    pub fn bits<U: Element>(self) -> DeviceSlice<'m, U> {
        const { assert!(size_of::<T>() == size_of::<U>()) };
        DeviceSlice::new(self.at, self.len)
    }
}

/// Elements that an array of `(number, distance between neighbours)` in each dimension spans.
fn extent(dimensions: &[(usize, usize)]) -> usize {
    if dimensions.iter().any(|(n, _)| *n == 0) {
        return 0;
    }
    1 + dimensions.iter().map(|(n, stride)| (n - 1) * stride).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(len: usize) -> DeviceSlice<'static, f32> {
        DeviceSlice::new(1024, len)
    }

    #[test]
    fn parts_count_elements_and_keep_their_type() {
        let part = slice(10).part(3, 4);
        assert_eq!((Address::from(part), part.len()), (Address(1024 + 12), 4));
        let halves = DeviceSlice::<half::f16>::new(1024, 10).rest(3);
        assert_eq!((Address::from(halves), halves.len()), (Address(1024 + 6), 7));
        assert_eq!(slice(10).part(10, 0).len(), 0);
        assert_eq!(slice(10).bits::<u32>().len(), 10);
        assert_eq!(Address::from(None::<DeviceSlice<'_, f32>>), Address::default());
    }

    #[test]
    #[should_panic(expected = "4 elements from 7 on in a device slice of 10")]
    fn a_part_beyond_the_end_is_refused() {
        slice(10).part(7, 4);
    }

    #[test]
    #[should_panic(expected = "in a device slice of 10")]
    fn a_part_whose_end_overflows_is_refused() {
        slice(10).part(1, usize::MAX);
    }

    #[test]
    #[should_panic(expected = "the elements from 5 on in a device slice of 4")]
    fn a_part_of_a_part_ends_where_that_ends() {
        slice(10).part(0, 4).rest(5);
    }

    #[test]
    fn slices_that_are_too_short_are_refused() {
        assert!(slice(10).holding(10, "x").is_ok());
        let error = slice(10).holding(11, "the bias").unwrap_err().to_string();
        assert!(error.contains("the bias: 11 elements"), "{error}");
        // Three rows of two numbers, four apart.
        assert!(slice(10).holding_strided(&[(3, 4), (2, 1)], "x").is_ok());
        assert!(slice(9).holding_strided(&[(3, 4), (2, 1)], "x").is_err());
        assert!(slice(0).holding_strided(&[(0, 4), (2, 1)], "x").is_ok());
    }

    #[test]
    fn tensors_of_the_cpu_or_of_another_type_are_no_device_slices() {
        let t = Tensor::zeros(4, DType::F32, &candle_core::Device::Cpu).unwrap();
        assert!(DeviceSlice::<f32>::of(&t).is_err());
        assert!(DeviceSlice::<half::f16>::of_bits(&t).is_err());
    }
}
