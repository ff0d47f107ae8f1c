//! What features remember of an exchange, each under a type of its own.
//!
//! nginx's contexts of modules: they are forgotten when the exchange goes on elsewhere, by an
//! internal redirect or a jump to a named location. Most exchanges have none, and pay nothing.

use std::any::Any;

/// Notes by type. They are few, and looked through in order.
#[derive(Default)]
pub struct Notes(Vec<Box<dyn Any>>);

impl Notes {
    /// The note of that type, if there is one.
    pub fn find<T: 'static>(&self) -> Option<&T> {
        self.0.iter().find_map(|note| note.downcast_ref())
    }

    /// Puts a note in the place of the one of its type.
    pub fn set<T: 'static>(&mut self, note: T) {
        match self.0.iter_mut().find_map(|old| old.downcast_mut()) {
            Some(old) => *old = note,
            None => self.0.push(Box::new(note)),
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::Notes;

    #[test]
    fn one_of_each_type() {
        let mut notes = Notes::default();
        assert_eq!(notes.find::<u8>(), None);
        notes.set(1_u8);
        notes.set("text");
        notes.set(2_u8);
        assert_eq!((notes.find::<u8>(), notes.find::<&str>()), (Some(&2), Some(&"text")));
        notes.clear();
        assert_eq!(notes.find::<u8>(), None);
    }
}
