//! Bytes of a file become sections: one file per format, none of them ever fails.
//!
//! A parser returns what it understood and a list of warnings. It reads nothing: files
//! named inside a page (includes, partials) are asked of the caller.

pub mod markdown;
pub mod mdx;
pub mod mdbook;
// pub mod html;
// pub mod rst;
pub mod front_matter;
pub mod anchors;
