//! Caches: values by key, the most recently used ones ([`Cache`]), and one value computed on first use ([`Once`]).
//!
//! Invariant: [`Cache`] never holds more than its capacity and evicts the least recently used value; [`Once`] computes
//! its value once, however many callers wait for it.

use std::hash::Hash;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;

/// A least-recently-used cache that threads share.
#[derive(Debug)]
pub struct Cache<K: Hash + Eq, V> {
    /// None: nothing is cached.
    values: Option<Mutex<LruCache<K, V>>>,
}

impl<K: Hash + Eq, V: Clone> Cache<K, V> {
    /// Room for `capacity` values; 0 disables the cache.
    pub fn new(capacity: usize) -> Self {
        // Not `LruCache::new`, which allocates the whole capacity at once.
        let values = NonZeroUsize::new(capacity).map(|capacity| {
            let mut values = LruCache::unbounded();
            values.resize(capacity);
            Mutex::new(values)
        });
        Self { values }
    }

    /// The value for a key.
    pub fn get(&self, key: &K) -> Option<V> {
        self.values.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// The value for a key; computed with `make` and cached if there is none.
    pub fn get_or_put(&self, key: K, make: impl FnOnce() -> V) -> V {
        match &self.values {
            Some(values) => {
                values.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(key, make).clone()
            }
            None => make(),
        }
    }

    /// Caches a value.
    pub fn put(&self, key: K, value: V) {
        if let Some(values) = &self.values {
            values.lock().unwrap_or_else(PoisonError::into_inner).put(key, value);
        }
    }
}

/// A value that is computed on first use. A failure is not cached.
#[derive(Debug)]
pub struct Once<T> {
    value: futures_util::lock::Mutex<Option<Arc<T>>>,
}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self { value: futures_util::lock::Mutex::new(None) }
    }
}

impl<T> Once<T> {
    /// The value. The first caller computes it; the others wait for the result.
    pub async fn get_or_make<E, F>(&self, make: impl FnOnce() -> F) -> Result<Arc<T>, E>
    where
        F: Future<Output = Result<T, E>>,
    {
        let mut value = self.value.lock().await;
        if let Some(value) = &*value {
            return Ok(value.clone());
        }
        let made = Arc::new(make().await?);
        *value = Some(made.clone());
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_value_is_evicted() {
        let cache = Cache::new(2);
        cache.put("a", 1);
        cache.put("b", 2);
        assert_eq!(cache.get(&"a"), Some(1));
        cache.put("c", 3);
        assert_eq!((cache.get(&"a"), cache.get(&"b"), cache.get(&"c")), (Some(1), None, Some(3)));
    }

    #[test]
    fn a_cache_of_size_zero_is_disabled() {
        let cache = Cache::new(0);
        cache.put("a", 1);
        assert_eq!(cache.get(&"a"), None);
    }

    #[tokio::test]
    async fn a_value_is_computed_once_and_a_failure_is_not_cached() {
        let (once, made) = (Once::default(), Mutex::new(0));
        let make = || async {
            tokio::task::yield_now().await;
            let mut made = made.lock().unwrap();
            *made += 1;
            if *made == 1 { Err("not yet") } else { Ok(*made) }
        };
        assert_eq!(once.get_or_make(&make).await, Err("not yet"));
        let (one, other) = futures_util::future::join(once.get_or_make(&make), once.get_or_make(&make)).await;
        assert_eq!((*one.unwrap(), *other.unwrap()), (2, 2));
    }
}
