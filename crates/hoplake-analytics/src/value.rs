//! What programs keep and send: values of a fixed width, so that a state has its place by its vertex's number.

/// A value of fixed width, little-endian.
pub trait Value: Copy + Default + PartialEq + Send + Sync + 'static {
    /// How many bytes it takes.
    const WIDTH: usize;

    /// Writes it to the first [`Self::WIDTH`] bytes.
    ///
    /// # Panics
    /// If there are fewer.
    fn write(self, bytes: &mut [u8]);

    /// Reads it from the first [`Self::WIDTH`] bytes.
    ///
    /// # Panics
    /// If there are fewer.
    fn read(bytes: &[u8]) -> Self;
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl Value for $type {
            const WIDTH: usize = size_of::<Self>();

            fn write(self, bytes: &mut [u8]) {
                bytes[..Self::WIDTH].copy_from_slice(&self.to_le_bytes());
            }

            fn read(bytes: &[u8]) -> Self {
                let mut own = [0; size_of::<Self>()];
                own.copy_from_slice(&bytes[..Self::WIDTH]);
                Self::from_le_bytes(own)
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);

impl<A: Value, B: Value> Value for (A, B) {
    const WIDTH: usize = A::WIDTH + B::WIDTH;

    fn write(self, bytes: &mut [u8]) {
        self.0.write(bytes);
        self.1.write(&mut bytes[A::WIDTH..]);
    }

    fn read(bytes: &[u8]) -> Self {
        (A::read(bytes), B::read(&bytes[A::WIDTH..]))
    }
}

/// The bytes of some values, one after the other.
pub(crate) fn encode<V: Value>(values: &[V]) -> Vec<u8> {
    let mut bytes = vec![0; values.len() * V::WIDTH];
    values.iter().zip(bytes.chunks_exact_mut(V::WIDTH)).for_each(|(value, bytes)| value.write(bytes));
    bytes
}

/// The values that some bytes are; the last bytes are left out if they are not a whole value.
pub(crate) fn decode<V: Value>(bytes: &[u8]) -> Vec<V> {
    bytes.chunks_exact(V::WIDTH).map(V::read).collect()
}
