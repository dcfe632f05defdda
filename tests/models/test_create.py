from __future__ import annotations

import subprocess
import sys
from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest

from fast_agent.config.settings import NO_SETTINGS, LocalSettings, Settings
from fast_agent.errors import ModelError
from fast_agent.messages.message import Message
from fast_agent.models.create import ModelFactory
from fast_agent.models.local.model import LocalModel
from fast_agent.models.model import Model, ModelRequest
from fast_agent.models.providers.provider import ProviderModel

if TYPE_CHECKING:
    from pathlib import Path


async def ask(model: Model, text: str = "go") -> str:
    return (await model.request(ModelRequest("", [Message.user(text)]))).message.text


@pytest.mark.anyio
@pytest.mark.parametrize("text", ["passthrough", "slow?seconds=0", "quick"])
async def test_offline_models_answer(text: str) -> None:
    settings = Settings(model_aliases=MappingProxyType({"quick": "slow?seconds=0"}))
    model = ModelFactory(settings, {}).create(text)
    assert await ask(model, "hello") == "hello"
    assert model.name in {"passthrough", "slow"}
    await model.aclose()


@pytest.mark.anyio
async def test_playback_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "h.txt").write_text("---USER\nhi\n---ASSISTANT\nhello\n")
    model = ModelFactory(NO_SETTINGS, {}).create("playback?file=h.txt", directory=tmp_path)
    assert await ask(model) == "hello"
    assert await ask(model) == "MESSAGES EXHAUSTED (list size 2) (1 overage)"


@pytest.mark.anyio
async def test_agents_of_one_script_file_share_it(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("agents: {cook: [{text: a}, {text: b}], waiter: [{text: c}]}")
    factory = ModelFactory(NO_SETTINGS, {})

    def make(agent: str) -> Model:
        return factory.create("scripted?file=s.yaml", agent=agent, directory=tmp_path)

    assert [await ask(make("cook")), await ask(make("cook"))] == ["a", "b"]
    with pytest.raises(ModelError, match="step 1 of `waiter`"):
        factory.finish()
    assert await ask(make("waiter")) == "c"
    factory.finish()


def test_models_of_providers_are_made_without_being_reached() -> None:
    environ = {"OPENAI_API_KEY": "k"}
    model = ModelFactory(NO_SETTINGS, environ).create("gpt-5.low?seed=1")
    assert isinstance(model, ProviderModel)
    assert model.name == "openai.gpt-5.low"


def test_local_models_are_made_without_being_loaded(tmp_path: Path) -> None:
    weights = tmp_path / "w.gguf"
    weights.write_bytes(b"GGUF")
    settings = Settings(local=LocalSettings(path=weights, threads=1))
    model = ModelFactory(settings, {}).create("local?seed=1")
    assert isinstance(model, LocalModel)
    assert model.name == "local"
    weights.unlink()
    with pytest.raises(ModelError, match="cannot find the"):
        ModelFactory(settings, {}).create("local")


def test_what_cannot_be_made_says_why(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="unknown model `sonet`"):
        ModelFactory(NO_SETTINGS, {}).create("sonet")
    with pytest.raises(ModelError, match="from the network"):
        ModelFactory(NO_SETTINGS, {}).create("scripted?file=s.yaml")
    with pytest.raises(ModelError, match="cannot find the"):
        ModelFactory(NO_SETTINGS, {}).create("scripted?file=s.yaml", directory=tmp_path)


def test_offline_models_import_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from fast_agent.config.load import load_settings\n"
        "from fast_agent.config.settings import NO_SETTINGS\n"
        "from fast_agent.models.check import check_model\n"
        "from fast_agent.models.create import ModelFactory\n"
        "check_model('passthrough', NO_SETTINGS, {})\n"
        "ModelFactory(NO_SETTINGS, {}).create('passthrough')\n"
        "heavy = {'pydantic', 'pydantic_ai', 'anyio', 'asyncio', 'mcp', 'httpx2', 'rich',"
        " 'jsonschema', 'xllamacpp', 'yaml', 'ssl', 'socket'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
