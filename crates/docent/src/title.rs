//! The title of the book that users see.

use std::sync::{Arc, Mutex, PoisonError};

use docent_core::index::Description;
use docent_core::library::Library;

use crate::settings::Settings;

/// The title of the current book, which may change with every generation.
#[derive(Clone)]
pub struct Title {
    configured: Option<String>,
    /// The host of `book.base_url`, if it is set.
    host: Option<String>,
    library: Library,
    last: Arc<Mutex<String>>,
}

impl Title {
    /// The title of the books in a library.
    pub fn new(settings: &Settings, library: Library) -> Self {
        let host = |url: &str| Some(url.split("://").nth(1)?.split('/').next()?.to_owned());
        Self {
            configured: settings.serve.title.clone().filter(|title| !title.is_empty()),
            host: settings.book.base_url.as_deref().and_then(host),
            library,
            last: Arc::default(),
        }
    }

    /// A title that never changes.
    #[cfg(test)]
    pub fn fixed(title: &str, library: Library) -> Self {
        let last = Arc::new(Mutex::new(title.to_owned()));
        Self { configured: Some(title.to_owned()), host: None, library, last }
    }

    /// The current title, or the last known one if the book cannot be read.
    pub async fn now(&self) -> String {
        if let Ok(snapshot) = self.library.current().await
            && let Ok(description) = snapshot.retriever.describe().await
        {
            let title = self.of(&description, snapshot.is_sample);
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = title;
        }
        self.last()
    }

    /// The title that [`Self::now`] returned last.
    pub fn last(&self) -> String {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn of(&self, book: &Description, is_sample: bool) -> String {
        if let Some(title) = &self.configured {
            return title.clone();
        }
        if is_sample {
            return "Physical AI, the sample book".to_owned();
        }
        let books: Vec<&str> = book.books.keys().map(String::as_str).collect();
        if let [others @ .., last] = books.as_slice() {
            return if others.is_empty() {
                (*last).to_owned()
            } else {
                format!("{} and {last}", others.join(", "))
            };
        }
        let location = book.sources.first().map(String::as_str).unwrap_or_default();
        let folder = location.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next();
        self.host.as_deref().or(folder).filter(|name| !name.is_empty()).unwrap_or("The book").to_owned()
    }
}
