//! What was worked out lately, kept for when it is asked again.
//!
//! Invariant: never more than its capacity; what was used longest ago goes first.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

/// Values by key, the most recently used.
#[derive(Debug)]
pub struct Recent<K, V> {
    capacity: usize,
    kept: Mutex<Kept<K, V>>,
}

#[derive(Debug)]
struct Kept<K, V> {
    uses: u64,
    values: HashMap<K, (u64, V)>,
}

impl<K: Hash + Eq + Clone, V: Clone> Recent<K, V> {
    /// Room for `capacity` values; 0 keeps nothing.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, kept: Mutex::new(Kept { uses: 0, values: HashMap::new() }) }
    }

    /// The value for a key.
    pub fn get(&self, key: &K) -> Option<V> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.uses += 1;
        let now = kept.uses;
        let (used, value) = kept.values.get_mut(key)?;
        *used = now;
        Some(value.clone())
    }

    /// Keeps a value.
    pub fn put(&self, key: K, value: V) {
        if self.capacity == 0 {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.uses += 1;
        let now = kept.uses;
        kept.values.insert(key, (now, value));
        if kept.values.len() > self.capacity {
            // A look at all of them, once per new value: small beside the search that made it.
            let oldest = kept.values.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| key.clone());
            oldest.and_then(|key| kept.values.remove(&key));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let recent = Recent::new(2);
        recent.put("a", 1);
        recent.put("b", 2);
        assert_eq!(recent.get(&"a"), Some(1));
        recent.put("c", 3);
        assert_eq!((recent.get(&"a"), recent.get(&"b"), recent.get(&"c")), (Some(1), None, Some(3)));
    }

    #[test]
    fn without_room_nothing_is_kept() {
        let recent = Recent::new(0);
        recent.put("a", 1);
        assert_eq!(recent.get(&"a"), None);
    }
}
