//! The values of variables in one session: set by the configuration, or computed once.
//!
//! An HTTP exchange and its subrequests share their values: from the first subrequest on, the
//! values are kept in one place for all of them.

use std::cell::RefCell;
use std::rc::Rc;

use conf::VariableId;

/// The variables of a session that have a value.
pub struct SetValues {
    own: ValueSlots,
    /// Replaces `own` from the first subrequest on.
    shared: Option<Rc<RefCell<ValueSlots>>>,
    /// The number of variables being computed, each as part of the one before.
    pub(crate) depth: u8,
    /// The most bytes of all values together.
    bytes_max: usize,
}

/// The error for a value that does not fit: all values of a session together are too long.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLong;

/// The most bytes of all values of a session: offsets have 32 bits.
pub const VALUES_BYTES_MAX: usize = u32::MAX as usize;

/// Values, with their bytes in one arena.
#[derive(Default)]
struct ValueSlots {
    slots: Vec<ValueSlot>,
    arena: Vec<u8>,
}

#[derive(Clone, Copy, Default)]
enum ValueSlot {
    #[default]
    Unset,
    Absent,
    Value(u32, u32),
}

impl SetValues {
    /// No values yet; at most `bytes_max` bytes of all values together.
    pub fn new(bytes_max: usize) -> Self {
        let bytes_max = bytes_max.min(VALUES_BYTES_MAX);
        Self { own: ValueSlots::default(), shared: None, depth: 0, bytes_max }
    }

    /// Removes all values.
    pub fn clear(&mut self) {
        if let Some(own) = self.shared.take().and_then(Rc::into_inner) {
            self.own = own.into_inner();
        }
        self.own.slots.clear();
        self.own.arena.clear();
        self.depth = 0;
    }

    /// Frees unused memory.
    pub fn shrink(&mut self) {
        self.change(ValueSlots::shrink);
    }

    /// The bytes of memory kept for values.
    pub fn memory(&self) -> usize {
        let ValueSlots { slots, arena } = &self.own;
        slots.capacity() * size_of::<ValueSlot>() + arena.capacity()
    }

    /// Shares the values of another exchange, whose own values become the shared ones.
    pub fn share(&mut self, other: &mut Self) {
        let own = &mut other.own;
        let shared = other.shared.get_or_insert_with(|| Rc::new(std::mem::take(own).into()));
        self.shared = Some(shared.clone());
    }

    /// Removes a value, so that it is computed anew.
    pub fn forget(&mut self, id: VariableId) {
        self.change(|slots| slots.forget(id));
    }

    /// Sets the value of a variable; `None` records that it has no value, so that it is not
    /// computed again.
    pub fn set(&mut self, id: VariableId, value: Option<&[u8]>) -> Result<(), TooLong> {
        let bytes_max = self.bytes_max;
        self.change(|slots| slots.set(id, value, bytes_max))
    }

    /// Appends a known value. `None`: the value is not known yet; `Some(false)`: the variable is
    /// known to have no value.
    pub fn append_known(&self, id: VariableId, out: &mut Vec<u8>) -> Option<bool> {
        match &self.shared {
            None => self.own.append_known(id, out),
            Some(shared) => shared.borrow().append_known(id, out),
        }
    }

    /// Whether the variable has a value, or is known to have none.
    pub fn is_known(&self, id: VariableId) -> bool {
        match &self.shared {
            None => self.own.is_known(id),
            Some(shared) => shared.borrow().is_known(id),
        }
    }

    fn change<T>(&mut self, change: impl FnOnce(&mut ValueSlots) -> T) -> T {
        match &self.shared {
            None => change(&mut self.own),
            Some(shared) => change(&mut shared.borrow_mut()),
        }
    }
}

impl ValueSlots {
    fn shrink(&mut self) {
        self.slots.shrink_to_fit();
        self.arena.shrink_to_fit();
    }

    fn forget(&mut self, id: VariableId) {
        if let Some(slot) = self.slots.get_mut(id.0 as usize) {
            *slot = ValueSlot::Unset;
        }
    }

    fn set(
        &mut self,
        id: VariableId,
        value: Option<&[u8]>,
        bytes_max: usize,
    ) -> Result<(), TooLong> {
        let index = id.0 as usize;
        if self.slots.len() <= index {
            self.slots.resize(index + 1, ValueSlot::Unset);
        }
        self.slots[index] = match value {
            None => ValueSlot::Absent,
            Some(bytes) => {
                if bytes.len() > bytes_max - self.arena.len() {
                    return Err(TooLong);
                }
                let start = self.arena.len() as u32;
                self.arena.extend_from_slice(bytes);
                ValueSlot::Value(start, self.arena.len() as u32)
            }
        };
        Ok(())
    }

    fn is_known(&self, id: VariableId) -> bool {
        !matches!(self.slots.get(id.0 as usize), None | Some(ValueSlot::Unset))
    }

    fn append_known(&self, id: VariableId, out: &mut Vec<u8>) -> Option<bool> {
        match self.slots.get(id.0 as usize)? {
            ValueSlot::Unset => None,
            ValueSlot::Absent => Some(false),
            ValueSlot::Value(start, end) => {
                out.extend_from_slice(&self.arena[*start as usize..*end as usize]);
                Some(true)
            }
        }
    }
}
