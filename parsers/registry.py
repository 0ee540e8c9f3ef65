"""The one place where format names are bound to their implementations.

Adding a built-in format touches its own file and one line here. Plugins add entry points of the group
`derender.formats`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, cast

from django.conf import settings

from parsers.engine.exceptions import ParserConfigurationError
from parsers.engine.parser import ParserPlan
from parsers.engine.stage import Format, ReasoningFormat, ToolFormat, UnifiedFormat
from parsers.engine.vocabulary import Vocabulary
from parsers.formats import (
    apertus,
    beam,
    cohere,
    deepseek_dsml,
    deepseek_r1,
    deepseek_v3,
    dots,
    ernie45,
    functiongemma,
    gemma4,
    gigachat3,
    glm,
    granite,
    granite4,
    granite_20b_fc,
    granite_thinking,
    harmony,
    hermes,
    hf,
    hunyuan_a13b,
    hy_v3,
    hy_v4,
    inkling,
    internlm,
    jamba,
    k2_horizon,
    kimi_k2,
    kimi_k3,
    lfm2,
    llama3_json,
    llama4_pythonic,
    mimo,
    minicpm5,
    minicpmv,
    minimax_m2,
    minimax_m3,
    mistral,
    muse,
    muse_glimmer,
    nemotron_v3,
    olmo3,
    olmo3_reasoning,
    phi4_mini_json,
    plamo3,
    poolside_v1,
    pythonic,
    qwen3,
    seed_oss,
    step3,
    step3p5,
    xlam,
)

BUILT_IN: tuple[type[Format], ...] = (
    apertus.ApertusTools,
    beam.Beam,
    cohere.CohereCommand3,
    cohere.CohereCommand4,
    deepseek_dsml.DeepSeekV32Tools,
    deepseek_dsml.DeepSeekV41Reasoning,
    deepseek_dsml.DeepSeekV41Tools,
    deepseek_dsml.DeepSeekV4Reasoning,
    deepseek_dsml.DeepSeekV4Tools,
    deepseek_r1.DeepSeekR1Reasoning,
    deepseek_r1.DeepSeekV3Reasoning,
    deepseek_r1.Holo2Reasoning,
    deepseek_v3.DeepSeekV31Tools,
    deepseek_v3.DeepSeekV3Tools,
    dots.DotsTools,
    ernie45.Ernie45Reasoning,
    ernie45.Ernie45Tools,
    functiongemma.FunctionGemma,
    gemma4.Gemma4Reasoning,
    gemma4.Gemma4Tools,
    gigachat3.GigaChat3Tools,
    glm.GlmReasoning,
    glm.GlmTools,
    glm.Ling3Reasoning,
    glm.Ling3Tools,
    granite.GraniteReasoning,
    granite.GraniteTools,
    granite4.Granite4Tools,
    granite_20b_fc.Granite20bTools,
    granite_thinking.GraniteThinkingReasoning,
    harmony.Harmony,
    hermes.HermesTools,
    hermes.LongCatTools,
    hf.HuggingFace,
    hunyuan_a13b.HunyuanReasoning,
    hunyuan_a13b.HunyuanTools,
    hy_v3.HyV3Reasoning,
    hy_v3.HyV3Tools,
    hy_v4.HyV4Reasoning,
    hy_v4.HyV4Tools,
    inkling.InklingReasoning,
    inkling.InklingTools,
    internlm.InternlmTools,
    jamba.JambaTools,
    k2_horizon.K2HorizonReasoning,
    k2_horizon.K2HorizonTools,
    kimi_k2.KimiK2Reasoning,
    kimi_k2.KimiK2Tools,
    kimi_k3.KimiK3,
    lfm2.Lfm2Tools,
    llama3_json.Llama3JsonTools,
    llama4_pythonic.Llama4Pythonic,
    mimo.MimoReasoning,
    mimo.MimoTools,
    minicpm5.Minicpm5Tools,
    minicpmv.MinicpmvReasoning,
    minimax_m2.MinimaxM2AppendThinkReasoning,
    minimax_m2.MinimaxM2Reasoning,
    minimax_m2.MinimaxM2Tools,
    minimax_m3.MinimaxM3Reasoning,
    minimax_m3.MinimaxM3Tools,
    mistral.MistralReasoning,
    mistral.MistralTools,
    muse.MuseReasoning,
    muse.MuseTools,
    muse_glimmer.GlimmerReasoning,
    muse_glimmer.GlimmerTools,
    nemotron_v3.NemotronReasoning,
    olmo3.Olmo3Tools,
    olmo3_reasoning.Olmo3Reasoning,
    phi4_mini_json.Phi4MiniTools,
    plamo3.Plamo3Reasoning,
    plamo3.Plamo3Tools,
    poolside_v1.PoolsideReasoning,
    poolside_v1.PoolsideTools,
    pythonic.Pythonic,
    qwen3.Qwen3CoderTools,
    qwen3.Qwen3Reasoning,
    seed_oss.SeedOssReasoning,
    seed_oss.SeedOssTools,
    step3.Step3Reasoning,
    step3.Step3Tools,
    step3p5.Step3p5Reasoning,
    step3p5.Step3p5Tools,
    step3p5.Step5Tools,
    xlam.XlamTools,
)

ENTRY_POINT_GROUP = "derender.formats"


@cache
def formats() -> tuple[type[Format], ...]:
    """Every format class: built in, from entry points, and from the dotted paths in `settings.DERENDER["FORMATS"]`.

    Raises ParserConfigurationError if one cannot be imported or is no format.
    """
    declared = [_plugin(point.value, point.load) for point in entry_points(group=ENTRY_POINT_GROUP)]
    paths: Any = settings.DERENDER.get("FORMATS", ()) if settings.configured else ()
    return BUILT_IN + tuple(declared) + tuple(_plugin(path, partial(_import, path)) for path in paths)


def _import(path: str) -> object:
    module, _, name = path.replace(":", ".").rpartition(".")
    return getattr(import_module(module), name)


def _plugin(path: str, load: Callable[[], object]) -> type[Format]:
    try:
        found = load()
    except (ImportError, AttributeError, ValueError) as error:
        raise ParserConfigurationError(f"format plugin {path!r} cannot be imported: {error}") from error
    if not isinstance(found, type) or not issubclass(found, Format):
        raise ParserConfigurationError(f"format plugin {path!r} is no subclass of parsers.engine.stage.Format")
    return found


@cache
def tool_formats() -> Mapping[str, type[Format]]:
    """Name -> class of every tool parser."""
    classes = (cls for cls in formats() if issubclass(cls, ToolFormat | UnifiedFormat))
    return {name: cls for cls in classes for name in cls.tool_names()}


@cache
def reasoning_formats() -> Mapping[str, type[Format]]:
    """Name -> class of every reasoning parser."""
    classes = (cls for cls in formats() if issubclass(cls, ReasoningFormat | UnifiedFormat))
    return {name: cls for cls in classes for name in cls.reasoning_names()}


def build_plan(*, tool_parser: str | None, reasoning_parser: str | None, vocabulary: Vocabulary) -> ParserPlan | None:
    """The parsers of one model; None if neither is named, nor one claims the model.

    Raises ParserConfigurationError for an unknown name, a pair that cannot be combined, or a tokenizer that lacks what
    a format needs.
    """
    claimed = next((cls for cls in formats() if issubclass(cls, UnifiedFormat) and cls.claims(vocabulary)), None)
    if not tool_parser and not reasoning_parser and claimed is None:
        return None
    name = f"{tool_parser or ''}+{reasoning_parser or ''}"
    tool_class = _lookup(tool_formats(), tool_parser, "tool-call") if tool_parser else None
    reasoning_class = _lookup(reasoning_formats(), reasoning_parser, "reasoning") if reasoning_parser else None
    named = (cls for cls in (tool_class, reasoning_class) if cls and issubclass(cls, UnifiedFormat))
    unified = claimed or next(named, None)
    if unified is None:
        return ParserPlan(
            name=name,
            reasoning=cast(ReasoningFormat, reasoning_class(vocabulary)) if reasoning_class else None,
            tools=cast(ToolFormat, tool_class(vocabulary)) if tool_class else None,
        )
    if {tool_class, reasoning_class} - {None, unified}:
        raise ParserConfigurationError(
            f"--reasoning-parser {reasoning_parser} and --tool-call-parser {tool_parser} cannot be combined; "
            f"this model is parsed by {unified.names[0]!r} alone: name it in both flags, or leave the other one out"
        )
    return ParserPlan(name=name, unified=unified(vocabulary, tools=bool(tool_parser), reasoning=bool(reasoning_parser)))


def _lookup(known: Mapping[str, type[Format]], name: str, kind: str) -> type[Format]:
    try:
        return known[name]
    except KeyError:
        raise ParserConfigurationError(f"unknown {kind} parser {name!r}; known: {', '.join(sorted(known))}") from None
