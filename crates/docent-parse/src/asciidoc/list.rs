//! Lists: bullets, numbers, terms and callouts, with the blocks attached to their items.
//!
//! Invariant: a list ends at the first line that does not belong to any of its items.

use super::Parser;
use super::lines::{Marker, marker, next_shown, starts_block};

impl Parser<'_> {
    /// Parses the list that starts at `at`; returns where it ends.
    pub(super) fn list(&mut self, lines: &[String], mut at: usize, depth: usize) -> usize {
        let mut open: Vec<(Marker, usize)> = Vec::new();
        while at < lines.len() {
            let line = lines[at].as_str();
            if line.trim().is_empty() {
                let next = next_shown(lines, at);
                let goes_on = lines.get(next).is_some_and(|line| marker(line).is_some() || line == "+");
                let is_literal = lines.get(next).is_some_and(|line| line.starts_with([' ', '\t']));
                if goes_on {
                    at = next;
                } else if is_literal {
                    at = self.element(lines, next, depth + 1);
                } else {
                    break;
                }
            } else if line == "+" {
                at = self.attached(lines, at + 1, depth);
            } else if line.starts_with("//") && !line.starts_with("////") && !line.starts_with("//-") {
                at += 1;
            } else if let Some((own, label, text)) = marker(line) {
                self.close_to(&mut open, &own);
                at = self.item(lines, at, &mut open, own, (label, text));
            } else {
                break;
            }
        }
        while let Some((marker, _)) = open.pop() {
            self.close(&marker);
        }
        at
    }

    /// Closes the lists nested inside the one that `own` continues; none if `own` starts a new list.
    fn close_to(&mut self, open: &mut Vec<(Marker, usize)>, own: &Marker) {
        let Some(found) = open.iter().position(|(marker, _)| marker == own) else { return };
        for (marker, _) in open.drain(found + 1..).rev().collect::<Vec<_>>() {
            self.close(&marker);
        }
    }

    fn close(&mut self, marker: &Marker) {
        match marker {
            Marker::Term(_) => self.output.close_term(),
            _ => self.output.close_list(),
        }
    }

    fn item(
        &mut self,
        lines: &[String],
        at: usize,
        open: &mut Vec<(Marker, usize)>,
        own: Marker,
        (label, text): (&str, &str),
    ) -> usize {
        let is_term = matches!(own, Marker::Term(_));
        self.open_item(open, own, label);
        let mut start = at + 1;
        let mut words = vec![text.to_owned()];
        // The description of a term may be on the lines below it.
        if is_term && text.is_empty() {
            let next = next_shown(lines, start);
            let explains = lines.get(next).is_some_and(|line| {
                marker(line).is_none() && !starts_block(line) && line != "+" && !line.starts_with("//")
            });
            if !explains {
                return start;
            }
            start = next;
        }
        let end = (start..lines.len())
            .find(|next| {
                let line = lines[*next].as_str();
                line.trim().is_empty()
                    || line == "+"
                    || line.starts_with("//")
                    || marker(line).is_some()
                    || starts_block(line)
            })
            .unwrap_or(lines.len());
        words.extend(lines[start..end].iter().cloned());
        let words = self.joined(&words, false);
        self.output.paragraph(&words);
        end
    }

    /// Writes the marker of an item, and opens a list if the item is not in the innermost one.
    fn open_item(&mut self, open: &mut Vec<(Marker, usize)>, own: Marker, label: &str) {
        let is_term = matches!(own, Marker::Term(_));
        if open.last().map(|(marker, _)| marker) != Some(&own) {
            if !is_term {
                self.output.open_list();
            }
            open.push((own.clone(), 0));
        } else if is_term {
            self.output.close_term();
        }
        let number = open.last_mut().map_or(1, |(_, number)| {
            *number = label.parse().unwrap_or(number.saturating_add(1));
            *number
        });
        match &own {
            Marker::Bullet(_) => self.output.item("-"),
            Marker::Number(kind) if kind == "a." => self.output.item(&format!("{label}.")),
            Marker::Number(_) | Marker::Callout => self.output.item(&format!("{number}.")),
            Marker::Term(_) => {
                let term = self.words(label);
                self.output.term(&term);
            }
        }
    }

    /// Parses the block after a `+`.
    fn attached(&mut self, lines: &[String], at: usize, depth: usize) -> usize {
        let mut at = at;
        while at < lines.len() && self.described(&lines[at]) {
            at += 1;
        }
        if lines.get(at).is_none_or(|line| line.trim().is_empty()) {
            return at;
        }
        self.element(lines, at, depth + 1).max(at + 1)
    }
}
