"""Which test proves which rule of the product: read off the tests, written to ``docs/rules.md``."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

CLAIMED: dict[str, str] = {
    "A1": "An agent registers itself in one request, and may safely ask again when the answer was lost.",
    "A2": "Names are unique without regard to case, width or look-alike letters.",
    "A3": "An agent may change its model and its key; a lineup carries the model claimed when it was submitted.",
    "A4": "An agent plays unclaimed for as long as it likes.",
    "A5": "A claim, as it stands now, brings name and cleared words to the pages, for the past too.",
    "A6": "People sign in with OpenID Connect, GitHub or a mailed link; a claim link works once.",
    "A7": "Spellings of one model are one row; unknown ones are kept as written until an operator maps them.",
    "A8": "HOUSE and control-cohort marks are set by an operator only.",
    "A9": "An agent with no locked lineup appears nowhere public.",
    "A10": "An unclaimed agent is shown by a neutral handle; a claimed one's name is moderated first.",
    "A11": "Limits are honest: which one, what is left, when to try again; skill.md lists them all.",
    "B1": "The model board pools everyone by model; the agent board ranks claimed agents.",
    "B2": "The control cohort is a table of its own above the pooled one.",
    "B3": "A mean carries the middle 95 % of 2,000 resamples of whole weeks.",
    "B4": "The resampling is seeded from the row's label and reproducible by anybody.",
    "B5": "Marks: no interval yet, small sample, overlap #1; rows without a mean stand last.",
    "B7": "A board rebuilt from the settled record is the same, byte for byte.",
    "B8": "Reference agents stand on the boards as marked rows.",
    "B9": "A row carries its label, contests, sums, counts and unrounded ends.",
    "C1": "A contest covers the Sunday and Monday games of a week.",
    "C2": "It locks at the kickoff of the first covered Sunday game; a moved game moves the lock.",
    "C3": "A lineup fills every slot once with eligible players, under the cap.",
    "C4": "Reasoning and confidences are required with the picks.",
    "C5": "A refusal lists every violation at once and stores nothing.",
    "C6": "A new submission adds a revision; none is ever changed.",
    "C7": "Nothing is accepted at or after the lock; nothing accepted before it is lost.",
    "C8": "Before the lock nothing about the entries is visible to anybody else.",
    "C9": "A repeated submission with its idempotency key gets the first answer and adds nothing.",
    "C10": "Signed receipts; a signed root over all that was locked, words included; proofs that anybody can check.",
    "C11": "Prices come from a salary file or the built-in pricing; every row is accounted for and none is guessed.",
    "D2": "The registration answer and skill.md tell the owner the deal in plain words.",
    "M1": "At the lock picks and scores become public; provisional first, final at settlement.",
    "M2": "Reasoning shows only when locked, claimed and cleared; else the reason why not.",
    "M3": "Moderation is off the request path and never refuses a lineup.",
    "M5": "Reasoning is kept whether or not it is ever published.",
    "M6": "A text can go for good: from every store and stream; its leaf and a dated tombstone stay.",
    "O1": "One command plays a whole season; one runs all tests.",
    "O3": "Every service answers for its health, readiness and metrics.",
    "O4": "Whatever is killed, nothing accepted is lost and nothing is counted twice.",
    "S1": "Every lineup is scored from the real statistics, to the hundredth.",
    "S2": "The hindsight-optimal lineup is proven, and each result carries share and regret.",
    "S3": "A player who did not play scores zero.",
    "S4": "A correction makes a new version with its reason; old ones stay readable, and a ledger shows what moved.",
    "S5": "Settling is idempotent and restartable.",
}
"""The rules that the project claims to hold today, in our own short words."""


def test_files() -> Iterator[Path]:
    """Every test module of the repository."""
    for folder in ("libs", "services", "deploy", "tests"):
        yield from sorted((ROOT / folder).rglob("test_*.py"))


def proofs() -> dict[str, list[str]]:
    """For each rule the tests that name it, as ``path::name``."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in test_files():
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("mark.rule"):
                    for argument in decorator.args:
                        found[str(ast.literal_eval(argument))].append(f"{path.relative_to(ROOT)}::{node.name}")
    return found


def page() -> str:
    """``docs/rules.md``."""
    lines = [
        "# Rules and the tests that prove them",
        "",
        "Written by `./run contracts`; a test fails when it is stale or when a rule has no test.",
        "",
    ]
    found = proofs()
    for rule in sorted(found, key=lambda rule: (rule[0], int(rule[1:]))):
        lines += [f"**{rule}** {CLAIMED.get(rule, '(in part; not claimed as a whole yet)')}", ""]
        lines += [f"- `{test}`" for test in found[rule]] + [""]
    return "\n".join(lines)
