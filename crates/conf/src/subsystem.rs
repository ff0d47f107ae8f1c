//! Subsystems: `http {}` and `stream {}` each have their own variables, upstream groups and zones.

use std::collections::HashMap;

use crate::{Directive, Load, Registry, VariableNames};

/// A part of the configuration with its own names: two subsystems may use the same name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subsystem {
    /// Everything outside of the others.
    #[default]
    Main,
    Http,
    Stream,
}

/// The names of one subsystem's directives so far.
#[derive(Default)]
pub(crate) struct Namespace {
    names: VariableNames,
    own: Registry,
    forgotten: HashMap<Box<[u8]>, Directive>,
}

impl Load<'_> {
    /// Reads or compiles a part of a subsystem, with the names of that subsystem.
    pub fn within<T>(&mut self, subsystem: Subsystem, work: impl FnOnce(&mut Self) -> T) -> T {
        let outside = self.enter(subsystem);
        let result = work(self);
        self.enter(outside);
        result
    }

    fn enter(&mut self, subsystem: Subsystem) -> Subsystem {
        let outside = std::mem::replace(&mut self.subsystem, subsystem);
        let next = self.namespaces.remove(&subsystem).unwrap_or_default();
        let names = std::mem::replace(&mut self.names, next.names);
        let own = std::mem::replace(&mut self.own, next.own);
        let forgotten = std::mem::replace(&mut self.forgotten, next.forgotten);
        self.namespaces.insert(outside, Namespace { names, own, forgotten });
        outside
    }
}

#[cfg(test)]
mod tests {
    use std::ops::AddAssign;
    use std::path::Path;

    use super::*;
    use crate::{MemoryFiles, VariableId};

    #[test]
    fn each_subsystem_finds_its_own_names_again() {
        let mut files = MemoryFiles::default();
        let mut load = Load::new(&mut files, Path::new("/"), Path::new("/"));
        let name = |subsystem, name: &[u8], load: &mut Load<'_>| {
            load.within(subsystem, |load| {
                load.own.of::<u32>().add_assign(1);
                (load.names.number(name, None), *load.own.of::<u32>())
            })
        };
        assert_eq!(name(Subsystem::Http, b"a", &mut load), (VariableId(0), 1));
        assert_eq!(name(Subsystem::Stream, b"b", &mut load), (VariableId(0), 1));
        assert_eq!(name(Subsystem::Http, b"c", &mut load), (VariableId(1), 2));
        assert_eq!(name(Subsystem::Stream, b"b", &mut load), (VariableId(0), 2));
        assert_eq!(load.subsystem, Subsystem::Main);
        assert_eq!((load.names.mentions().count(), *load.own.of::<u32>()), (0, 0));
    }
}
