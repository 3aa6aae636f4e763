//! The whole state of a value as bytes: what a checkpoint of a drive saves and restores.
//!
//! A checkpoint is restored in place, into a value that was built from the same settings. So only what changes while
//! the value is used is saved; settings, tables and policies are there already. [`State`] saves and restores such a
//! value. [`Value`] is a type that is all state, and is built from the bytes.
//!
//! A type declares its state by its fields:
//!
//! ```text
//! state! { Queues { queues, turns, count } fixed { are_kept_apart } }
//! value! { Waiting { request, time } }
//! value! { Kind enum { Read, Write { lpn, len }, Erase(superblock) } }
//! ```
//!
//! The declaration names every field of the type: a field that it does not name does not compile. `fixed` fields follow
//! from the settings, or are of no consequence, and are not saved. `parts` fields are options of which the settings
//! decide whether they are there. `where [T: Bound]` after the type declares its parameters. All numbers are little-endian.

use super::huge::Huge;
use super::number_map::NumberMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that a writer or a reader passes on at a time.
const CHUNK: usize = 1 << 16;

/// Elements of a large array that are saved as one value if they are all the same.
const RUN: usize = 1 << 12;

/// Why a state could not be restored.
#[derive(Debug)]
pub enum StateError {
    /// Reading failed.
    Io(io::Error),
    /// The bytes are not those of such a state: what they say that cannot be.
    Damaged(&'static str),
}

impl From<io::Error> for StateError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Where a [`StateWriter`] passes its bytes on.
type Sink<'a> = &'a mut dyn FnMut(&[u8]) -> io::Result<()>;

/// Writes states, or only counts their bytes.
pub struct StateWriter<'a> {
    sink: Option<Sink<'a>>,
    chunk: Vec<u8>,
    passed_on: u64,
    failed: Option<io::Error>,
}

impl std::fmt::Debug for StateWriter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StateWriter").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

impl<'a> StateWriter<'a> {
    /// A writer that passes its bytes on to `sink`, in chunks that are whole numbers of 8 bytes.
    pub fn to(sink: Sink<'a>) -> Self {
        Self { sink: Some(sink), chunk: Vec::with_capacity(CHUNK), ..Self::counting() }
    }

    /// A writer that only counts the bytes.
    pub fn counting() -> Self {
        Self { sink: None, chunk: Vec::new(), passed_on: 0, failed: None }
    }

    /// The bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.passed_on + self.chunk.len() as u64
    }

    /// Whether the bytes are only counted, so that any others of the same number do.
    pub fn is_counting(&self) -> bool {
        self.sink.is_none()
    }

    /// Writes bytes.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        if self.sink.is_none() {
            self.passed_on += bytes.len() as u64;
        } else if self.chunk.len() + bytes.len() > CHUNK {
            self.put_slowly(bytes);
        } else {
            self.chunk.extend_from_slice(bytes);
        }
    }

    /// Writes numbers of `N` bytes each.
    #[inline]
    fn put_all<const N: usize, T: Copy>(&mut self, mut numbers: &[T], bytes: impl Fn(T) -> [u8; N]) {
        if self.sink.is_none() {
            self.passed_on += (N * numbers.len()) as u64;
            return;
        }
        while let [first, others @ ..] = numbers {
            let (at, room) = (self.chunk.len(), (CHUNK - self.chunk.len()) / N);
            if room == 0 {
                self.put_slowly(&bytes(*first));
                numbers = others;
                continue;
            }
            let (now, later) = numbers.split_at(room.min(numbers.len()));
            self.chunk.resize(at + N * now.len(), 0);
            for (to, &number) in self.chunk[at..].as_chunks_mut().0.iter_mut().zip(now) {
                *to = bytes(number);
            }
            numbers = later;
        }
    }

    #[cold]
    fn put_slowly(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(CHUNK - self.chunk.len()));
            self.chunk.extend_from_slice(now);
            bytes = later;
            if self.chunk.len() == CHUNK {
                self.pass_on();
            }
        }
    }

    fn pass_on(&mut self) {
        if let (Some(sink), None) = (&mut self.sink, &self.failed) {
            self.failed = sink(&self.chunk).err();
        }
        self.passed_on += self.chunk.len() as u64;
        self.chunk.clear();
    }

    /// What is to be written cannot be read: the writer fails.
    pub fn fail(&mut self, error: io::Error) {
        self.failed.get_or_insert(error);
    }

    /// Fills the bytes up to a whole number of 8 bytes, and passes on what is left. Returns the number of bytes.
    ///
    /// # Errors
    /// When the sink has failed.
    pub fn finish(mut self) -> io::Result<u64> {
        let filled = self.bytes().next_multiple_of(8) - self.bytes();
        self.put(&[0; 8][..filled as usize]);
        self.pass_on();
        self.failed.map_or(Ok(self.passed_on), Err)
    }
}

