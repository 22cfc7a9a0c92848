//! Recognize small talk: a greeting, thanks, "What is this book about?".
//!
//! Invariant: the whole message must match, so that "Hello World in Rust" is a question.

/// The kind of small talk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SmallTalk {
    /// "Hello".
    Greeting,
    /// "Thank you".
    Thanks,
    /// "What is this book about?"
    AboutTheBook,
}

const GREETINGS: [&str; 14] = [
    "hello",
    "hi",
    "hey",
    "hi there",
    "hello there",
    "hey there",
    "good morning",
    "good afternoon",
    "good evening",
    "hallo",
    "guten tag",
    "bonjour",
    "hola",
    "greetings",
];

const THANKS: [&str; 18] = [
    "thanks",
    "thank you",
    "thank you very much",
    "thanks a lot",
    "many thanks",
    "thx",
    "ty",
    "cheers",
    "great thanks",
    "ok thanks",
    "thanks that helps",
    "danke",
    "merci",
    "gracias",
    "bye",
    "goodbye",
    "great",
    "perfect thanks",
];

/// Words for the book in "What is this … about?".
const WORKS: [&str; 8] =
    ["book", "textbook", "documentation", "site", "manual", "handbook", "course", "guide"];

/// Recognizes small talk.
pub fn small_talk(message: &str) -> Option<SmallTalk> {
    let lower = message.to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty()).collect();
    let said = words.join(" ");
    if GREETINGS.contains(&said.as_str()) {
        return Some(SmallTalk::Greeting);
    }
    if THANKS.contains(&said.as_str()) {
        return Some(SmallTalk::Thanks);
    }
    let about = |work: &str| {
        let asks = |pattern: &str| said == pattern.replace("{}", work);
        [
            "what is this {} about",
            "what's this {} about",
            "what is the {} about",
            "what does this {} cover",
            "what is in this {}",
            "what is this {}",
            "summarize this {}",
            "what can i learn from this {}",
        ]
        .iter()
        .any(|pattern| asks(pattern))
    };
    let general = ["what can you do", "what can i ask", "what is this about", "what can i ask you"];
    (WORKS.iter().any(|work| about(work)) || general.contains(&said.as_str()))
        .then_some(SmallTalk::AboutTheBook)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_messages_are_recognized() {
        assert_eq!(small_talk("Hello!"), Some(SmallTalk::Greeting));
        assert_eq!(small_talk("thank you :)"), Some(SmallTalk::Thanks));
        assert_eq!(small_talk("What is this book about?"), Some(SmallTalk::AboutTheBook));
    }

    #[test]
    fn questions_are_not_small_talk() {
        for question in [
            "Hello World in Rust",
            "hi pass filter",
            "What is this book's chapter on borrowing about?",
            "thanks to ownership, what is freed?",
        ] {
            assert_eq!(small_talk(question), None, "{question}");
        }
    }
}
