"""What a role's answer must hold, with a stand-in that is sloppy, partial, late or stubborn."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from scripted_llm import llm_entry, prompts, replying_to, scripted_llm
from test_llm_agents import KINDS, data, pool_of, proposal, set_of, voting
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import InfrastructureError, InputError, InvalidAnswerError, LateAnswerError
from merton.models.remote import RestingError
from merton_studies.annotate.cache import Cache
from merton_studies.curation.agents import FEWEST, MOST, Balance, Critique, Finding, Round, left_out
from merton_studies.curation.assignment import assign, told_invalid
from merton_studies.curation.budget import Budget
from merton_studies.curation.llm.agents import LlmProposer, LlmReviewer, LlmVoter
from merton_studies.curation.llm.asker import MOST_LATE, TEMPERATURE, Asker
from merton_studies.curation.llm.forms import Ballot, Proposal, Review
from merton_studies.curation.llm.prompting import FOLDER, read_prompt
from merton_studies.curation.question import Question
from merton_studies.curation.taxonomy import Taxonomy
from merton_studies.harness.answers import JUDGED, Answered, score_answers
from patience import stretched
from wire import LIMIT_S, Wire, half_closed, replying, silent

pytest.importorskip("httpx2", reason="the extra `remote` is not installed")

SET = set_of(*KINDS)
PLACEHOLDER = "One or two sentences by which a reader decides whether a question needs it."
FINDING = {"kind": "redundant", "action": "merge", "dimensions": ["Where", "Many"], "text": "Alike."}


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Cache]:
    with Cache(tmp_path / "answers.sqlite") as cache:
        yield cache


def asker_of(wire: Wire, cache: Cache, deadline_s: float = LIMIT_S, **of: Any) -> Asker:
    entry = llm_entry(wire)
    patience = {"deadline_s": deadline_s, "pause_s": 0.01}
    return Asker(entry.model_copy(update={"settings": {**entry.settings, "patience": patience}}), cache, Budget(), **of)


def dimensions(*parts: tuple[str, str]) -> str:
    return json.dumps({"dimensions": [{"name": name, "definition": definition} for name, definition in parts]})


def findings(*several: Any) -> str:
    return json.dumps({"findings": several, "summary": "Read."})


def votes(**by_id: str) -> str:
    return json.dumps({"votes": [{"id": name, "dimension": dimension} for name, dimension in by_id.items()]})


def sampling(wire: Wire) -> list[tuple[float, int]]:
    return [(request.body["temperature"], request.body["seed"]) for request in wire.requests]


def test_the_prompts_ask_for_what_is_checked() -> None:
    assert f"between {FEWEST} and {MOST} of them" in read_prompt("propose").text
    assert PLACEHOLDER in read_prompt("propose").examples
    assert {file.stem for file in FOLDER.glob("*.md")} - {"retry", "mark"} == {
        file.stem for file in FOLDER.glob("*.md") if read_prompt(file.stem).examples
    }, "the mark of a judge is a number; the other roles answer with texts"


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (dimensions(("SpatGeo", PLACEHOLDER)), "0 valid dimensions.*between 4 and 15.*repeats the example"),
        (dimensions(*((f"D{n}", PLACEHOLDER.upper().rstrip(".")) for n in range(6))), "0 valid dimensions"),
        (proposal("Where", "Many", "Near"), "3 valid dimensions"),
        (proposal(*(f"D{number}" for number in range(16))), "16 valid dimensions"),
        (dimensions(*((f"D{number}", "It needs sight.") for number in range(5))), "has the definition of D0"),
        (dimensions(*((f"D{number}", f"D{number}.") for number in range(5))), "defines nothing"),
        (dimensions(*((f"D{number}", "...") for number in range(5))), "defines nothing"),
        (json.dumps({"dimensions": ["Where", "Many", "Near", "Far"]}), "must be a mapping with the keys"),
        (json.dumps({"dimensions": {"Where": "It needs sight."}}), "must be a list"),
        (json.dumps({"dims": []}), "dimensions: is missing; it has: dims"),
    ],
)  # fmt: skip
def test_a_proposal_that_holds_not_what_was_asked_for_is_refused(answer: str, fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        Proposal(read_prompt("propose").examples).read(answer)


def test_of_a_proposal_the_valid_dimensions_are_taken_and_the_others_named(cache: Cache) -> None:
    five = [{"name": name, "definition": f"It needs {name}.", "examples": ["more"]} for name in (*KINDS, "Two words")]
    with scripted_llm(json.dumps({"dimensions": five})) as wire:
        found = LlmProposer(asker_of(wire, cache)).propose(pool_of(), None, ())
        assert sampling(wire)[0] == (0.0, 0)
        assert sampling(wire)[1][0] == TEMPERATURE, "the second try differs from the first"
        assert sampling(wire)[1][1] != 0
    assert found.names == KINDS
    assert found.origin.startswith("proposed by scripted; left out: dimension 5: name: must be letters, digits")


@pytest.mark.parametrize(
    ("said_first", "taken", "fault"),
    [
        ([FINDING, {**FINDING, "dimensions": ["Where", "Wher"]}], 1, "did you mean 'Where'|'Wher'"),
        ([FINDING, {**FINDING, "kind": "dull"}], 1, "finding 2: kind: must be"),
        ([FINDING, "merge them all"], 1, "finding 2: must be a mapping"),
        ([FINDING, {**FINDING, "text": "The reason in one or two sentences."}], 1, "repeats the example"),
        ([FINDING, {**FINDING, "action": "drop", "dimensions": []}], 1, "drop names at least 1"),
        ([{**FINDING, "dimensions": ["Where", "Many", "Nonsense"]}], 1, "'Nonsense' is no dimension"),
    ],
)  # fmt: skip
def test_of_a_review_the_valid_findings_are_taken_and_the_others_named(
    said_first: list[Any], taken: int, fault: str, cache: Cache
) -> None:
    with scripted_llm(findings(*said_first)) as wire:  # the same at the second try
        critique = LlmReviewer(asker_of(wire, cache)).review(SET, pool_of(), (), None)
        assert [temperature for temperature, _ in sampling(wire)] == [0.0, TEMPERATURE]
    expected = Finding(kind="redundant", action="merge", dimensions=("Where", "Many"), text="Alike.")
    assert critique.findings == (expected,) * taken
    assert len(critique.dropped) == 1
    assert re.search(fault, critique.dropped[0])


def test_a_sloppy_review_is_read() -> None:
    finding = {"kind": " Unclear", "action": "REDEFINE", "dimensions": "where", "severity": 3, "text": "Vague."}
    new = {"kind": "missing", "action": "add", "dimensions": ["Causes"], "text": "Nothing asks why."}
    part = Review(SET, read_prompt("review").examples).read(json.dumps({"findings": [finding, new], "verdict": "Hm."}))
    assert part.faults == ()
    assert [one.dimensions for one in part.value.findings] == [("Where",), ()]


@pytest.mark.parametrize("answer", ["{}", '{"summary": "Bad."}', '{"findings": null}', findings({"kind": "dull"})])
def test_a_review_without_a_valid_finding_accepts_nothing(cache: Cache, answer: str) -> None:
    with scripted_llm(answer) as wire, pytest.raises(InvalidAnswerError, match="scripted gave no valid answer"):
        LlmReviewer(asker_of(wire, cache)).review(SET, pool_of(), (), None)


def test_what_was_left_out_is_no_part_of_a_prompt_and_is_told(cache: Cache) -> None:
    critique = Critique(findings=(), summary="Read.", dropped=("finding 2: kind: must be ...",))
    balance = Balance(
        assigned={"Where": 3, "Other": 9}, kept={"Where": 3}, contested=9, entropy=1.0, invalid=40, unvoted=7
    )
    memory = [
        Round(outer=1, inner=1, taxonomy=SET, critique=critique),
        Round(outer=1, inner=2, taxonomy=SET, balance=balance),
    ]
    with scripted_llm(proposal(*KINDS)) as wire:
        LlmProposer(asker_of(wire, cache)).propose(pool_of(), critique, memory)
        (prompt,) = prompts(wire)
    assert "must be ..." not in prompt
    assert left_out(memory) == [
        "round 1.1: of the review was left out: finding 2: kind: must be ...",
        "round 1.2: 40 votes were not valid, and 7 of 12 questions have no valid vote",
    ]


def test_one_vote_of_twelve_is_asked_for_again_and_the_rest_taken(cache: Cache) -> None:
    def one_then_all(prompt: str) -> str:
        return voting(prompt) if "previous answer" in prompt else votes(q1="Where")

    questions = pool_of().questions[:12]
    with scripted_llm(replying_to(one_then_all)) as wire:
        voter = LlmVoter(asker_of(wire, cache))
        assert voter.vote(questions, SET) == ["Where", *["Colour"] * 11], "a valid vote of the first try stays"
        first, second = prompts(wire)
    assert "11 of 12 votes are missing: q2, q3" in second[len(first) :]
    assert voter.faults == []


def test_votes_that_never_come_are_counted_with_their_reason(cache: Cache) -> None:
    def one_alone(prompt: str) -> str:
        return votes(q1="Where")

    pool = pool_of(3)
    with scripted_llm(replying_to(one_alone)) as wire:
        voters = [LlmVoter(asker_of(wire, cache), seed) for seed in range(2)]
        found = assign(pool, SET, voters)
    assert found.invalid == {"scripted seed 0": 11, "scripted seed 1": 11}
    balance = found.balance()
    assert (balance.invalid, balance.unvoted) == (22, 11)
    told = told_invalid(found, voters)
    assert told[0].startswith("scripted seed 0 gave no valid vote for 11 of 12 questions: two tries gave 1 of 12 votes")
    assert told[2] == '11 of 12 questions have no valid vote; they are counted under "Other"'


def test_an_assignment_without_one_valid_vote_is_none(cache: Cache) -> None:
    with scripted_llm("I cannot sort these.") as wire:
        voters = [LlmVoter(asker_of(wire, cache), seed) for seed in range(2)]
        with pytest.raises(InvalidAnswerError, match=r"no voter gave a valid vote for any of 12 .*no JSON object"):
            assign(pool_of(3), SET, voters)


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ('{"votes": [{"id": "q1", "dimension": "Where"}, {"id": "q2", "dimension": "Many"}, {"id": "q3", "dim', 2),
        ('{"votes": [{"id": "q1", "dimension": "Where", "reason": "It asks where."}], "note": "one"}', 1),
        ('{"votes": [{"id": 1}, {"id": "q2", "dimension": [7]}, {"id": "q3", "dimension": " MANY "}]}', 1),
        ('{"votes": ["Where", null, {"id": "q2", "dimension": "Other"}]}', 1),
    ],
)  # fmt: skip
def test_valid_votes_are_found_in_what_models_make_of_the_form(answer: str, found: int) -> None:
    part = Ballot(("q1", "q2", "q3"), SET).read(answer)
    assert len(part.value) == found
    assert part.faults


def late_at(asker: Asker, *marks: str) -> list[str]:
    """An asker whose answers to prompts with one of some texts come too late; gives the list of all its prompts."""
    respond, seen = asker._model.respond, list[str]()

    def responding(questions: Sequence[Any]) -> Any:
        seen.append(questions[0].text)
        if any(mark in questions[0].text for mark in marks):
            return [LateAnswerError("no answer within the deadline of 60 s")]
        return respond(questions)

    asker._model.respond = responding  # type: ignore[method-assign]
    return seen


def test_an_answer_after_the_deadline_ends_no_other_and_is_not_kept(cache: Cache) -> None:
    pool = pool_of()  # three calls
    slow = json.dumps(pool.questions[0].text)

    def step(connection: Any, wire: Wire) -> None:
        text = wire.requests[-1].body["messages"][0]["content"][-1]["text"]
        (silent if slow in text else replying_to(voting))(connection, wire)

    deadline_s = stretched(1.0)
    with scripted_llm(step) as wire:
        voter = LlmVoter(asker_of(wire, cache, deadline_s))
        found = voter.vote(pool.questions, SET)
        assert len(wire.requests) == 4, "three calls, and one of them again"
    assert found == [None] * 20 + [question.dimension for question in pool.questions[20:]]
    assert f"within the deadline of {deadline_s:g} s" in voter.faults[0]
    assert "patience.deadline_s" in voter.faults[0]
    with scripted_llm(replying_to(voting)) as wire:
        again = LlmVoter(asker_of(wire, cache)).vote(pool.questions, SET)
    assert again == [question.dimension for question in pool.questions]


def test_a_late_answer_comes_at_the_second_try(cache: Cache) -> None:
    with scripted_llm(findings(FINDING)) as wire:
        asker = asker_of(wire, cache)
        respond = asker._model.respond
        outcomes = iter([lambda _: [LateAnswerError("late")], respond])
        asker._model.respond = lambda questions: next(outcomes)(questions)  # type: ignore[method-assign]
        assert len(LlmReviewer(asker).review(SET, pool_of(), (), None).findings) == 1


def test_long_answers_in_a_row_end_nothing_and_a_server_that_hangs_does(cache: Cache) -> None:
    pool = pool_of()
    marks = [json.dumps(pool.questions[place].text) for place in (0, 20)]
    with scripted_llm(replying_to(voting)) as wire:
        asker = asker_of(wire, cache)
        late_at(asker, *marks)  # four late answers of five
        found = LlmVoter(asker).vote(pool.questions, SET)
    assert found == [None] * 40 + [question.dimension for question in pool.questions[40:]]
    with scripted_llm(replying_to(voting)) as wire:
        asker = asker_of(wire, cache)
        seen = late_at(asker, "")
        voters = [LlmVoter(asker, seed) for seed in range(1, 9)]
        with pytest.raises(InfrastructureError, match=r"scripted was late 6 times in a row: .*deadline"):
            assign(pool_of(3), SET, voters)
        assert len(seen) == MOST_LATE


def test_a_server_that_is_left_alone_after_late_answers_is_asked_again_in_time(cache: Cache) -> None:
    with scripted_llm(replying_to(voting)) as wire:
        asker = asker_of(wire, cache)
        respond = asker._model.respond
        outcomes = iter([lambda _: [RestingError("left alone", 0.01)]] * 2 + [respond] * 3)
        asker._model.respond = lambda questions: next(outcomes)(questions)  # type: ignore[method-assign]
        assert None not in LlmVoter(asker).vote(pool_of().questions, SET)


def test_a_dead_server_still_ends_the_work(cache: Cache) -> None:
    for step in (half_closed, replying(404, "no such model")):
        with scripted_llm(step) as wire, pytest.raises(InfrastructureError):
            LlmVoter(asker_of(wire, cache)).vote(pool_of().questions, SET)


def test_an_answer_that_a_judge_gives_too_late_has_no_mark_and_ends_no_other(cache: Cache) -> None:
    question = Question(id="q", source="s", text="What is it?", answer_kind="free_text")
    asked = [
        Answered("a", "OpenEQA", answer, "d", "", JUDGED, answer, ("a cup",), question, "line 1")
        for answer in ("one", "endless", "two")
    ]
    with scripted_llm('{"mark": 5}') as wire:
        judge = asker_of(wire, cache)
        late_at(judge, "endless")
        scored = score_answers(asked, judge)
    assert [one.score for one in scored.scores] == [1.0, 1.0]
    ((unscored, reason),) = scored.unscored
    assert (unscored.item, "within the deadline" in reason) == ("endless", True)


def test_a_kept_answer_can_be_read_and_forgotten_and_is_then_asked_for_differently(tmp_path: Path) -> None:
    file, budget = tmp_path / "answers.sqlite", Budget()

    def review(wire: Wire) -> Critique:
        with Cache(file) as cache:
            return LlmReviewer(Asker(llm_entry(wire, checkpoint="lab/a", revision="1"), cache, budget)).review(
                SET, pool_of(), (), None
            )

    def answer(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, ["curate", "answer", *words, "--cache", str(file)])
        return result.exit_code, result.output + str(result.exception or "")

    with scripted_llm("Fine!", "\x1b[2JFine\N{RIGHT-TO-LEFT OVERRIDE}!!", findings()) as wire:
        with pytest.raises(InvalidAnswerError) as refused:
            review(wire)
        text = str(refused.value)
        keys = text[text.index("(kept as ") + 9 : text.index(": see `merton curate answer`")].split(" and ")
        with pytest.raises(InvalidAnswerError, match="kept as"):
            review(wire)
        assert len(wire.requests) == 2, "the failure is kept, so that a run that goes on is the same"
        code, told = answer(*keys)
        assert code == 0
        assert "Fine!" in told
        assert "\ufffd[2JFine\ufffd!!" in told, "an answer must not steer the terminal"
        assert f"prompt review, temperature {TEMPERATURE}" in told
        assert answer(keys[1], "--forget")[0] == 0
        assert "no answer whose key begins" in answer(keys[1])[1]
        assert review(wire).findings == ()
        (second, *_), (third, *_) = (request.body["messages"] for request in wire.requests[1:])
        assert second == third
        (_, seed), (temperature, other) = sampling(wire)[1:]
        assert (temperature, seed != other) == (TEMPERATURE, True), "else a server says the same again"
        assert budget.calls == 3, "what is asked again is one more call"


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["12345678"], "no answer whose key begins with 12345678"),
        (["1234"], "8 to 64 hexadecimal digits, got '1234'"),
        (["../../etc"], "8 to 64 hexadecimal digits"),
    ],
)
def test_a_key_that_is_none(tmp_path: Path, words: list[str], fault: str) -> None:
    file = tmp_path / "answers.sqlite"
    result = CliRunner().invoke(app, ["curate", "answer", *words, "--cache", str(file)])
    assert "there is no file of answers" in str(result.exception)
    assert not file.exists()
    Cache(file).__exit__()
    result = CliRunner().invoke(app, ["curate", "answer", *words, "--cache", str(file)])
    assert fault in str(result.exception)


def test_the_taxonomy_of_a_proposal_is_shown_without_its_origin(cache: Cache) -> None:
    noted = Taxonomy(name="induced", origin="proposed by x; left out: dimension 5", dimensions=SET.dimensions)
    with scripted_llm(proposal(*KINDS)) as wire:
        LlmProposer(asker_of(wire, cache)).propose(pool_of(), None, [Round(outer=1, inner=1, taxonomy=noted)])
        (prompt,) = prompts(wire)
    assert "left out" not in prompt
    assert data(prompt, "memory")
    assert left_out([Round(outer=1, inner=1, taxonomy=noted)]) == [
        "round 1.1: of the proposal was left out: dimension 5"
    ]
