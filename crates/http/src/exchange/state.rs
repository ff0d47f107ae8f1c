//! Features' state of an exchange, by type.
//!
//! nginx's contexts of modules. A feature's state is created at its first use, and is cleared and
//! kept for the next exchange. Most exchanges have none and pay nothing.

use std::any::{Any, TypeId};

/// A feature's state of one exchange.
pub trait FeatureState: Default + 'static {
    /// Clears the state at the end of the exchange. Memory may be kept.
    fn clear(&mut self);
    /// Called when the exchange continues in another location, by an internal redirect or a named
    /// location.
    fn redirected(&mut self) {}
    /// Called when a subrequest begins: copies shared state from its parent.
    fn begin_subrequest(&mut self, _parent: &Self) {}
    /// Called when a subrequest has ended: the parent copies shared state from it.
    fn end_subrequest(&mut self, _subrequest: &mut Self) {}
}

/// States by type. They are few, so the search is linear.
#[derive(Default)]
pub struct States(Vec<TypedState>);

/// A state with the number of its type, so that a search asks none of the states.
type TypedState = (TypeId, Box<dyn AnyState>);

trait AnyState: Any {
    fn clear(&mut self);
    fn redirected(&mut self);
    fn begin_subrequest(&self, subrequest: &mut States);
    fn end_subrequest(&mut self, parent: &mut States);
}

impl<T: FeatureState> AnyState for T {
    fn clear(&mut self) {
        FeatureState::clear(self);
    }

    fn redirected(&mut self) {
        FeatureState::redirected(self);
    }

    fn begin_subrequest(&self, subrequest: &mut States) {
        subrequest.of::<T>().begin_subrequest(self);
    }

    fn end_subrequest(&mut self, parent: &mut States) {
        parent.of::<T>().end_subrequest(self);
    }
}

impl States {
    /// The state of that type, created at its first use.
    pub fn of<T: FeatureState>(&mut self) -> &mut T {
        let known = self.0.iter().position(|(id, _)| *id == TypeId::of::<T>());
        let at = known.unwrap_or_else(|| {
            self.0.push((TypeId::of::<T>(), Box::<T>::default()));
            self.0.len() - 1
        });
        let state: &mut dyn Any = &mut *self.0[at].1;
        state.downcast_mut().expect("a state is found by its type")
    }

    /// The state of that type, if it was used before.
    pub fn find<T: FeatureState>(&self) -> Option<&T> {
        let (_, state) = self.0.iter().find(|(id, _)| *id == TypeId::of::<T>())?;
        (&**state as &dyn Any).downcast_ref()
    }

    pub(super) fn clear(&mut self) {
        self.0.iter_mut().for_each(|(_, state)| state.clear());
    }

    pub(crate) fn redirected(&mut self) {
        self.0.iter_mut().for_each(|(_, state)| state.redirected());
    }

    /// Called on a subrequest's states when it begins.
    pub(crate) fn begin_subrequest(&mut self, parent: &Self) {
        parent.0.iter().for_each(|(_, state)| state.begin_subrequest(self));
    }

    /// Called on a parent's states when a subrequest ends.
    pub(crate) fn end_subrequest(&mut self, subrequest: &mut Self) {
        subrequest.0.iter_mut().for_each(|(_, state)| state.end_subrequest(self));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Count(u32);

    impl FeatureState for Count {
        fn clear(&mut self) {
            self.0 = 0;
        }
        fn redirected(&mut self) {
            self.0 += 100;
        }
        fn begin_subrequest(&mut self, parent: &Self) {
            self.0 = parent.0;
        }
        fn end_subrequest(&mut self, subrequest: &mut Self) {
            self.0 += std::mem::take(&mut subrequest.0);
        }
    }

    #[derive(Default)]
    struct Text(&'static str);

    impl FeatureState for Text {
        fn clear(&mut self) {
            self.0 = "";
        }
    }

    #[test]
    fn each_type_has_one_state() {
        let mut states = States::default();
        assert!(states.find::<Count>().is_none());
        states.of::<Count>().0 = 1;
        states.of::<Text>().0 = "text";
        states.redirected();
        assert_eq!(
            (states.of::<Count>().0, states.find::<Text>().map(|t| t.0)),
            (101, Some("text"))
        );
        states.clear();
        assert_eq!((states.of::<Count>().0, states.of::<Text>().0), (0, ""));
    }

    #[test]
    fn a_subrequest_inherits_and_returns_state() {
        let (mut parent, mut subrequest) = (States::default(), States::default());
        parent.of::<Count>().0 = 2;
        subrequest.begin_subrequest(&parent);
        subrequest.of::<Text>().0 = "its own";
        assert_eq!(subrequest.of::<Count>().0, 2);
        parent.end_subrequest(&mut subrequest);
        assert_eq!((parent.of::<Count>().0, parent.of::<Text>().0), (4, ""));
    }
}
