//! The directive kernel: a feature's settings are declared once, and the type is the parser.
//!
//! [`directives!`](crate::directives) generates from one declaration the final settings (`Conf`),
//! the settings given in one block (`Layer`), the table of names, inheritance and documentation.
//! [`features!`](crate::features) combines the features of a subsystem into `Layers` (one block)
//! and `Scope` (a block with everything it inherits). A block that sets nothing of a feature shares
//! its parent's `Arc`. The order of lines inside a block has no meaning, so all settings of a block
//! are read before the blocks inside it. Deliberately absent: the meaning of any directive.

use std::ops::{BitOr, RangeInclusive};

use crate::{Directive, Doc, Error, Load, Result, Word, advice, known};

/// The kinds of block in which a directive is allowed, relative to its subsystem: the folder of
/// `map` has [`MAIN`], which is `http {}` where http mounts it and `stream {}` where stream does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels(pub u16);

/// The subsystem's outermost block.
pub const MAIN: Levels = Levels(1);
pub const SERVER: Levels = Levels(2);
pub const LOCATION: Levels = Levels(4);
/// `if {}` directly inside a server.
pub const IF_IN_SERVER: Levels = Levels(8);
pub const IF_IN_LOCATION: Levels = Levels(16);
pub const LIMIT_EXCEPT: Levels = Levels(32);
pub const UPSTREAM: Levels = Levels(64);
pub const EVENTS: Levels = Levels(128);

impl Levels {
    /// The union, usable in constants.
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether any level of `other` is among these.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Levels {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        self.or(other)
    }
}

/// The inner blocks that see a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inherited {
    /// Every block inside, as for nearly all settings.
    Always,
    /// Every block inside, but with a changed value: [`Value::handed_down`].
    Changed,
    /// Only `if` and `limit_except`, which are nameless parts of their location: content handlers.
    Nameless,
    /// None: rewrite programs.
    Never,
}

impl Inherited {
    /// Whether a block inside, nameless or not, sees the value.
    pub const fn reaches(self, nameless: bool) -> bool {
        match self {
            Self::Always | Self::Changed => true,
            Self::Nameless => nameless,
            Self::Never => false,
        }
    }

    /// Whether a block inside that does not set it has the very same value.
    pub const fn is_shared(self, nameless: bool) -> bool {
        !matches!(self, Self::Changed) && self.reaches(nameless)
    }
}

/// The arguments that a directive accepts: their number, their parser, and the meaning of a
/// repetition.
pub trait Value: Clone {
    /// The number of arguments after the name.
    const ARGS: RangeInclusive<usize> = 1..=1;
    /// Whether a block follows.
    const BLOCK: bool = false;
    /// The arguments in the reference, `on | off`. If empty, the directive's docs have them.
    const SYNTAX: &'static str = "";
    /// The inner blocks that see the value.
    const INHERITED: Inherited = Inherited::Always;
    /// Reads the first line of the directive in a block. The number of arguments has been checked.
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self>;
    /// Reads a further line of the directive in the same block.
    fn repeat(&mut self, from: &Directive, _load: &mut Load<'_>) -> Result<()> {
        Err(from.refuse("is duplicate"))
    }
    /// Completes the value with the outer block's. For example, nginx inherits the header of
    /// `keepalive_timeout 75s 60s` in an inner block with `keepalive_timeout 30s`.
    fn complete(&mut self, _outer: &Self) {}
    /// The value in an inner block that does not set it.
    fn handed_down(&self) -> Self {
        self.clone()
    }
}

/// The value of a setting that is not given and has no default.
pub trait Absent {
    fn absent() -> Self;
}

impl<T> Absent for Option<T> {
    fn absent() -> Self {
        None
    }
}

impl<T> Absent for Vec<T> {
    fn absent() -> Self {
        Vec::new()
    }
}

/// A directive without a default.
impl<T: Value> Value for Option<T> {
    const ARGS: RangeInclusive<usize> = T::ARGS;
    const BLOCK: bool = T::BLOCK;
    const SYNTAX: &'static str = T::SYNTAX;
    const INHERITED: Inherited = T::INHERITED;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        T::parse(from, load).map(Some)
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        self.as_mut().expect("a repeated value has been parsed once").repeat(from, load)
    }
    fn complete(&mut self, outer: &Self) {
        if let (Some(own), Some(outer)) = (self, outer) {
            own.complete(outer);
        }
    }
    fn handed_down(&self) -> Self {
        self.as_ref().map(T::handed_down)
    }
}