/// Where a [`StateReader`] gets its bytes.
type Source<'a> = &'a mut dyn FnMut(&mut [u8]) -> Result<(), StateError>;

/// Reads states.
pub struct StateReader<'a> {
    source: Source<'a>,
    chunk: Vec<u8>,
    at: usize,
    left: u64,
}

impl std::fmt::Debug for StateReader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StateReader").field("left", &self.left).finish_non_exhaustive()
    }
}

impl<'a> StateReader<'a> {
    /// A reader of the next `bytes` bytes of `source`, which are a whole number of 8 bytes.
    pub fn of(source: Source<'a>, bytes: u64) -> Self {
        Self { source, chunk: Vec::new(), at: 0, left: bytes }
    }

    /// Reads as many bytes as `bytes` has.
    ///
    /// # Errors
    /// When reading fails, or the bytes end before.
    #[inline]
    pub fn get(&mut self, bytes: &mut [u8]) -> Result<(), StateError> {
        if let Some(from) = self.chunk.get(self.at..self.at + bytes.len()) {
            bytes.copy_from_slice(from);
            self.at += bytes.len();
            return Ok(());
        }
        self.get_slowly(bytes)
    }

    /// Reads numbers of `N` bytes each.
    #[inline]
    fn get_all<const N: usize, T>(
        &mut self,
        mut numbers: &mut [T],
        number: impl Fn([u8; N]) -> T,
    ) -> Result<(), StateError> {
        while !numbers.is_empty() {
            let (whole, _) = self.chunk[self.at..].as_chunks::<N>();
            if whole.is_empty() {
                let mut bytes = [0; N];
                self.get_slowly(&mut bytes)?;
                numbers[0] = number(bytes);
                numbers = &mut numbers[1..];
                continue;
            }
            let count = whole.len().min(numbers.len());
            let (now, later) = std::mem::take(&mut numbers).split_at_mut(count);
            for (to, &bytes) in now.iter_mut().zip(whole) {
                *to = number(bytes);
            }
            self.at += N * now.len();
            numbers = later;
        }
        Ok(())
    }

    #[cold]
    fn get_slowly(&mut self, bytes: &mut [u8]) -> Result<(), StateError> {
        for byte in bytes {
            if self.at == self.chunk.len() {
                let next = self.left.min(CHUNK as u64);
                if next == 0 {
                    return Err(StateError::Damaged("a section is too short"));
                }
                self.chunk.resize(next as usize, 0);
                (self.source)(&mut self.chunk)?;
                (self.at, self.left) = (0, self.left - next);
            }
            *byte = self.chunk[self.at];
            self.at += 1;
        }
        Ok(())
    }

    /// All states have been read.
    ///
    /// # Errors
    /// If bytes are left.
    pub fn end(self) -> Result<(), StateError> {
        let left = self.left as usize + self.chunk.len() - self.at;
        if left < 8 && self.chunk[self.at..].iter().all(|&byte| byte == 0) {
            Ok(())
        } else {
            Err(StateError::Damaged("a section is too long"))
        }
    }
}

