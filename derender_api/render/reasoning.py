"""Whether a prompt leaves reasoning behind, and whether the engine must keep special tokens for the parsers."""

from collections.abc import Sequence

from derender_api.loaded_model import LoadedModel
from derender_api.parsing import open_parser
from derender_api.protocol.render import ChatRenderRequest
from parsers.engine.context import RequestContext


def reasoning_ended(model: LoadedModel, context: RequestContext, token_ids: Sequence[int]) -> bool | None:
    """Whether output begins behind the reasoning; None where the model has no reasoning parser (protocol 10.1)."""
    if not context.include_reasoning:
        return True
    plan = model.plan
    if plan is None or (plan.reasoning is None and plan.unified is None):
        return None
    if plan.reasoning is not None:
        stage = plan.reasoning.open(context, token_ids)
        return stage is None or stage.ended
    open_parser(plan, context, token_ids)
    return None


def keeps_special_tokens(request: ChatRenderRequest, model: LoadedModel) -> bool:
    """Whether the engine must keep special tokens in its text, which the model's parsers read as markers."""
    return False
