//! All collections and their aliases: the state that survives a kill and a restart.
//!
//! Invariant: no collection and alias share a name, except through renaming an alias, which the real server
//! does not check either.

use std::collections::BTreeMap;

use qdrant_client::qdrant::alias_operations::Action;
use qdrant_client::qdrant::{AliasOperations, CreateCollection};
use tonic::Status;

use super::collection::Collection;
use super::config::Config;
use super::errors;

/// Characters that a new name may not contain, because it becomes the name of a folder on any system.
const UNSAFE: [char; 11] = ['<', '>', ':', '"', '/', '\\', '|', '?', '*', '\0', '\u{1F}'];

#[derive(Default)]
pub(super) struct Store {
    pub(super) collections: BTreeMap<String, Collection>,
    pub(super) aliases: BTreeMap<String, String>,
    operations: u64,
}

impl Store {
    /// The number of the next operation; points carry it as their version.
    pub(super) fn next_operation(&mut self) -> u64 {
        self.operations += 1;
        self.operations
    }

    /// The collection with this name or alias.
    pub(super) fn collection(&self, name: &str) -> Result<&Collection, Status> {
        let name = self.resolve(name);
        self.collections.get(name).ok_or_else(|| errors::no_collection(name))
    }

    pub(super) fn collection_mut(&mut self, name: &str) -> Result<&mut Collection, Status> {
        let name = self.resolve(name).to_owned();
        self.collections.get_mut(&name).ok_or_else(|| errors::no_collection(&name))
    }

    fn resolve<'a>(&'a self, name: &'a str) -> &'a str {
        self.aliases.get(name).map_or(name, String::as_str)
    }

    pub(super) fn create(&mut self, sent: CreateCollection) -> Result<(), Status> {
        let name = sent.collection_name.clone();
        errors::check_characters("collection_name", &name, &UNSAFE)?;
        let config = Config::read(sent)?;
        if self.collections.contains_key(&name) {
            return Err(errors::collection_exists(&name));
        }
        if self.aliases.contains_key(&name) {
            return Err(errors::wrong_input(format_args!(
                "Can't create collection with name {name}. Alias with the same name already exists"
            )));
        }
        self.collections.insert(name, Collection::new(config));
        Ok(())
    }

    /// Deletes a collection and all its aliases. An alias cannot be used to delete.
    pub(super) fn delete(&mut self, name: &str) -> bool {
        self.aliases.retain(|_, collection| collection != name);
        self.collections.remove(name).is_some()
    }

    /// Applies the actions in order. Clients see all or none of them, but if one fails, those before it are
    /// kept: the real server does not roll back.
    pub(super) fn change_aliases(&mut self, actions: Vec<AliasOperations>) -> Result<(), Status> {
        for action in actions {
            match action.action {
                Some(Action::CreateAlias(alias)) => {
                    if !self.collections.contains_key(&alias.collection_name) {
                        return Err(errors::no_collection(&alias.collection_name));
                    }
                    if self.collections.contains_key(&alias.alias_name) {
                        return Err(errors::collection_exists(&alias.alias_name));
                    }
                    self.aliases.insert(alias.alias_name, alias.collection_name);
                }
                Some(Action::RenameAlias(alias)) => {
                    let collection = self
                        .aliases
                        .remove(&alias.old_alias_name)
                        .ok_or_else(|| errors::no_alias(&alias.old_alias_name))?;
                    self.aliases.insert(alias.new_alias_name, collection);
                }
                Some(Action::DeleteAlias(alias)) => {
                    self.aliases.remove(&alias.alias_name);
                }
                None => return Err(Status::invalid_argument("Malformed CreateAlias type")),
            }
        }
        Ok(())
    }
}