/// Something with a state that can be saved, and restored in place.
pub trait State {
    /// Writes the state.
    fn save_state(&self, out: &mut StateWriter<'_>);

    /// Restores a state that a value with the same settings has written.
    ///
    /// # Errors
    /// When reading fails, or the bytes are not such a state.
    fn load_state(&mut self, from: &mut StateReader<'_>) -> Result<(), StateError>;
}

/// A type that is all state, so that a value is built from its bytes. A value is also a [`State`].
pub trait Value: Sized {
    /// Writes the value.
    fn save(&self, out: &mut StateWriter<'_>);

    /// Reads a value.
    ///
    /// # Errors
    /// When reading fails, or the bytes are not such a value.
    fn load(from: &mut StateReader<'_>) -> Result<Self, StateError>;

    /// Writes values one after the other.
    fn save_all(values: &[Self], out: &mut StateWriter<'_>) {
        values.iter().for_each(|value| value.save(out));
    }

    /// Reads values that [`Value::save_all`] has written.
    ///
    /// # Errors
    /// When reading fails, or the bytes are not such values.
    fn load_all(values: &mut [Self], from: &mut StateReader<'_>) -> Result<(), StateError> {
        for value in values {
            *value = Self::load(from)?;
        }
        Ok(())
    }
}

/// Saves an option whose presence follows from the settings.
pub fn save_part<T: State>(part: &Option<T>, out: &mut StateWriter<'_>) {
    part.is_some().save(out);
    part.iter().for_each(|part| part.save_state(out));
}

/// Restores an option whose presence follows from the settings.
///
/// # Errors
/// When reading fails, or the bytes are of settings with another presence.
pub fn load_part<T: State>(part: &mut Option<T>, from: &mut StateReader<'_>) -> Result<(), StateError> {
    if bool::load(from)? != part.is_some() {
        return Err(StateError::Damaged("it has other parts than this drive"));
    }
    part.iter_mut().try_for_each(|part| part.load_state(from))
}

/// Implements [`State`] for a [`Value`].
#[macro_export]
macro_rules! state_of_value {
    ($type:ty $(where $($of:tt)*)?) => {
        impl $(<$($of)*>)? $crate::base::state::State for $type {
            #[inline]
            fn save_state(&self, out: &mut $crate::base::state::StateWriter<'_>) {
                $crate::base::state::Value::save(self, out);
            }

            #[inline]
            fn load_state(
                &mut self,
                from: &mut $crate::base::state::StateReader<'_>,
            ) -> ::core::result::Result<(), $crate::base::state::StateError> {
                *self = $crate::base::state::Value::load(from)?;
                ::core::result::Result::Ok(())
            }
        }
    };
}

/// Implements [`State`] for a struct by its fields; see the [module](self).
#[macro_export]
macro_rules! state {
    ($type:ty { ..tuple $($field:ident),* }) => {
        impl $crate::base::state::State for $type {
            fn save_state(&self, out: &mut $crate::base::state::StateWriter<'_>) {
                let Self($($field),*) = self;
                $($crate::base::state::State::save_state($field, out);)*
            }

            fn load_state(
                &mut self,
                from: &mut $crate::base::state::StateReader<'_>,
            ) -> ::core::result::Result<(), $crate::base::state::StateError> {
                let Self($($field),*) = self;
                $($crate::base::state::State::load_state($field, from)?;)*
                ::core::result::Result::Ok(())
            }
        }
    };
    ($type:ty $(where [$($of:tt)*])? { $($field:ident),* $(,)? } $(parts { $($part:ident),* $(,)? })?
     $(fixed { $($fixed:ident),* $(,)? })?) => {
        impl $(<$($of)*>)? $crate::base::state::State for $type {
            fn save_state(&self, out: &mut $crate::base::state::StateWriter<'_>) {
                let Self { $($field,)* $($($part,)*)? $($($fixed: _,)*)? } = self;
                $($crate::base::state::State::save_state($field, out);)*
                $($($crate::base::state::save_part($part, out);)*)?
            }

            fn load_state(
                &mut self,
                from: &mut $crate::base::state::StateReader<'_>,
            ) -> ::core::result::Result<(), $crate::base::state::StateError> {
                let Self { $($field,)* $($($part,)*)? $($($fixed: _,)*)? } = self;
                $($crate::base::state::State::load_state($field, from)?;)*
                $($($crate::base::state::load_part($part, from)?;)*)?
                ::core::result::Result::Ok(())
            }
        }
    };
}

/// Implements [`Value`] and [`State`] for a struct or an enum by its fields; see the [module](self).
#[macro_export]
macro_rules! value {
    ($type:ty { $($field:ident),* $(,)? }) => {
        impl $crate::base::state::Value for $type {
            #[inline]
            fn save(&self, out: &mut $crate::base::state::StateWriter<'_>) {
                let Self { $($field),* } = self;
                $($crate::base::state::Value::save($field, out);)*
            }

            #[inline]
            fn load(
                from: &mut $crate::base::state::StateReader<'_>,
            ) -> ::core::result::Result<Self, $crate::base::state::StateError> {
                ::core::result::Result::Ok(Self { $($field: $crate::base::state::Value::load(from)?),* })
            }
        }

        $crate::state_of_value! { $type }
    };
    ($type:ty { ..tuple $($field:ident),* }) => {
        impl $crate::base::state::Value for $type {
            #[inline]
            fn save(&self, out: &mut $crate::base::state::StateWriter<'_>) {
                let Self($($field),*) = self;
                $($crate::base::state::Value::save($field, out);)*
            }

            #[inline]
            fn load(
                from: &mut $crate::base::state::StateReader<'_>,
            ) -> ::core::result::Result<Self, $crate::base::state::StateError> {
                $(let $field = $crate::base::state::Value::load(from)?;)*
                ::core::result::Result::Ok(Self($($field),*))
            }
        }

        $crate::state_of_value! { $type }
    };
    ($type:ident enum { $($variant:ident $(($($place:ident),*))? $({ $($field:ident),* })?),+ $(,)? }) => {
        impl $crate::base::state::Value for $type {
            #[inline]
            fn save(&self, out: &mut $crate::base::state::StateWriter<'_>) {
                #[derive(Clone, Copy)]
                enum Number { $($variant),+ }
                match self {
                    $(Self::$variant $(($($place),*))? $({ $($field),* })? => {
                        $crate::base::state::Value::save(&(Number::$variant as u8), out);
                        $($($crate::base::state::Value::save($place, out);)*)?
                        $($($crate::base::state::Value::save($field, out);)*)?
                    })+
                }
            }

            #[inline]
            fn load(
                from: &mut $crate::base::state::StateReader<'_>,
            ) -> ::core::result::Result<Self, $crate::base::state::StateError> {
                #[derive(Clone, Copy)]
                enum Number { $($variant),+ }
                let number: u8 = $crate::base::state::Value::load(from)?;
                $(if number == Number::$variant as u8 {
                    $($(let $place = $crate::base::state::Value::load(from)?;)*)?
                    $($(let $field = $crate::base::state::Value::load(from)?;)*)?
                    return ::core::result::Result::Ok(
                        Self::$variant $(($($place),*))? $({ $($field),* })?
                    );
                })+
                ::core::result::Result::Err(
                    $crate::base::state::StateError::Damaged(concat!("it has no such ", stringify!($type)))
                )
            }
        }

        $crate::state_of_value! { $type }
    };
}

pub use crate::{state, state_of_value, value};

macro_rules! numbers {
    ($($number:ty),+) => {$(
        impl Value for $number {
            #[inline(always)]
            fn save(&self, out: &mut StateWriter<'_>) {
                out.put(&self.to_le_bytes());
            }

            #[inline(always)]
            fn load(from: &mut StateReader<'_>) -> Result<Self, StateError> {
                let mut bytes = [0; size_of::<Self>()];
                from.get(&mut bytes)?;
                Ok(Self::from_le_bytes(bytes))
            }

            fn save_all(values: &[Self], out: &mut StateWriter<'_>) {
                out.put_all(values, Self::to_le_bytes);
            }

            fn load_all(values: &mut [Self], from: &mut StateReader<'_>) -> Result<(), StateError> {
                from.get_all(values, Self::from_le_bytes)
            }
        }

        state_of_value! { $number }
    )+};
}

numbers!(u8, u16, u32, u64, u128, i8, i16, i32, i64, f32, f64);

impl Value for usize {
    fn save(&self, out: &mut StateWriter<'_>) {
        (*self as u64).save(out);
    }

    fn load(from: &mut StateReader<'_>) -> Result<Self, StateError> {
        Self::try_from(u64::load(from)?).map_err(|_| StateError::Damaged("a number is too large"))
    }
}

state_of_value! { usize }

impl Value for bool {
    #[inline]
    fn save(&self, out: &mut StateWriter<'_>) {
        u8::from(*self).save(out);
    }

    #[inline]
    fn load(from: &mut StateReader<'_>) -> Result<Self, StateError> {
        match u8::load(from)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(StateError::Damaged("a truth value is neither 0 nor 1")),
        }
    }
}

state_of_value! { bool }

impl Value for String {
    fn save(&self, out: &mut StateWriter<'_>) {
        self.len().save(out);
        out.put(self.as_bytes());
    }

    fn load(from: &mut StateReader<'_>) -> Result<Self, StateError> {
        Self::from_utf8(Vec::load(from)?).map_err(|_| StateError::Damaged("a text is not UTF-8"))
    }
}

state_of_value! { String }

macro_rules! tuples {
    ($(($($name:ident $at:tt),+)),+) => {$(
        impl<$($name: Value),+> Value for ($($name,)+) {
            #[inline]
            fn save(&self, out: &mut StateWriter<'_>) {
                $(self.$at.save(out);)+
            }

            #[inline]
            fn load(from: &mut StateReader<'_>) -> Result<Self, StateError> {
                Ok(($($name::load(from)?,)+))
            }
        }

        state_of_value! { ($($name,)+) where $($name: Value),+ }
    )+};
}

tuples!((A 0, B 1), (A 0, B 1, C 2), (A 0, B 1, C 2, D 3));

impl<T: Value> Value for Option<T> {
    #[inline]
    fn save(&self, out: &mut StateWriter<'_>) {
        self.is_some().save(out);
        if let Some(value) = self {
            value.save(out);
        }
    }

    #[inline]
    fn load(from: &mut StateReader<'_>) -> Result<Self, StateError> {
        if bool::load(from)? { T::load(from).map(Some) } else { Ok(None) }
    }
}

state_of_value! { Option<T> where T: Value }

impl<T: Value> Value for Reverse<T> {
    fn save(&self, out: &mut StateWriter<'_>) {
        self.0.save(out);
    }

    fn load(from: &mut StateReader<'_>) -> Result<Self, StateError> {
        T::load(from).map(Reverse)
    }
}

state_of_value! { Reverse<T> where T: Value }

/// The number of values that follow.
fn save_len(len: usize, out: &mut StateWriter<'_>) {
    len.save(out);
}

/// Reads as many values as the number before them says.
fn load_many<T: Value>(from: &mut StateReader<'_>, mut add: impl FnMut(T)) -> Result<(), StateError> {
    for _ in 0..u64::load(from)? {
        add(T::load(from)?);
    }
    Ok(())
}

macro_rules! collections {
    ($([$($of:tt)*] $type:ty, $item:ty, $add:ident;)+) => {$(
        impl<$($of)*> Value for $type {
            fn save(&self, out: &mut StateWriter<'_>) {
                save_len(self.len(), out);
                self.iter().for_each(|item| item.save(out));
            }

            fn load(from: &mut StateReader<'_>) -> Result<Self, StateError> {
                let mut all = Self::new();
                load_many(from, |item: $item| { all.$add(item); })?;
                Ok(all)
            }
        }

        impl<$($of)*> State for $type {
            fn save_state(&self, out: &mut StateWriter<'_>) {
                self.save(out);
            }

            /// Keeps the memory that the collection has.
            fn load_state(&mut self, from: &mut StateReader<'_>) -> Result<(), StateError> {
                self.clear();
                load_many(from, |item: $item| { self.$add(item); })
            }
        }
    )+};
}

collections! {
    [T: Value] Vec<T>, T, push;
    [T: Value] VecDeque<T>, T, push_back;
    [T: Value + Ord] BTreeSet<T>, T, insert;
}

impl<K: Value + Ord, V: Value> Value for BTreeMap<K, V> {
    fn save(&self, out: &mut StateWriter<'_>) {
        save_len(self.len(), out);
        for (key, value) in self {
            key.save(out);
            value.save(out);
        }
    }

    fn load(from: &mut StateReader<'_>) -> Result<Self, StateError> {
        let mut all = Self::new();
        load_many(from, |(key, value)| {
            all.insert(key, value);
        })?;
        Ok(all)
    }
}

state_of_value! { BTreeMap<K, V> where K: Value + Ord, V: Value }

/// The entries are saved in the order of their numbers: nothing may depend on the order of the table itself.
impl<V: Value> Value for NumberMap<V> {
    fn save(&self, out: &mut StateWriter<'_>) {
        save_len(self.len(), out);
        let mut entries: Vec<_> = self.iter().collect();
        entries.sort_unstable_by_key(|&(&number, _)| number);
        for (number, value) in entries {
            number.save(out);
            value.save(out);
        }
    }

    fn load(from: &mut StateReader<'_>) -> Result<Self, StateError> {
        let mut all = Self::default();
        load_many(from, |(number, value)| {
            all.insert(number, value);
        })?;
        Ok(all)
    }
}

state_of_value! { NumberMap<V> where V: Value }

/// The heap is saved as it is in memory: a heap built from a heap has the same order.
impl<T: Value + Ord> Value for BinaryHeap<T> {
    fn save(&self, out: &mut StateWriter<'_>) {
        save_len(self.len(), out);
        self.as_slice().iter().for_each(|item| item.save(out));
    }

    fn load(from: &mut StateReader<'_>) -> Result<Self, StateError> {
        Vec::load(from).map(Self::from)
    }
}

impl<T: Value + Ord> State for BinaryHeap<T> {
    fn save_state(&self, out: &mut StateWriter<'_>) {
        self.save(out);
    }

    /// Keeps the memory that the heap has.
    fn load_state(&mut self, from: &mut StateReader<'_>) -> Result<(), StateError> {
        let mut items = std::mem::take(self).into_vec();
        items.load_state(from)?;
        *self = items.into();
        Ok(())
    }
}

impl<T: Value> Value for Arc<[T]> {
    fn save(&self, out: &mut StateWriter<'_>) {
        save_len(self.len(), out);
        self.iter().for_each(|item| item.save(out));
    }

    fn load(from: &mut StateReader<'_>) -> Result<Self, StateError> {
        Vec::load(from).map(Self::from)
    }
}

state_of_value! { Arc<[T]> where T: Value }

impl<T: Value> Value for Box<[T]> {
    fn save(&self, out: &mut StateWriter<'_>) {
        save_len(self.len(), out);
        self.iter().for_each(|item| item.save(out));
    }

    fn load(from: &mut StateReader<'_>) -> Result<Self, StateError> {
        Vec::load(from).map(Self::from)
    }
}

impl<T: Value> Value for Box<T> {
    fn save(&self, out: &mut StateWriter<'_>) {
        (**self).save(out);
    }

    fn load(from: &mut StateReader<'_>) -> Result<Self, StateError> {
        T::load(from).map(Self::new)
    }
}

impl<T: Value> Value for Range<T> {
    fn save(&self, out: &mut StateWriter<'_>) {
        self.start.save(out);
        self.end.save(out);
    }

    fn load(from: &mut StateReader<'_>) -> Result<Self, StateError> {
        Ok(T::load(from)?..T::load(from)?)
    }
}

state_of_value! { Range<T> where T: Value }

impl<T: State> State for Mutex<T> {
    fn save_state(&self, out: &mut StateWriter<'_>) {
        self.lock().unwrap_or_else(PoisonError::into_inner).save_state(out);
    }

    fn load_state(&mut self, from: &mut StateReader<'_>) -> Result<(), StateError> {
        self.get_mut().unwrap_or_else(PoisonError::into_inner).load_state(from)
    }
}

impl<T: Value, const N: usize> Value for [T; N] {
    fn save(&self, out: &mut StateWriter<'_>) {
        self.iter().for_each(|item| item.save(out));
    }

    fn load(from: &mut StateReader<'_>) -> Result<Self, StateError> {
        let mut all = [const { None }; N];
        for item in &mut all {
            *item = Some(T::load(from)?);
        }
        Ok(all.map(|item| item.expect("every item has been read")))
    }
}

impl<T: State, const N: usize> State for [T; N] {
    fn save_state(&self, out: &mut StateWriter<'_>) {
        self.iter().for_each(|item| item.save_state(out));
    }

    fn load_state(&mut self, from: &mut StateReader<'_>) -> Result<(), StateError> {
        self.iter_mut().try_for_each(|item| item.load_state(from))
    }
}

/// The number of the items follows from the settings.
impl<T: State> State for [T] {
    fn save_state(&self, out: &mut StateWriter<'_>) {
        save_len(self.len(), out);
        self.iter().for_each(|item| item.save_state(out));
    }

    fn load_state(&mut self, from: &mut StateReader<'_>) -> Result<(), StateError> {
        check_len(self.len(), from)?;
        self.iter_mut().try_for_each(|item| item.load_state(from))
    }
}

fn check_len(len: usize, from: &mut StateReader<'_>) -> Result<(), StateError> {
    if usize::load(from)? == len {
        Ok(())
    } else {
        Err(StateError::Damaged("an array has another length than in this drive"))
    }
}

impl<T: State + ?Sized> State for Box<T> {
    fn save_state(&self, out: &mut StateWriter<'_>) {
        (**self).save_state(out);
    }

    fn load_state(&mut self, from: &mut StateReader<'_>) -> Result<(), StateError> {
        (**self).load_state(from)
    }
}

/// Stretches of equal elements are saved as one element, and are not written if the array has them already: memory
/// pages of a zeroed array that were never accessed remain so.
impl<T: Value + Clone + PartialEq> State for Huge<T> {
    fn save_state(&self, out: &mut StateWriter<'_>) {
        save_len(self.len(), out);
        for run in self.chunks(RUN) {
            let is_one = run.iter().all(|item| *item == run[0]);
            is_one.save(out);
            T::save_all(&run[..if is_one { 1 } else { run.len() }], out);
        }
    }

    fn load_state(&mut self, from: &mut StateReader<'_>) -> Result<(), StateError> {
        check_len(self.len(), from)?;
        for run in self.chunks_mut(RUN) {
            if !bool::load(from)? {
                T::load_all(run, from)?;
                continue;
            }
            let one = T::load(from)?;
            if run.iter().any(|item| *item != one) {
                run.fill(one);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Stream;

    /// The bytes of a state.
    fn bytes(of: &impl State) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut sink = |chunk: &[u8]| {
            bytes.extend_from_slice(chunk);
            Ok(())
        };
        let mut out = StateWriter::to(&mut sink);
        of.save_state(&mut out);
        let written = out.finish().unwrap();
        let mut counting = StateWriter::counting();
        of.save_state(&mut counting);
        assert_eq!((written, counting.finish().unwrap()), (bytes.len() as u64, bytes.len() as u64));
        bytes
    }

    fn restore(into: &mut impl State, mut bytes: &[u8]) -> Result<(), StateError> {
        let left = bytes.len() as u64;
        let mut source = |chunk: &mut [u8]| Ok(io::Read::read_exact(&mut bytes, chunk)?);
        let mut from = StateReader::of(&mut source, left);
        into.load_state(&mut from)?;
        from.end()
    }

    #[derive(Debug, PartialEq)]
    enum Kind {
        Read,
        Write { lpn: u32, len: Option<u16> },
        Erase(u8),
    }

    value! { Kind enum { Read, Write { lpn, len }, Erase(block) } }

    #[derive(Debug, PartialEq)]
    struct Pair(u32, f64);

    value! { Pair { ..tuple number, share } }

    #[derive(Debug)]
    struct All {
        kinds: VecDeque<Kind>,
        pairs: BTreeMap<u64, Pair>,
        numbers: NumberMap<[u16; 3]>,
        heap: BinaryHeap<Reverse<(u32, bool)>>,
        array: Huge<u32>,
        fixed_len: Box<[String]>,
        part: Option<Box<u128>>,
        stream: Stream,
        setting: u32,
    }

    state! {
        All { kinds, pairs, numbers, heap, array, fixed_len, stream }
        parts { part }
        fixed { setting }
    }

    fn empty(setting: u32) -> All {
        All {
            kinds: VecDeque::new(),
            pairs: BTreeMap::new(),
            numbers: NumberMap::default(),
            heap: BinaryHeap::new(),
            array: Huge::zeroed(3 * RUN + 5),
            fixed_len: vec![String::new(); 2].into(),
            part: Some(Box::new(0)),
            stream: Stream::new(1, "state"),
            setting,
        }
    }

    fn filled() -> All {
        let mut all = empty(1);
        all.kinds.extend([Kind::Erase(3), Kind::Read, Kind::Write { lpn: 70_000, len: Some(9) }]);
        all.pairs.extend([(7, Pair(1, -0.0)), (1 << 40, Pair(2, f64::INFINITY))]);
        for number in 0..100_u32 {
            all.numbers.insert(number * 7919 % 101, [number as u16; 3]);
            all.heap.push(Reverse((number * 31 % 97, number % 2 == 0)));
        }
        all.array[RUN..2 * RUN].fill(5);
        for at in 2 * RUN..3 * RUN {
            all.array[at] = all.stream.bits() as u32;
        }
        all.fixed_len = ["one".to_owned(), "zwölf".to_owned()].into();
        all.part = Some(Box::new(u128::MAX - 3));
        all
    }

    #[test]
    fn a_restored_state_is_the_saved_one_and_goes_on_alike() {
        let mut all = filled();
        let saved = bytes(&all);
        let mut other = empty(2);
        restore(&mut other, &saved).unwrap();
        assert_eq!(other.setting, 2, "settings are not restored");
        assert_eq!((&other.kinds, &other.pairs, &other.numbers), (&all.kinds, &all.pairs, &all.numbers));
        assert!(other.pairs[&7].1.is_sign_negative());
        assert_eq!((&*other.array, &other.fixed_len, &other.part), (&*all.array, &all.fixed_len, &all.part));
        for _ in 0..200 {
            assert_eq!((all.heap.pop(), all.stream.bits()), (other.heap.pop(), other.stream.bits()));
        }
        assert!(saved.len() < 4 * 2 * RUN, "equal elements are saved once");
    }

    #[test]
    fn the_stream_goes_on_after_an_odd_number_of_draws() {
        let mut stream = Stream::new(5, "odd");
        for draws in 0..80 {
            let mut other = Stream::new(6, "another");
            restore(&mut other, &bytes(&stream)).unwrap();
            let mut twin = stream.clone();
            for _ in 0..100 {
                assert_eq!(twin.bits(), other.bits(), "after {draws} draws");
            }
            stream.bits();
        }
    }

    #[test]
    fn what_is_not_the_state_of_such_a_value_is_refused() {
        let saved = bytes(&filled());
        let refused = |into: &mut All, bytes: &[u8]| match restore(into, bytes) {
            Err(StateError::Damaged(what)) => what,
            other => panic!("{other:?}"),
        };
        let mut without_part = empty(1);
        without_part.part = None;
        assert_eq!(refused(&mut without_part, &saved), "it has other parts than this drive");
        let mut shorter = empty(1);
        shorter.array = Huge::zeroed(RUN);
        assert_eq!(refused(&mut shorter, &saved), "an array has another length than in this drive");
        assert_eq!(refused(&mut empty(1), &saved[..saved.len() - 8]), "a section is too short");
        let longer = [saved.as_slice(), &[0; 8]].concat();
        assert_eq!(refused(&mut empty(1), &longer), "a section is too long");
        let mut other_kind = saved.clone();
        other_kind[8] = 9;
        assert_eq!(refused(&mut empty(1), &other_kind), "it has no such Kind");
    }
}
