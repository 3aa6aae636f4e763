//! Values with keys that are never used twice, in a vector.

/// Values by key. A key is the number of a place, and above it how often the place was used.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Place<T> {
    uses: u32,
    value: Option<T>,
}

impl<T> Slots<T> {
    /// No values.
    pub(crate) fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Keeps a value and returns its key.
    pub(crate) fn insert(&mut self, value: T) -> u64 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place { uses: 0, value: None });
            (self.places.len() - 1) as u32
        });
        let place = &mut self.places[number as usize];
        place.value = Some(value);
        u64::from(place.uses) << 32 | u64::from(number)
    }

    fn place(&mut self, key: u64) -> Option<&mut Place<T>> {
        self.places.get_mut(key as u32 as usize).filter(|place| u64::from(place.uses) == key >> 32)
    }

    /// The value of `key`, if it is still there.
    pub(crate) fn get_mut(&mut self, key: u64) -> Option<&mut T> {
        self.place(key)?.value.as_mut()
    }

    /// Takes the value of `key` out, if it is still there.
    pub(crate) fn remove(&mut self, key: u64) -> Option<T> {
        let place = self.place(key)?;
        let value = place.value.take()?;
        place.uses = place.uses.wrapping_add(1);
        self.free.push(key as u32);
        Some(value)
    }

    /// All values.
    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.places.iter().filter_map(|place| place.value.as_ref())
    }

    /// All values, to be changed.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.places.iter_mut().filter_map(|place| place.value.as_mut())
    }

    /// The keys of all values.
    pub(crate) fn keys(&self) -> Vec<u64> {
        let with_number = self.places.iter().zip(0u64..);
        let used = with_number.filter(|(place, _)| place.value.is_some());
        used.map(|(place, number)| u64::from(place.uses) << 32 | number).collect()
    }
}
