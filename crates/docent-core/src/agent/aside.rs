//! Calls of the model beside an answer: rewriting a follow-up, phrasing quiz questions.
//!
//! Invariant: tokens count even if the call is dropped or its text is not used.

use futures_util::StreamExt;

use super::Agent;
use super::incoming::spoken;
use super::window::{Characters, tokens};
use crate::clock::within;
use crate::generate::{
    GenerateError, GenerateEvent, GenerateRequest, Generator, Message, Meter, Role, Usage,
};
use crate::prompt;
use crate::quiz::{MOST_PHRASED, QuizQuestion, wordings};

/// Tokens of a question in the reply, generously.
const TOKENS_PER_QUESTION: u32 = 80;

/// What the model replies to a prompt, without its thoughts.
pub(super) async fn reply(
    generator: &dyn Generator,
    prompt: String,
    max_output_tokens: u32,
    meter: &Meter,
) -> Result<String, GenerateError> {
    let mut request = GenerateRequest::new(vec![Message::text(Role::User, prompt)]);
    request.max_output_tokens = Some(max_output_tokens);
    let sent: usize = request.messages.iter().map(|message| tokens(&message.content)).sum();
    let mut usage = Usage { input_tokens: u32::try_from(sent).unwrap_or(u32::MAX), output_tokens: 0 };
    meter.set(usage);
    let mut stream = match generator.generate(&request).await {
        Ok(stream) => stream,
        Err(error) => {
            meter.set(Usage::default());
            return Err(error);
        }
    };
    let (mut text, mut characters) = (String::new(), Characters::default());
    while let Some(event) = stream.next().await {
        match event? {
            GenerateEvent::Text(more) => {
                text.push_str(&more);
                characters.count(&more);
                usage.output_tokens = characters.tokens();
            }
            GenerateEvent::ToolCalls(_) => {}
            GenerateEvent::Done(used) if used.total() == 0 => {}
            GenerateEvent::Done(used) => usage = used,
        }
        meter.set(usage);
    }
    Ok(spoken(&text).to_owned())
}

impl Agent {
    /// Lets the model phrase quiz questions, the first [`MOST_PHRASED`] of them. A wording that does not ask for the same is
    /// not used; without a model, or if it fails or is too slow, the questions stay as they are.
    pub async fn phrase(&self, questions: &mut [QuizQuestion], meter: &Meter) -> Result<(), GenerateError> {
        let Some(generator) = self.parts.generator.as_deref() else { return Ok(()) };
        let count = questions.len().min(MOST_PHRASED);
        let questions = &mut questions[..count];
        if questions.is_empty() {
            return Ok(());
        }
        let most = TOKENS_PER_QUESTION * u32::try_from(count).unwrap_or(u32::MAX);
        let asking = reply(generator, prompt::phrase(questions), most, meter);
        let Some(replied) = within(self.parts.clock.as_ref(), self.parts.settings.deadline, asking).await
        else {
            return Err(GenerateError::Unavailable("it took too long".to_owned()));
        };
        for (place, wording) in wordings(&replied?, count) {
            let is_known = questions.iter().any(|other| other.question == wording);
            if !is_known {
                questions[place].rephrase(wording, generator.model());
            }
        }
        Ok(())
    }
}