/// A repeatable directive; a value in a block hides the parent's list.
impl<T: Value> Value for Vec<T> {
    const ARGS: RangeInclusive<usize> = T::ARGS;
    const BLOCK: bool = T::BLOCK;
    const SYNTAX: &'static str = T::SYNTAX;
    const INHERITED: Inherited = T::INHERITED;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        T::parse(from, load).map(|first| vec![first])
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        self.push(T::parse(from, load)?);
        Ok(())
    }
}

/// One directive, for the reference and the lookup.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// The name, without its family's prefix.
    pub name: &'static str,
    /// The blocks in which it is allowed.
    pub levels: Levels,
    /// Its documentation, a line each, in the form that [`Doc`](crate::Doc) reads.
    pub docs: &'static [&'static str],
    /// Its default in nginx's notation; empty if there is none.
    pub default: &'static str,
    /// The arguments as its type shows them; empty if only the docs have them.
    pub syntax: &'static str,
    /// The least and the greatest number of arguments.
    pub args: (usize, usize),
    /// Whether it opens a block.
    pub block: bool,
}

impl Info {
    /// Its documentation, split into fields.
    pub fn doc(&self) -> Doc {
        Doc::parse(self.docs)
    }

    /// Refuses the lines that nginx's dispatcher refuses, in its order and words.
    pub fn admit(&self, from: &Directive, level: Levels) -> Result<()> {
        if !self.levels.has(level) {
            return Err(from.misplaced());
        }
        if from.block.is_some() != self.block {
            let missing =
                if self.block { "has no opening \"{\"" } else { "is not terminated by \";\"" };
            let message = format!("directive \"{}\" {missing}", from.name);
            return Err(from.error(message).marked(from.end));
        }
        let (least, most) = self.args;
        if (least..=most).contains(&from.args.len()) {
            return Ok(());
        }
        Err(from.error(format!("invalid number of arguments in \"{}\" directive", from.name)))
    }
}

