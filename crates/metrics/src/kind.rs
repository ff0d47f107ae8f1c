//! Kinds of blocks: which fields they have, and where.

use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// What is counted under one name. Declared with [`counts!`](crate::counts).
pub trait Kind: 'static {
    /// Tells kinds apart in the shared memory. A kind whose fields change gets another number.
    const ID: u64;
    const WORDS: usize;
    /// A block by its fields.
    type Block<'a>: Copy;

    fn block(words: &[AtomicU64]) -> Self::Block<'_>;
    /// Adds a block to a sum.
    fn merge(sum: &[AtomicU64], from: &[AtomicU64]);
    /// Ends what is under way in a block whose worker was killed.
    fn settle(words: &[AtomicU64]);
    /// Takes what was counted so far out of the sum, by a block that is one of its parts.
    fn reset(own: &[AtomicU64], sum: &[AtomicU64]);
}

/// A part of a block.
pub trait BlockField {
    const WORDS: usize;
    type At<'a>: Copy;

    fn at(words: &[AtomicU64]) -> Self::At<'_>;

    fn merge(sum: &[AtomicU64], from: &[AtomicU64]) {
        for (sum, from) in sum.iter().zip(from) {
            sum.store(sum.load(Relaxed).wrapping_add(from.load(Relaxed)), Relaxed);
        }
    }

    fn settle(_: &[AtomicU64]) {}

    /// Subtracts the sum: words wrap around, so that a part below zero makes the sum zero.
    fn reset(own: &[AtomicU64], sum: &[AtomicU64]) {
        for (own, sum) in own.iter().zip(sum) {
            own.store(own.load(Relaxed).wrapping_sub(sum.load(Relaxed)), Relaxed);
        }
    }
}

/// The words of a field that is so many bytes behind the beginning of its block.
#[inline]
pub const fn words_of<F: BlockField>(offset: usize) -> Range<usize> {
    let first = offset / size_of::<AtomicU64>();
    first..first + F::WORDS
}

/// Declares a kind and its block, whose fields are methods.
#[macro_export]
macro_rules! counts {
    (
        $(#[$doc:meta])*
        $vis:vis struct $Block:ident of $Kind:ident = $id:literal {
            $($(#[$field_doc:meta])* $field:ident: $Type:ty,)*
        }
    ) => {
        $(#[$doc])*
        $vis enum $Kind {}

        $(#[$doc])*
        #[derive(Clone, Copy)]
        $vis struct $Block<'a>(
            &'a [::std::sync::atomic::AtomicU64; <$Kind as $crate::Kind>::WORDS],
        );

        const _: () = {
            use ::std::mem::offset_of;
            use ::std::sync::atomic::AtomicU64;
            use $crate::{BlockField, Kind, words_of};

            /// Where the fields are.
            #[repr(C)]
            struct BlockLayout {
                $($field: [AtomicU64; <$Type as BlockField>::WORDS],)*
            }

            impl Kind for $Kind {
                const ID: u64 = $id;
                const WORDS: usize = ::std::mem::size_of::<BlockLayout>() / 8;
                type Block<'a> = $Block<'a>;

                #[inline]
                fn block(words: &[AtomicU64]) -> $Block<'_> {
                    $Block(words.first_chunk().expect("a block has all its fields"))
                }
                fn merge(sum: &[AtomicU64], from: &[AtomicU64]) {
                    $({
                        let words = words_of::<$Type>(offset_of!(BlockLayout, $field));
                        <$Type as BlockField>::merge(&sum[words.clone()], &from[words]);
                    })*
                }
                fn settle(words: &[AtomicU64]) {
                    $({
                        let field = words_of::<$Type>(offset_of!(BlockLayout, $field));
                        <$Type as BlockField>::settle(&words[field]);
                    })*
                }
                fn reset(own: &[AtomicU64], sum: &[AtomicU64]) {
                    $({
                        let words = words_of::<$Type>(offset_of!(BlockLayout, $field));
                        <$Type as BlockField>::reset(&own[words.clone()], &sum[words]);
                    })*
                }
            }

            impl<'a> $Block<'a> {
                $(
                    $(#[$field_doc])*
                    #[inline]
                    $vis fn $field(self) -> <$Type as BlockField>::At<'a> {
                        let words = words_of::<$Type>(offset_of!(BlockLayout, $field));
                        <$Type as BlockField>::at(&self.0[words])
                    }
                )*
            }
        };
    };
}
