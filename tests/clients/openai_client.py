"""The official `openai` package against `docent serve`.

The book is the sample book; the tests use only the public API.
"""

import openai
import pytest
from openai import OpenAI

QUESTION = "What is a ROS 2 node?"
STRANGE = "What is the best recipe for sourdough bread?"


@pytest.fixture
def client(url):
    return OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0, timeout=30)


@pytest.fixture
def locked(locked_url, key):
    """May ask three questions per minute."""
    return OpenAI(base_url=f"{locked_url}/v1", api_key=key, max_retries=0, timeout=30)


def ask(client, *messages, **options):
    """Sends a chat of alternating messages, starting with the user's."""
    roles = ["user", "assistant"]
    chat = [{"role": roles[place % 2], "content": text} for place, text in enumerate(messages)]
    return client.chat.completions.create(model="docent", messages=chat, **options)


def marks(content, annotations):
    """The text that each citation marks, with the citation."""
    found = []
    for annotation in annotations:
        citation = annotation.url_citation
        assert annotation.type == "url_citation"
        assert 0 <= citation.start_index < citation.end_index <= len(content)
        found.append((content[citation.start_index : citation.end_index], citation))
    return found


def test_docent_is_the_only_model(client):
    models = client.models.list()
    assert [model.id for model in models] == ["docent"]
    assert models.data[0].object == "model"


def test_an_answer_has_citation_annotations(client):
    completion = ask(client, QUESTION)
    assert completion.object == "chat.completion"
    assert completion.model == "docent"
    [choice] = completion.choices
    assert choice.finish_reason == "stop"
    message = choice.message
    assert message.role == "assistant"
    assert "participant in the ROS 2 graph" in message.content
    found = marks(message.content, message.annotations)
    assert found
    for mark, citation in found:
        assert mark.startswith("[") and citation.url in mark, mark
        assert citation.title
    # Annotations do not overlap.
    ends = sorted((citation.start_index, citation.end_index) for _, citation in found)
    assert all(before[1] <= after[0] for before, after in zip(ends, ends[1:]))
    assert completion.usage.total_tokens == (
        completion.usage.prompt_tokens + completion.usage.completion_tokens
    )


def test_a_streamed_answer_equals_the_whole_answer(client):
    whole = ask(client, QUESTION).choices[0].message
    chunks = list(ask(client, QUESTION, stream=True, stream_options={"include_usage": True}))
    assert len({chunk.id for chunk in chunks}) == 1
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    *pieces, last = chunks
    assert last.choices == []
    assert last.usage.total_tokens == last.usage.prompt_tokens + last.usage.completion_tokens
    assert all(chunk.usage is None for chunk in pieces)
    assert pieces[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in pieces if chunk.choices[0].finish_reason] == ["stop"]
    content = "".join(chunk.choices[0].delta.content or "" for chunk in pieces)
    assert content == whole.content
    # The package has no type for annotations of a delta, so compare them as sent.
    sent = pieces[-1].choices[0].delta.annotations
    assert sent == [annotation.model_dump() for annotation in whole.annotations]


def test_a_stream_reports_usage_only_on_request(client):
    chunks = list(ask(client, QUESTION, stream=True))
    assert all(chunk.choices and chunk.usage is None for chunk in chunks)


def test_a_follow_up_uses_the_messages_before_it(client):
    question = "What is Isaac Sim?"
    first = ask(client, question).choices[0].message.content
    alone = ask(client, "What does it need to run?").choices[0].message
    after = ask(client, question, first, "What does it need to run?").choices[0].message
    assert "Isaac Sim" not in alone.content
    assert "Isaac Sim" in after.content
    assert after.annotations


def test_content_parts_and_model_parameters_are_accepted(client):
    completion = client.chat.completions.create(
        model="gpt-4o-mini",
        temperature=0.2,
        max_completion_tokens=500,
        messages=[
            {"role": "system", "content": "You are a pirate."},
            {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
        ],
    )
    assert "participant in the ROS 2 graph" in completion.choices[0].message.content


@pytest.mark.parametrize("stream", [False, True])
def test_an_uncovered_question_is_not_answered(client, stream):
    if stream:
        chunks = list(ask(client, STRANGE, stream=True))
        content = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
        annotations = chunks[-1].choices[0].delta.annotations
    else:
        message = ask(client, STRANGE).choices[0].message
        content, annotations = message.content, message.annotations
    assert content.startswith("I don't have information about that"), content
    assert "sourdough" not in content.lower()
    assert annotations == []


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "user", "content": "   "}],
        [{"role": "user", "content": "x" * 8001}],
        [{"role": "user", "content": 5}],
        [{"role": "assistant", "content": "I was not asked."}],
        [{"role": "robot", "content": "Beep."}, {"role": "user", "content": QUESTION}],
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_an_invalid_chat_is_a_bad_request(client, messages, stream):
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="docent", messages=messages, stream=stream)
    assert caught.value.status_code == 400
    assert caught.value.request_id


def test_a_question_that_is_too_long_is_rejected(client):
    with pytest.raises(openai.APIStatusError) as caught:
        ask(client, "x" * 100_000)
    assert caught.value.status_code == 413


def test_an_unsupported_route_is_not_found(client):
    with pytest.raises(openai.NotFoundError):
        client.embeddings.create(model="docent", input="x", encoding_format="float")


def test_a_wrong_key_is_rejected(locked_url):
    stranger = OpenAI(base_url=f"{locked_url}/v1", api_key="wrong", max_retries=0)
    with pytest.raises(openai.AuthenticationError):
        stranger.models.list()
    with pytest.raises(openai.AuthenticationError):
        ask(stranger, QUESTION)


def test_rate_limited_clients_get_retry_after(locked):
    for _ in range(3):
        assert ask(locked, QUESTION).choices
    with pytest.raises(openai.RateLimitError) as caught:
        ask(locked, QUESTION)
    assert 1 <= int(caught.value.response.headers["retry-after"]) <= 60
    # Cheap requests are not counted.
    assert locked.models.list().data
