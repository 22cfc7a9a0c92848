//! The real server's error messages, word for word, with their codes.
//!
//! Invariant: the texts here are those of Qdrant 1.19, so that clients that parse them keep working.

use tonic::Status;

use super::id::Id;

/// The request is valid but wrong for this collection.
pub(super) fn wrong_input(what: impl std::fmt::Display) -> Status {
    Status::invalid_argument(format!("Wrong input: {what}"))
}

/// The request asks for nothing that can be done.
pub(super) fn bad_request(what: impl std::fmt::Display) -> Status {
    Status::invalid_argument(format!("Bad request: {what}"))
}

/// A field of the request is out of range; checked before anything else.
pub(super) fn invalid_body(field: &str, what: impl std::fmt::Display) -> Status {
    Status::invalid_argument(format!("Validation error in body: [{field}: {what}]"))
}

/// Rejects an invalid collection name, in any field.
pub(super) fn check_name(field: &str, name: &str) -> Result<(), Status> {
    if name.is_empty() || name.chars().count() > 255 {
        let what = format!("value {name:?} invalid, must be from 1 to 255 characters");
        return Err(invalid_body(field, what));
    }
    check_characters(field, name, &['/', '\0'])
}

/// Rejects a name that contains one of these characters; the error names the first one.
pub(super) fn check_characters(field: &str, name: &str, refused: &[char]) -> Result<(), Status> {
    match refused.iter().find(|c| name.contains(**c)) {
        Some(c) => Err(invalid_body(field, format_args!("collection name cannot contain \"{c}\" char"))),
        None => Ok(()),
    }
}

pub(super) fn no_collection(name: &str) -> Status {
    Status::not_found(format!("Not found: Collection `{name}` doesn't exist!"))
}

pub(super) fn collection_exists(name: &str) -> Status {
    Status::already_exists(format!("Wrong input: Collection `{name}` already exists!"))
}

pub(super) fn no_alias(name: &str) -> Status {
    Status::not_found(format!("Not found: Alias {name} does not exists!"))
}

pub(super) fn no_point(id: Id) -> Status {
    Status::not_found(format!("Not found: No point with id {id} found"))
}

pub(super) fn no_vector_on_point(name: &str) -> Status {
    Status::not_found(format!("Not found: Vector with name {name:?} for point not found"))
}

pub(super) fn no_vector_name(name: &str) -> Status {
    wrong_input(format_args!("Not existing vector name error: {name}"))
}

pub(super) fn wrong_width(expected: usize, got: usize) -> Status {
    wrong_input(format_args!("Vector dimension error: expected dim: {expected}, got {got}"))
}

pub(super) fn wrong_named_width(expected: usize, got: usize, name: &str) -> Status {
    wrong_input(format_args!(
        "Vector dimension error: expected dim: {expected}, got {got} for vector '{name}'"
    ))
}

pub(super) fn sparse_for_dense() -> Status {
    wrong_input("Conversion between sparse and regular vectors failed")
}

pub(super) fn no_facet_index(key: &str) -> Status {
    wrong_input(format_args!(
        "No appropriate index for faceting: `{key}`. Please create one to facet on this field. Check \
         https://qdrant.tech/documentation/concepts/indexing/#payload-index to see which payload schemas \
         support Match conditions"
    ))
}

/// The real server supports this, the test double does not.
pub(super) fn unsupported(what: &str) -> Status {
    Status::unimplemented(format!("the scripted Qdrant does not support {what}"))
}
