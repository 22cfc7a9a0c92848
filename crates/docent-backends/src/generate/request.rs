//! Converts Docent's requests to those of `genai`.
//!
//! Invariant: messages keep their order, and a tool result keeps the id of its call.

use docent_core::generate::{GenerateRequest, Message, Role};
use genai::chat::{
    ChatMessage, ChatOptions, ChatRequest, ContentPart, MessageContent, ReasoningEffort, Tool, ToolCall,
    ToolChoice, ToolResponse,
};
use serde_json::Value;

pub(super) fn chat(request: &GenerateRequest) -> ChatRequest {
    let messages = request.messages.iter().map(|message| chat_message(message, &request.messages));
    let chat = ChatRequest::from_messages(messages.collect());
    if request.tools.is_empty() {
        return chat;
    }
    let tools = request.tools.iter().map(|tool| {
        Tool::new(tool.name.as_str())
            .with_description(tool.description.as_str())
            .with_schema(tool.parameters.clone())
    });
    chat.with_tools(tools.collect::<Vec<_>>())
}

pub(super) fn options(request: &GenerateRequest, with_temperature: bool) -> ChatOptions {
    let mut options = ChatOptions::default().with_capture_usage(true).with_capture_tool_calls(true);
    if with_temperature {
        // Avoid sending 0.1 as 0.10000000149011612.
        options = options.with_temperature((f64::from(request.temperature) * 1e4).round() / 1e4);
    }
    if let Some(most) = request.max_output_tokens {
        options = options.with_max_tokens(most);
    }
    if request.must_use_tool && !request.tools.is_empty() {
        options = options.with_tool_choice(ToolChoice::Required);
    }
    options
}

/// `genai` interprets `-high`, `-max` and the like at the end of a name as a reasoning effort and removes it.
/// But a compatible server may have a model of exactly that name. Setting a budget, which OpenAI's protocol
/// does not support, keeps the name and adds nothing to the request.
pub(super) fn keep_model_name(options: ChatOptions, model: &str) -> ChatOptions {
    match ReasoningEffort::from_model_name(model) {
        (Some(_), _) => options.with_reasoning_effort(ReasoningEffort::Budget(0)),
        (None, _) => options,
    }
}

fn chat_message(message: &Message, all: &[Message]) -> ChatMessage {
    match message.role {
        Role::System => ChatMessage::system(message.content.as_str()),
        Role::User => ChatMessage::user(message.content.as_str()),
        Role::Assistant => {
            let text = (!message.content.is_empty()).then(|| ContentPart::Text(message.content.clone()));
            let calls = message.tool_calls.iter().map(|call| {
                // Arguments that are not JSON are sent back as text.
                let arguments = serde_json::from_str(&call.arguments)
                    .unwrap_or_else(|_| Value::String(call.arguments.clone()));
                ContentPart::ToolCall(ToolCall {
                    call_id: call.id.clone(),
                    fn_name: call.name.clone(),
                    fn_arguments: arguments,
                    thought_signatures: None,
                })
            });
            ChatMessage::assistant(MessageContent::from_parts(
                text.into_iter().chain(calls).collect::<Vec<_>>(),
            ))
        }
        Role::Tool => {
            let id = message.tool_call_id.as_deref().unwrap_or_default();
            let response = ToolResponse::new(id, message.content.as_str());
            // Some providers match results to calls by the tool's name.
            let call = all.iter().flat_map(|message| &message.tool_calls).find(|call| call.id == id);
            ChatMessage::from(match call {
                Some(call) => response.with_fn_name(call.name.as_str()),
                None => response,
            })
        }
    }
}
