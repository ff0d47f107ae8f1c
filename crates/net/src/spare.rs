//! Pieces of memory that a worker keeps for reuse, last in, first out.
//!
//! Unused pieces are freed, half of them at a time: after a burst most of them are freed within
//! half a minute, while steady work finds its pieces again.

/// Pieces that are never freed.
const KEPT_MIN: usize = 8;

pub struct SparePool<T> {
    pieces: Vec<T>,
    kept_max: usize,
    /// The lowest number of pieces since the last call of `shrink`: these were not needed.
    unused: usize,
}

impl<T> SparePool<T> {
    /// Keeps up to `kept_max` pieces.
    pub const fn new(kept_max: usize) -> Self {
        Self { pieces: Vec::new(), kept_max, unused: 0 }
    }

    /// Takes the piece returned last.
    #[inline]
    pub fn take(&mut self) -> Option<T> {
        let piece = self.pieces.pop();
        self.unused = self.unused.min(self.pieces.len());
        piece
    }

    /// Keeps a piece, or returns it if there are enough.
    #[inline]
    pub fn put(&mut self, piece: T) -> Option<T> {
        if self.pieces.len() >= self.kept_max {
            return Some(piece);
        }
        self.pieces.push(piece);
        None
    }

    /// Frees half of the pieces that were not needed since the last call.
    pub fn shrink(&mut self) -> Vec<T> {
        let spare = self.unused.saturating_sub(KEPT_MIN).div_ceil(2);
        let freed = self.pieces.drain(..spare).collect();
        self.unused = self.pieces.len();
        freed
    }

    /// The number of pieces.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub fn clear(&mut self) {
        self.pieces.clear();
        self.unused = 0;
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.pieces.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(count: usize) -> SparePool<usize> {
        let mut pool = SparePool::new(1000);
        assert!((0..count).all(|piece| pool.put(piece).is_none()));
        pool
    }

    #[test]
    fn unused_pieces_are_freed_in_a_few_rounds() {
        let mut pool = pool(1000);
        assert_eq!((pool.put(1000), pool.shrink().len()), (Some(1000), 0));
        let rounds = (0..100).take_while(|_| !pool.shrink().is_empty()).count();
        assert!(rounds <= 10, "{rounds}");
        assert_eq!(pool.len(), KEPT_MIN);
        assert_eq!(pool.take(), Some(999));
    }

    #[test]
    fn pieces_in_repeated_use_are_kept() {
        let mut pool = pool(500);
        pool.shrink();
        for _ in 0..20 {
            let taken: Vec<_> = (0..400).map_while(|_| pool.take()).collect();
            assert_eq!(taken.len(), 400);
            taken.into_iter().for_each(|piece| assert!(pool.put(piece).is_none()));
            pool.shrink();
        }
        assert!(pool.len() <= 400 + KEPT_MIN + 1, "{}", pool.len());
    }
}
