"""The official `mcp` package against `docent mcp` on stdio and `docent serve` at `/mcp`.

Each test runs over both transports, and on each with the handshake of older clients and
with the probe that newer ones send first. The book has 120 pages.
"""

import os
from contextlib import asynccontextmanager

import httpx2
import jsonschema
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

pytestmark = pytest.mark.anyio

PAGES = 120
QUESTION = "What does gearbox 42 need?"


def server(transport):
    if transport == "http":
        return os.environ["DOCENT_TEST_URL"] + "/mcp"
    # The package starts the program with these variables and few others.
    home = os.environ["DOCENT_TEST_HOME"]
    environment = {"HOME": home, "DOCENT_DATA_DIR": f"{home}/data", "DOCENT_EMBEDDER__KIND": "none"}
    program = os.environ["DOCENT_TEST_PROGRAM"]
    return StdioServerParameters(command=program, args=["mcp"], env=environment, cwd=home)


@pytest.fixture(params=["stdio", "http"])
def transport(request):
    return request.param


@pytest.fixture(params=["legacy", "auto"])
def connect(request, transport):
    """Opens a connection; a fixture cannot, because its scope must end in the task that began it."""

    @asynccontextmanager
    async def opened():
        async with Client(server(transport), mode=request.param, read_timeout_seconds=30) as client:
            yield client

    return opened


async def called(client, tool, **arguments):
    """Calls a tool and checks its result against the schema that the tool was listed with."""
    result = await client.call_tool(tool, arguments)
    words = "\n".join(content.text for content in result.content)
    if not result.is_error:
        [listed] = [each for each in (await client.list_tools()).tools if each.name == tool]
        jsonschema.validate(result.structured_content, listed.output_schema)
    return result, words


async def test_the_server_reports_its_name_and_capabilities(connect):
    async with connect() as client:
        assert client.server_info.name == "docent"
        assert client.server_info.version
        assert client.protocol_version
        able = client.server_capabilities
        assert able.tools and able.resources and able.prompts
        assert "ask_book" in client.instructions


async def test_tools_have_descriptions_and_schemas(connect):
    async with connect() as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == ["search_book", "ask_book", "read_page"]
        for tool in tools:
            assert tool.description and tool.title
            assert tool.annotations.read_only_hint is True
            jsonschema.Draft202012Validator.check_schema(tool.input_schema)
            jsonschema.Draft202012Validator.check_schema(tool.output_schema)
            assert tool.input_schema["type"] == "object"


async def test_the_page_of_a_passage_can_be_read(connect):
    async with connect() as client:
        result, words = await called(client, "search_book", query="gearbox 42", top_k=3)
        assert not result.is_error
        best = result.structured_content["chunks"][0]
        assert best["document_id"] == "workshop/gearbox-042.md"
        assert len(result.structured_content["chunks"]) <= 3
        assert best["url"] in words and best["content"] in words
        for page in [best["document_id"], best["url"]]:
            read, markdown = await called(client, "read_page", page=page)
            assert not read.is_error
            assert best["content"] in markdown
            assert read.structured_content["page_title"] == "Gearbox 42"


async def test_a_question_is_answered_with_citations(connect):
    async with connect() as client:
        result, words = await called(client, "ask_book", question=QUESTION)
        assert not result.is_error
        answer = result.structured_content
        assert answer["grounded"] is True
        assert "42 litres of oil" in answer["answer"] and "42 litres of oil" in words
        assert any("gearbox-042" in citation["url"] for citation in answer["citations"])


async def test_an_abstention_is_not_an_error(connect):
    async with connect() as client:
        result, words = await called(client, "ask_book", question="Who painted the Mona Lisa?")
        assert not result.is_error
        assert result.structured_content["grounded"] is False
        assert result.structured_content["citations"] == []
        assert words


