//! Estimates the number of tokens of a text, for models whose tokenizer is not available.
//!
//! Passages are at most half as long as the input limit of the smallest of these models, so an estimate may
//! be too low by a few tokens, but not by half.
//!
//! Invariant: no script is counted as if it were English; a character that can be a token counts as one.

/// Letters per token in words of unaccented Latin letters.
const LETTERS: usize = 4;

/// Letters per token in words of other alphabets.
const OTHER_LETTERS: usize = 2;

/// An estimate that is about as high as the count of current tokenizers, or higher.
pub fn tokens(text: &str) -> usize {
    let (mut tokens, mut plain, mut other) = (0, 0usize, 0usize);
    let mut end_word = |plain: &mut usize, other: &mut usize| {
        tokens += plain.div_ceil(LETTERS) + other.div_ceil(OTHER_LETTERS);
        (*plain, *other) = (0, 0);
    };
    let mut single = 0;
    for letter in text.chars() {
        match letter {
            letter if letter.is_ascii_alphanumeric() => plain += 1,
            letter if is_dense(letter) => single += 1,
            letter if letter.is_alphanumeric() => other += 1,
            letter => {
                end_word(&mut plain, &mut other);
                single += usize::from(!letter.is_whitespace());
            }
        }
    }
    end_word(&mut plain, &mut other);
    tokens + single
}

/// Scripts in which one character can be a token of its own.
fn is_dense(letter: char) -> bool {
    // Southeast Asian scripts; Hangul, kana and ideographs; the supplementary planes.
    matches!(u32::from(letter), 0x0e00..=0x109f | 0x1100..=0x11ff | 0x1780..=0x17ff | 0x2e80..=0xd7ff | 0xf900..=0xfaff | 0xff66..)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embed::local::LocalEmbedder;
    use docent_core::embed::Embedder;

    #[test]
    fn tokens_are_estimated_for_all_scripts() {
        assert_eq!(tokens(""), 0);
        assert_eq!(tokens("A node is a participant."), 8);
        assert_eq!(tokens("机器人操作系统"), 7);
        assert_eq!(tokens("ロボット"), 4);
        assert_eq!(tokens("로봇"), 2);
        assert!(tokens("หุ่นยนต์") >= 6);
        assert_eq!(tokens("робот"), 3);
        assert_eq!(tokens("größe"), 2);
    }

    #[test]
    fn estimates_for_english_prose_and_code_are_close() {
        let bundled = LocalEmbedder::bundled().unwrap();
        let texts = [
            "A node is a participant in the ROS 2 graph: a named unit of computation that does one job.",
            "def main(args=None):\n    rclpy.init(args=args)\n    node = rclpy.create_node('listener')",
            "ros2 run turtlesim turtlesim_node --ros-args -p background_r:=150",
        ];
        for text in texts {
            let (estimate, exact) = (tokens(text), bundled.count_tokens(text));
            assert!(estimate * 10 >= exact * 8, "{estimate} for {exact}: {text}");
            assert!(estimate <= exact * 2, "{estimate} for {exact}: {text}");
        }
    }
}
