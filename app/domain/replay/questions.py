"""What is asked of the outcomes of a plan, and what of the recording they cannot tell about."""

from typing import Literal

from app.domain.counting import counted
from app.domain.replay.plan import Plan
from app.domain.replay.symptoms import Question, Sameness, Symptom

# Of what is told of a request that it was stripped of: what it then went without.
_WITHOUT = {
    "lora_path: not kept": "their adapter",
    "made up": "their own words",
    "placeholder": "their media",
    "_data: not kept": "their media",
    "session_": "their session",
    "custom_": "their code",
    "bootstrap_": "the rooms of a split server",
    "schema or grammar": "their grammar",
    "not know it": "fields that the target does not know",
    "input_embeds: not kept": "their embeddings",
    "sent as one prompt": "the other prompts of their batch",
}


def question_of(
    plan: Plan,
    symptom: Symptom,
    *,
    suspects: frozenset[int],
    sameness: Sameness,
    reference: Literal["faulty", "sound"] = "faulty",
) -> Question:
    """The question to the outcomes of *plan*; *suspects* are those that the file tells of.

    A file tells which requests may have brought a server down, never which answers are wrong.
    """
    sent = {slot.index for slot in plan.schedule.slots}
    left_out = {one.index for one in plan.left_out}
    of_file = frozenset() if symptom == "output" else suspects
    to_show_it = of_file & sent
    return Question(
        symptom,
        plan.options,
        reference=reference,
        sameness=sameness.said() if plan.options.same_setup else sameness,
        suspects=to_show_it,
        left_out=frozenset() if to_show_it else of_file & left_out,
        untested=untested(plan),
    )


def untested(plan: Plan) -> str | None:
    """The sentence for what was recorded and is not sent; None where all of it is."""
    parts = []
    if plan.left_out:
        were = "was" if len(plan.left_out) == 1 else "were"
        parts.append(f"{counted(len(plan.left_out), 'request')} {were} left out")
    without = dict.fromkeys(
        what for mark, what in _WITHOUT.items() if any(mark in told for told in plan.stripped)
    )
    if without:
        parts.append(f"some went without {', '.join(without)}")
    return f"Not tested: {'; '.join(parts)}." if parts else None