@pytest.mark.parametrize(
    ("tool", "arguments", "reason"),
    [
        ("search_book", {}, "query"),
        ("search_book", {"query": "  "}, "empty"),
        ("search_book", {"query": "gearbox", "top_k": 0}, "top_k"),
        ("search_book", {"query": "gearbox", "top_k": "many"}, "invalid"),
        ("search_book", {"query": "gearbox", "colour": "red"}, "colour"),
        ("search_book", {"query": "gearbox", "module": "workship"}, "workshop"),
        ("ask_book", {"question": "x" * 8001}, "8000"),
        ("ask_book", {"query": "gearbox"}, "query"),
        ("read_page", {"page": "workshop/gearbox-42.md"}, "gearbox-042.md"),
        ("write_page", {}, "write_page"),
    ],
)
async def test_invalid_arguments_are_returned_as_a_tool_error(connect, tool, arguments, reason):
    async with connect() as client:
        # Call the session directly: the client would validate the arguments itself.
        result = await client.session.call_tool(tool, arguments)
        assert result.is_error
        assert reason in result.content[0].text
        # The connection still works.
        assert (await client.list_tools()).tools


async def test_every_page_is_listed_once(connect):
    async with connect() as client:
        listed, cursor, requests = [], None, 0
        while requests == 0 or cursor is not None:
            page = await client.list_resources(cursor=cursor)
            listed += page.resources
            cursor = page.next_cursor
            requests += 1
        assert requests == 2
        assert len(listed) == len({str(resource.uri) for resource in listed}) == PAGES
        assert all(resource.mime_type == "text/markdown" for resource in listed)
        with pytest.raises(MCPError):
            await client.list_resources(cursor="nowhere")


async def test_a_listed_page_can_be_read(connect):
    async with connect() as client:
        [resource] = [
            each for each in (await client.list_resources()).resources if each.title == "Gearbox 42"
        ]
        [contents] = (await client.read_resource(str(resource.uri))).contents
        assert contents.mime_type == "text/markdown"
        assert contents.text.startswith("# Gearbox 42\n")
        assert "42 litres of oil" in contents.text
        with pytest.raises(MCPError) as caught:
            await client.read_resource("docent://page/nowhere")
        assert "nowhere" in caught.value.message


async def test_the_resource_template_gives_a_readable_uri(connect):
    async with connect() as client:
        [template] = (await client.list_resource_templates()).resource_templates
        address = template.uri_template.replace("{document_id}", "workshop%2Fgearbox-007.md")
        [contents] = (await client.read_resource(address)).contents
        assert contents.text.startswith("# Gearbox 7\n")


async def test_the_prompt_contains_the_question(connect):
    async with connect() as client:
        [prompt] = (await client.list_prompts()).prompts
        assert [(argument.name, argument.required) for argument in prompt.arguments] == [("question", True)]
        [message] = (await client.get_prompt(prompt.name, {"question": QUESTION})).messages
        assert message.role == "user"
        assert QUESTION in message.content.text and "ask_book" in message.content.text
        with pytest.raises(MCPError):
            await client.get_prompt(prompt.name, {})
        with pytest.raises(MCPError):
            await client.get_prompt("nothing", {"question": QUESTION})


async def test_clients_do_not_disturb_each_other(connect):
    async with connect() as first, connect() as second:
        for number in [3, 5]:
            for client in [first, second]:
                result, _ = await called(client, "search_book", query=f"gearbox {number}", top_k=1)
                [chunk] = result.structured_content["chunks"]
                assert chunk["page_title"] == f"Gearbox {number}"


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_server_with_keys_requires_one(locked_url, key, mode):
    address = f"{locked_url}/mcp"
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}) as keyed:
        async with Client(streamable_http_client(address, http_client=keyed), mode=mode) as client:
            assert (await client.list_tools()).tools
    with pytest.raises(Exception) as caught:
        async with Client(address, mode=mode, read_timeout_seconds=30):
            pass
    # The transport's tasks may have wrapped the error.
    refusal = caught.value
    while isinstance(refusal, BaseExceptionGroup):
        [refusal] = refusal.exceptions
    assert isinstance(refusal, MCPError), refusal