/// One feature's settings in one block. Implemented by `directives!` only.
pub trait Layered: Default + Clone {
    /// The complete settings.
    type Conf;
    /// Every directive: settings first, then their other names, then declarations.
    const TABLE: &'static [Info];
    /// Carries out the directive of the table's row `index`.
    fn set(&mut self, index: usize, from: &Directive, load: &mut Load<'_>) -> Result<()>;
    /// Whether the block sets nothing.
    fn is_silent(&self) -> bool;
    /// Whether a block that sets nothing has exactly the parent's settings.
    fn inherits_all(nameless: bool) -> bool;
    /// Takes the settings that this block does not have from the parent.
    fn inherit(&mut self, parent: &Self, nameless: bool);
    /// The complete settings. A setting without a default that was not given is absent.
    fn resolve(&self) -> Self::Conf;
    /// The complete settings of a block without a parent.
    fn resolve_outermost(&self, load: &mut Load<'_>) -> Self::Conf {
        let mut layer = self.clone();
        layer.inherit(&Self::defaults(load), false);
        layer.resolve()
    }
    /// The outermost layer: every default, read by the same parser as a user's value.
    fn defaults(load: &mut Load<'_>) -> Self {
        let mut layer = Self::default();
        load.reads_defaults = true;
        for (index, info) in Self::TABLE.iter().enumerate().filter(|(_, i)| !i.default.is_empty()) {
            let line = Directive::sample(info.name, info.default);
            if let Err(error) = layer.set(index, &line, load) {
                panic!("default of {}: {}", info.name, error.message);
            }
        }
        load.reads_defaults = false;
        layer
    }
}

/// Reads one line of a setting into its slot.
pub fn assign<T: Value>(slot: &mut Option<T>, from: &Directive, load: &mut Load<'_>) -> Result<()> {
    match slot {
        Some(said) => said.repeat(from, load),
        None => {
            *slot = Some(T::parse(from, load)?);
            Ok(())
        }
    }
}

/// Fills a slot from the parent's layer, as its type allows.
pub fn inherit<T: Value>(slot: &mut Option<T>, parent: &Option<T>, nameless: bool) {
    if !T::INHERITED.reaches(nameless) {
        return;
    }
    match (slot, parent) {
        (Some(own), Some(outer)) => own.complete(outer),
        (slot @ None, Some(outer)) => *slot = Some(outer.handed_down()),
        (_, None) => {}
    }
}

/// A directive's name from its field's: `r#use` is also a Rust keyword.
pub const fn word(field: &'static str) -> &'static str {
    match field.as_bytes() {
        [b'r', b'#', ..] => field.split_at(2).1,
        _ => field,
    }
}

/// The bounds of a type's number of arguments, for the table.
pub const fn args_of<T: Value>() -> (usize, usize) {
    (*T::ARGS.start(), *T::ARGS.end())
}

impl Directive {
    /// An error in nginx's form `"name" directive REASON`.
    pub fn refuse(&self, reason: impl std::fmt::Display) -> Error {
        self.error(format!("\"{}\" directive {reason}", self.name))
    }

    /// The error about a directive in a block that cannot have it.
    pub fn misplaced(&self) -> Error {
        let error = self.refuse("is not allowed here");
        let places = || match known::places(&self.name.text) {
            Some(places) => format!("it is allowed in {places}"),
            None => format!("\"weir reference {}\" says where it is allowed", self.name),
        };
        Error { help: error.help.or_else(|| Some(places())), ..error }
    }

    /// An error about this directive, with this message.
    pub fn error(&self, message: impl Into<String>) -> Error {
        let error = Error::at(self.end, message).marked(self.name.span);
        Error { help: advice::on(self), ..error }
    }

    /// An error about one of its words: nginx names the line, and we mark the word.
    pub fn error_at(&self, word: &Word, message: impl Into<String>) -> Error {
        self.error(message).marked(word.span)
    }

    /// A line with a default: `name default;`.
    pub fn sample(name: &str, default: &str) -> Self {
        let text = format!("{name} {default};");
        let tree = crate::parser::parse_alone(text.as_bytes()).expect("defaults are well-formed");
        tree.root.into_iter().next().expect("one line")
    }

    /// The argument `index` (from 0), which exists if the number of arguments was checked.
    pub fn arg(&self, index: usize) -> &Word {
        &self.args[index]
    }
}

/// Declares a feature's directives. See [`kernel`](crate::kernel).
///
/// ```text
/// conf::directives! {
///     declare {                                    names things, never inherits
///         /// Opens a zone.
///         limit_req_zone(3..=3) in MAIN => declare_zone;
///         /// Computes a variable from another.
///         map(2..=2) {} in MAIN => declare_map;
///     }
///     also {                                       further names for a setting's slot
///         /// Replaces a part of the path.
///         alias(1..=1) in LOCATION => root;
///     }
///     slots {                                      filled by `also` rows only
///         /// The program that `set`, `if`, `rewrite` ... are the lines of.
///         program: Option<Program>,
///     }
///
///     in MAIN | SERVER | LOCATION;                 blocks of the settings; `+` in a row adds some
///     /// The directory that holds the files.
///     root + IF_IN_LOCATION: Root = "html",
/// }
/// ```
#[macro_export]
macro_rules! directives {
    (@default) => { "" };
    (@default $default:literal) => { $default };
    (@value $slot:expr, $default:literal) => {
        $slot.clone().expect("the outermost layer holds a default")
    };
    (@value $slot:expr,) => { $slot.clone().unwrap_or_else($crate::Absent::absent) };
    (@block) => { false };
    (@block $braces:block) => { true };
    (
        $( declare { $( $(#[doc = $ddoc:literal])*
            $dname:ident ($dargs:expr) $($dblock:block)?
            in $($dlevel:ident)|+ => $dfn:path; )* } )?
        $( also { $( $(#[doc = $adoc:literal])*
            $aname:ident ($aargs:expr) $($ablock:block)?
            in $($alevel:ident)|+ => $aslot:ident; )* } )?
        $( slots { $( $(#[doc = $sdoc:literal])* $sname:ident : $sty:ty, )* } )?
        in $($level:ident)|+;
        $( $(#[doc = $doc:literal])*
           $name:ident $(+ $more:ident)* : $ty:ty $(= $default:literal)?, )*
    ) => {
        const IN: $crate::Levels = $crate::Levels(0) $(.or($crate::$level))+;

        /// The feature's settings, complete.
        #[derive(Clone)]
        pub struct Conf {
            $( $(#[doc = $doc])* $name: $ty, )*
            $($( $(#[doc = $sdoc])* $sname: $sty, )*)?
        }

        /// The feature's settings in one block.
        #[derive(Clone, Default)]
        pub struct Layer { $( $name: Option<$ty>, )* $($( $sname: Option<$sty>, )*)? }

        impl $crate::Layered for Layer {
            type Conf = Conf;
            const TABLE: &'static [$crate::Info] = &[
                $( $crate::Info {
                    name: $crate::kernel::word(stringify!($name)),
                    levels: IN $(.or($crate::$more))*,
                    docs: &[$($doc),*],
                    default: $crate::directives!(@default $($default)?),
                    syntax: <$ty as $crate::Value>::SYNTAX,
                    args: $crate::args_of::<$ty>(),
                    block: <$ty as $crate::Value>::BLOCK,
                }, )*
                $($( $crate::Info {
                    name: stringify!($aname),
                    levels: $crate::Levels(0) $(.or($crate::$alevel))+,
                    docs: &[$($adoc),*],
                    default: "",
                    syntax: "",
                    args: (*$aargs.start(), *$aargs.end()),
                    block: $crate::directives!(@block $($ablock)?),
                }, )*)?
                $($( $crate::Info {
                    name: stringify!($dname),
                    levels: $crate::Levels(0) $(.or($crate::$dlevel))+,
                    docs: &[$($ddoc),*],
                    default: "",
                    syntax: "",
                    args: (*$dargs.start(), *$dargs.end()),
                    block: $crate::directives!(@block $($dblock)?),
                }, )*)?
            ];
            #[allow(unused_assignments, unused_mut, unused_variables)]
            fn set(
                &mut self,
                mut index: usize,
                from: &$crate::Directive,
                load: &mut $crate::Load<'_>,
            ) -> $crate::Result<()> {
                $( if index == 0 {
                    return $crate::assign(&mut self.$name, from, load);
                } index -= 1; )*
                $($( if index == 0 {
                    return $crate::assign(&mut self.$aslot, from, load);
                } index -= 1; )*)?
                $($( if index == 0 { return $dfn(from, load); } index -= 1; )*)?
                unreachable!("row {index} past the table's end")
            }
            fn is_silent(&self) -> bool {
                true $(&& self.$name.is_none())* $($(&& self.$sname.is_none())*)?
            }
            #[allow(unused_variables)]
            fn inherits_all(nameless: bool) -> bool {
                true $(&& <$ty as $crate::Value>::INHERITED.is_shared(nameless))*
                    $($(&& <$sty as $crate::Value>::INHERITED.is_shared(nameless))*)?
            }
            #[allow(unused_variables)]
            fn inherit(&mut self, parent: &Self, nameless: bool) {
                $( $crate::inherit(&mut self.$name, &parent.$name, nameless); )*
                $($( $crate::inherit(&mut self.$sname, &parent.$sname, nameless); )*)?
            }
            fn resolve(&self) -> Conf {
                Conf {
                    $( $name: $crate::directives!(@value self.$name, $($default)?), )*
                    $($( $sname: $crate::directives!(@value self.$sname,), )*)?
                }
            }
        }
    };
}

/// A table of directives whose meaning is built into the subsystem: blocks, and `include`.
///
/// Each row has the form of a declaration of [`directives!`](crate::directives) without its
/// function.
#[macro_export]
macro_rules! rows {
    ($( $(#[doc = $doc:literal])*
        $name:ident ($args:expr) $($block:block)? in $($level:ident)|+; )*) => {
        &[ $( $crate::Info {
            name: stringify!($name),
            levels: $crate::Levels(0) $(.or($level))+,
            docs: &[$($doc),*],
            default: "",
            syntax: "",
            args: (*$args.start(), *$args.end()),
            block: $crate::directives!(@block $($block)?),
        }, )* ]
    };
}

/// Lists a subsystem's features: the order of handlers within a phase and of filters.
///
/// Each row is `field: module "prefix" over family with VARIABLES`. A module has `Conf`, `Layer`
/// and `install(&Arc<Conf>, &mut Place) -> Result<()>`. A module whose settings complete those of
/// other rows names those rows after `over` (`over family & tls`), and its `install` receives all
/// of them; a module with variables names their table. Before each `install`,
/// [`installing`](crate::InstallTarget::installing) of the place is called with the module's name.
#[macro_export]
macro_rules! features {
    (into $place:ty, variables $table:ty; $($rows:tt)*) => {
        $crate::features!(into $place; $($rows)*);
        $crate::features!(@variables $table; $($rows)*);
    };
    (
        @variables $table:ty;
        $( $field:ident : $module:ident $($prefix:literal)? $(over $($family:ident)&+)?
            $(with $variables:ident)?, )*
    ) => {
        /// The tables of the features' variables.
        pub const VARIABLES: &[$table] = &[$( $( $module::$variables, )? )*];
    };
    (
        into $place:ty;
        $( $field:ident : $module:ident $($prefix:literal)? $(over $($family:ident)&+)?
            $(with $variables:ident)?, )*
    ) => {
        /// The settings given in one block of the configuration.
        #[derive(Clone, Default)]
        pub struct Layers { $( $field: $module::Layer, )* }

        /// The settings of one block, with everything inherited.
        #[derive(Clone)]
        pub struct Scope { layers: Layers, $( pub(crate) $field: std::sync::Arc<$module::Conf>, )* }

        impl Layers {
            /// Applies one directive of a block at `level`; `Ok(false)` if no feature has it.
            pub fn set(
                &mut self,
                level: $crate::Levels,
                from: &$crate::Directive,
                load: &mut $crate::Load<'_>,
            ) -> $crate::Result<bool> {
                use $crate::Layered as _;
                let mut elsewhere = None;
                $( let prefix = concat!("", $($prefix)?);
                if let Some(row) = $crate::row::<$module::Layer>(prefix, from) {
                    let info = &<$module::Layer as $crate::Layered>::TABLE[row];
                    if info.levels.has(level) {
                        info.admit(from, level)?;
                        self.$field.set(row, from, load)?;
                        return Ok(true);
                    }
                    elsewhere = Some(info);
                } )*
                match elsewhere {
                    Some(info) => info.admit(from, level).map(|()| false),
                    None => Ok(false),
                }
            }
        }

        impl Scope {
            /// The scope around all blocks: nginx's defaults.
            pub fn outermost(load: &mut $crate::Load<'_>) -> Self {
                use $crate::Layered as _;
                let layers = Layers { $( $field: $module::Layer::defaults(load), )* };
                Self { $( $field: std::sync::Arc::new(layers.$field.resolve()), )* layers }
            }

            /// The scope of a block inside this one. Features that the block does not set are
            /// shared.
            pub fn child(&self, mut own: Layers, nameless: bool) -> Self {
                use $crate::Layered as _;
                $(
                    let shared = own.$field.is_silent() && $module::Layer::inherits_all(nameless);
                    own.$field.inherit(&self.layers.$field, nameless);
                    let $field = if shared {
                        self.$field.clone()
                    } else {
                        std::sync::Arc::new(own.$field.resolve())
                    };
                )*
                Self { layers: own, $( $field, )* }
            }

            /// Installs every feature in the place.
            pub fn install(&self, place: &mut $place) -> $crate::Result<()> {
                use $crate::{FeatureName, InstallTarget as _};
                $(
                    place.installing(FeatureName(&stringify!($module)));
                    $module::install(&self.$field, $($(&self.$family,)+)? place)?;
                )*
                Ok(())
            }
        }

        /// Every directive of the subsystem: feature, prefix, rows.
        pub const TABLES: &[(&str, &str, &[$crate::Info])] = &[
            $( (stringify!($module), concat!("", $($prefix)?),
                <$module::Layer as $crate::Layered>::TABLE), )*
        ];
    };
}

/// The row in a feature's table for the directive's name without the family's prefix.
pub fn row<L: Layered>(prefix: &str, from: &Directive) -> Option<usize> {
    let local = from.name.text.strip_prefix(prefix.as_bytes())?;
    L::TABLE.iter().position(|info| info.name.as_bytes() == local)
}
