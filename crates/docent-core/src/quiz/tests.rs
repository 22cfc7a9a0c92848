//! Questions per kind, and what holds for any page.
