"""Numbers of the pages that follow from data in the repository: each is recomputed and compared with the digits there.

A new number is a row of `SENTENCES`, with a function of `tests/support/shipped_numbers.py`. Numbers of the shipped
sample are in `test_sample_numbers.py`; those of long runs have their command in docs/reference/measured.md.
"""

from __future__ import annotations

import re
from functools import partial

import pytest
import shipped_numbers as shipped
from page_numbers import Number, Sentence

from merton.results.schema import SCHEMA_VERSION
from merton.statistics.means import wilson
from sources import ROOT

QUALITY, SCORES, REPRODUCE = "docs/studies/quality.md", "docs/reference/scores.md", "docs/studies/reproduce.md"
POLICIES, VLMS, EXPERIMENTS, EXPERIMENTS_MEASURED = (
    "docs/reference/learned_policies.md",
    "docs/reference/learned_vlms.md",
    "docs/use/experiments.md",
    "docs/reference/experiments_measured.md",
)
KINEMATICS, CURATION, RULES = (
    "docs/reference/kinematics.md",
    "docs/studies/curation.md",
    "docs/studies/published_rules.md",
)
DIMENSIONS = {
    name: name for name in ("PercepObj", "SceneAct", "SpatGeo", "QuantNum", "AffdFunc", "DecPlan", "DynScene")
} | {"PhysCaus": "PhysCausal"}
"""Of the table of the cell's pool, to its name in A2Eval's Table 2."""
MEASURED, ANNOTATE = "docs/reference/measured.md", "docs/studies/annotate.md"
DISTORTIONS_MEASURED = "docs/reference/distortions_measured.md"
GATE_ERRORS = "docs/reference/gate_errors.md"


def of_experiment(page: str, name: str, text: str) -> Sentence:
    """A sentence about the size of an experiment that comes with Merton."""
    return Sentence(page, text, partial(shipped.counts, name))


def of_weights(page: str, kind: str, name: str, text: str) -> Sentence:
    """A sentence about the size of shipped weights."""
    return Sentence(page, text, partial(shipped.parameters, kind, name))


def of_scenes_apart(text: str, one: int, other: int) -> Sentence:
    """A sentence about scenes that one of two policies alone did, with the p of McNemar's exact test."""
    return Sentence(POLICIES, text, partial(shipped.mcnemar, one, other))


def of_answers(text: str, reference: str, candidate: str) -> Sentence:
    """A sentence about the word scores of two answers."""
    return Sentence(SCORES, text, partial(shipped.word_scores, reference, candidate))


SENTENCES = (
    of_experiment(
        "README.md", "quickstart", "{agents} agents x 16 scenes-and-tasks ({tasks} tasks, 4 scenes each, {scenes}"
    ),
    of_experiment("README.md", "quickstart", "x 7 views ({types} distortions + undistorted) = {trials} trials"),
    of_experiment(
        EXPERIMENTS, "quickstart", "`quickstart.yaml`: {agents:w} agents, two of them learned, {tasks:w} tasks"
    ),
    of_experiment(EXPERIMENTS, "execution_study", "one level each: {distorted:,} distorted trials"),
    of_experiment(EXPERIMENTS, "execution_study_full", "{distorted:,} distorted trials in {scenes:w} scenes"),
    of_experiment(
        EXPERIMENTS_MEASURED, "coupled", "({scenes} scenes): all {reference_trials} reference trials succeed"
    ),
    of_experiment(EXPERIMENTS_MEASURED, "coupled", "Of the {of_an_agent} distorted trials of each agent"),
    of_experiment(EXPERIMENTS_MEASURED, "staircase", "`staircase.yaml` on one process: {trials} trials"),
    of_experiment(DISTORTIONS_MEASURED, "camera_faults", "{scenes} scenes and one level for each scene and fault"),
    of_experiment(DISTORTIONS_MEASURED, "camera_faults", "Of the {distorted} distorted trials"),
    of_experiment(SCORES, "execution_study", "is the paper's design: {distorted:,} distorted trials"),
    of_experiment(SCORES, "execution_study", "Results of `execution_study.yaml` ({trials:,} trials"),
    of_experiment(SCORES, "execution_study", "of the {reference_trials} reference runs did the task"),
    of_experiment(SCORES, "execution_study_full", "five learned agents, {trials:,} trials in {scenes} scenes"),
    of_experiment("docs/reference/ratings.md", "quickstart", "(`make demo`: {trials} trials of"),
    of_experiment("docs/studies/release.md", "quickstart", "a run of the quickstart ({trials} trials)"),
    Sentence(QUALITY, "an observed .6 has the interval [{high_from:~.2f}, {high_to:~.2f}]", shipped.fisher),
    Sentence(QUALITY, ".5 has [{low_from:~.2f}, {low_to:~.2f}] (Fisher)", shipped.fisher),
    Sentence(SCORES, "an observed .6 has [{high_from:~.2f}, {high_to:~.2f}]", shipped.fisher),
    Sentence(SCORES, "and .5 has [{low_from:~.2f}, {low_to:~.2f}]", shipped.fisher),
    Sentence(
        REPRODUCE,
        "are [{low_from:~.2f}, {low_to:~.2f}] and [{high_from:~.2f}, {high_to:~.2f}]: the thresholds",
        shipped.fisher,
    ),
    Sentence("docs/reference/ratings.md", "4 of 4 is [{low:~.2f}, 1]", shipped.alike_scenes),
    Sentence(
        "docs/reference/gate_errors.md", "delta 5 takes {five} scenes, delta 10 {ten}: fewer", shipped.fewest_scenes
    ),
    Sentence(QUALITY, "# the {trials:,} trials that come with Merton", shipped.gate_trials),
    Sentence(QUALITY, "the execution study in {scenes} scenes of `test`", shipped.gate_trials),
    Sentence(QUALITY, "{failures} fail, {undistorted:.0f} % of the undistorted ones too", shipped.gate_trials),
    Sentence(QUALITY, "{lost} fail that succeed without distortion; {stops} are emergency stops", shipped.gate_trials),
    Sentence(QUALITY, "area ({distorted:,} distorted trials)", shipped.gate_trials),
    Sentence(QUALITY, "{undistorted:.0f} % of the undistorted trials fail already", shipped.gate_trials),
    Sentence(MEASURED, "{trials:,} trials, {failures} failures. `tools/studies/gate_trials.py", shipped.gate_trials),
    Sentence(QUALITY, "| cognition | {cognition_run_type:~.2f} | below .5", shipped.execution),
    Sentence(QUALITY, "| cognition | {cognition_of_means:~.2f} [", shipped.execution),
    Sentence(QUALITY, "| decision | {decision_run_type:~.2f} | above .6", shipped.execution),
    Sentence(QUALITY, "| decision | {decision_of_means:~.2f} [", shipped.execution),
    Sentence(QUALITY, "| decision less cognition | {difference_run_type:~.2f} | not resolved", shipped.execution),
    Sentence(QUALITY, "without the reference | {merton_nr_type:~.2f} | |", shipped.execution),
    Sentence(QUALITY, "| PSNR, with it | {psnr_type:~.2f} | |", shipped.execution),
    Sentence(SCORES, "so that {trials:,} distorted trials in {scenes:w} scenes remain", shipped.execution),
    Sentence(
        SCORES,
        "| type ({n_type}) | {cognition_run_type:~.2f} | {decision_run_type:~.2f} | {difference_run_type:~.2f} |",
        shipped.execution,
    ),
    Sentence(
        SCORES,
        "| type and level ({n_type_level}) | {cognition_run_type_level:~.2f} | {decision_run_type_level:~.2f} "
        "| {difference_run_type_level:~.2f} |",
        shipped.execution,
    ),
    Sentence(
        SCORES,
        "| trial ({n_trial:,}) | {cognition_run_trial:~.2f} | {decision_run_trial:~.2f} "
        "| {difference_run_trial:~.2f} |",
        shipped.execution,
    ),
    Sentence(
        SCORES,
        "that come with Merton | {cognition_opinions_type:~.2f} | {decision_opinions_type:~.2f} "
        "| {difference_opinions_type:~.2f} |",
        shipped.execution,
    ),
    Sentence(SCORES, "under {solved_types} of the 30 the mean execution is above 99", shipped.execution),
    Sentence(SCORES, "tells execution best ({merton_fr_type:~.2f} over types)", shipped.execution),
    Sentence(
        SCORES, "which sees no reference ({merton_nr_type:~.2f}), and MS-SSIM ({ms_ssim_type:~.2f})", shipped.execution
    ),
    Sentence(SCORES, "PSNR ({psnr_type:~.2f}) is worse", shipped.execution),
    Sentence(
        SCORES,
        "GMSD ({gmsd_type_alone:~.2f}), SSIM ({ssim_type_alone:~.2f}), `noise_sigma` ({noise_sigma_type_alone:~.2f}), "
        "`blur_effect` ({blur_effect_type_alone:~.2f}), `niqe-merton` ({niqe_merton_type_alone:~.2f}) and VIF "
        "({vif_type_alone:~.2f}); BRISQUE ({brisque_type:~.2f}) is not told",
        shipped.execution,
    ),
    Sentence(SCORES, "over trials ({merton_fr_trial:~.2f}) decision is closer", shipped.execution),
    of_weights(POLICIES, "decision", "glance", "Each has {mb:.1f} MB of weights"),
    of_weights(POLICIES, "decision", "gist", "(`gist` {mb:.1f} MB)"),
    of_weights(POLICIES, "decision", "glance", "`merton.decision.models.glance`, {millions:.2f} million parameters"),
    of_weights(POLICIES, "decision", "gist", "`merton.decision.models.gist`, {millions:.2f} million parameters"),
    of_weights(VLMS, "cognition", "gaze", "| 1,700 scenes in varied light, 2,000 steps | {millions:.2f} million |"),
    of_weights(VLMS, "cognition", "gaze-plain", "| 1,700 scenes as they are, 1,000 steps | {millions:.2f} million |"),
    of_weights(
        VLMS, "cognition", "gaze-grey", "| 1,700 scenes in varied light, 1,000 steps | {millions:.2f} million |"
    ),
    of_weights(VLMS, "cognition", "gaze-small", "| 850 scenes in varied light, 2,000 steps | {millions:.2f} million |"),
    of_weights(VLMS, "cognition", "scribe", "| 1,700 scenes in varied light, 1,200 steps | {millions:.2f} million |"),
    of_weights("docs/studies/learned_metrics.md", "quality", "merton-nr-decision", "| size | {kb:.0f} kB |"),
    of_weights("docs/studies/learned_metrics.md", "quality", "merton-fr-decision", " kB | {kb:.0f} kB |"),
    Sentence(
        POLICIES,
        "of 20 of 50 is {low_20:.0f} to {high_20:.0f} %, of 35 it is {low_35:.0f} to {high_35:.0f} %, of 40 "
        "{low_40:.0f} to {high_40:.0f} %, of 45 {low_45:.0f} to {high_45:.0f} %, of 48 {low_48:.0f} to {high_48:.0f} %",
        shipped.exact_of_fifty,
    ),
    of_scenes_apart(
        "`glance` alone did {one} and `glance-plain` alone {other} (McNemar's exact test, p = {p:.4f}", 79, 40
    ),
    of_scenes_apart("`glance` alone did {one} and `gist` alone {other} (p = {p:.3f})", 40, 16),
    of_scenes_apart("(`gist` in {one}, p = {p:.2f})", 12, 6),
    of_scenes_apart("({one} scenes against {other}, p = {p:.2f})", 9, 5),
    Sentence(RULES, "fine dimensions ({dimensions})", shipped.arena),
    Sentence(
        RULES,
        "{capabilities} core capabilities with {dimensions} dimensions, three tasks with {benchmarks}",
        shipped.arena,
    ),
    Sentence(CURATION, "{families} families have {least} to {most} wordings each", shipped.families),
    Sentence(
        "docs/lab/cameras.md",
        "nearer than {small:.2f} m at 424x240, {middle:.2f} m at 640x480, {large:.2f} m",
        shipped.nearest,
    ),
    Sentence(
        "docs/use/distortions.md",
        "({at_1_m:.1f} px at 1 m, so that level 5 knows distances of {one:.1f}, {two:.2f}, {three:.2f} m",
        shipped.coarse,
    ),
    Sentence("docs/use/submissions.md", "Monday 2024-01-01: {first}, {second}, {third} |", shipped.windows),
    Sentence("docs/use/submissions.md", "2026-11-21 is due on Tuesday {due}", shipped.windows),
    *(
        Sentence(
            KINEMATICS,
            f"| `{arm}` | {{d1}} | {{a2}} | {{a3}} | {{d4}} | {{d5}} | {{d6}} |",
            partial(shipped.lengths, arm),
        )
        for arm in ("UR3", "UR5", "UR10", "UR3e", "UR5e", "UR10e", "UR16e")
    ),
    Sentence("docs/use/results.md", "This is schema version {version}.", lambda: {"version": SCHEMA_VERSION}),
    Sentence("docs/use/models.md", "the thirty of the paper ({vlms} VLMs, {vlas} VLAs)", shipped.models),
    Sentence("docs/use/adding_a_distortion.md", "The {types} types of Embodied-IQA", shipped.registries),
    Sentence("docs/use/distortions.md", "# The {types} distortions", shipped.registries),
    Sentence("README.md", "all {types} with their levels and sources", shipped.registries),
    Sentence("docs/reference/limits.md", "{policies:w} [policies](learned_policies.md)", shipped.registries),
    Sentence("docs/reference/limits.md", "and {vlms:w} [VLMs](learned_vlms.md)", shipped.registries),
    Sentence("docs/reference/limits.md", "ten of the {tasks:w} tasks", shipped.registries),
    Sentence("docs/use/adding_a_task.md", "Merton's own {tasks:w} are in", shipped.registries),
    Sentence(QUALITY, "names the metrics: {untrained:w} that need no training", shipped.registries),
    Sentence(QUALITY, "{trainable:w} that learn ([their cards]", shipped.registries),
    Sentence(QUALITY, "`config/published/embodied_iqa.csv`, {values:,} values", shipped.printed_tables),
    Sentence("docs/use/scenes.md", "`place` and `move` in {often} of {scenes}, the others in {seldom}", shipped.verbs),
    Sentence(POLICIES, "one 20 cm away lowers the score by {fall:~.2f}", shipped.fall_at_20_cm),
    Sentence("docs/studies/sandbox.md", "| {programs} hostile programs by both engines", shipped.hostile_programs),
    Sentence("docs/studies/sandbox.md", "for the reason it must | {both} of {both} |", shipped.hostile_programs),
    Sentence(CURATION, "{programs} hostile programs are tests of both engines: {both} of", shipped.hostile_programs),
    *(
        Sentence(CURATION, f"| {title} | {{share:.1f}} % |", partial(shipped.share_of_dimension, name))
        for title, name in DIMENSIONS.items()
    ),
    Sentence(ANNOTATE, "{requests:,} requests per model, {thirty:.1f} million for thirty", shipped.annotation),
    Sentence(ANNOTATE, "({copies:.1f} million without the references). Hours are {requests:,} /", shipped.annotation),
    Sentence(ANNOTATE, "fine-tunings | 307 ms | {openvla:.0f} GPU ({five:.0f} for all five)", shipped.annotation),
    Sentence(ANNOTATE, "| CogACT | 181 ms | {cogact:.1f} GPU", shipped.annotation),
    Sentence(ANNOTATE, "| 13 per second | {octo:.1f} GPU", shipped.annotation),
    Sentence(ANNOTATE, "| 5 to 10 s | {ecot_least:.0f} to {ecot_most:.0f} GPU", shipped.annotation),
    Sentence(ANNOTATE, "| 1, 5, 20 per second | {slow:.0f}, {middle:.0f}, {fast:.1f} |", shipped.annotation),
    Sentence(
        KINEMATICS,
        "8 for {n8:.0f} % of random postures, 6 for {n6:.0f} %, 4 for {n4:.0f} %, 2 for {n2:.0f} %",
        shipped.branches,
    ),
    Sentence(REPRODUCE, "| eq. (1), Rz Tz Tx Rx | as printed | {standard:~.3f} m |", shipped.readings),
    Sentence(REPRODUCE, "| eq. (1) | negative | {negative:~.3f} m |", shipped.readings),
    Sentence(REPRODUCE, "| as printed | {modified:.3f} m |", shipped.readings),
    Sentence(REPRODUCE, "KRCC of {triples} triples** (Tables 2 and 4", shipped.fitting_triples),
    Sentence(REPRODUCE, "{fitting} triples are within .02 of it", shipped.fitting_triples),
    of_answers(
        "...桌子左边 | 0, 0, 0 | {bleu:~.2f}, {rouge:~.2f}, 8.04 |", "红色的杯子在桌子上", "红色的杯子在桌子左边"
    ),
    of_answers("カップを押す | 0, 0, 0 | {bleu:~.2f}, {rouge:~.2f}, 5.25 |", "カップを取る", "カップを押す"),
    of_answers("... blue cube | {bleu:~.2f}, {rouge:~.2f}, 4.08 |", "pick up the red cube", "pick up the blue cube"),
)


def name_of(sentence: Sentence) -> str:
    """Of a case of the test: page and beginning of the sentence."""
    return f"{sentence.page.rpartition('/')[2]}: {sentence.text[:50]}"


@pytest.mark.parametrize("sentence", SENTENCES, ids=name_of)
def test_a_page_has_the_number_that_the_data_give(sentence: Sentence) -> None:
    assert not sentence.mismatch()


def test_a_wrong_digit_and_a_lost_sentence_are_named() -> None:
    row = Sentence(
        "a.md", "of {n:,} trials {share:~.2f} fail", lambda: {"n": 1220, "share": Number(0.277, (0.24, 0.31))}
    )
    assert row.mismatch("So of 1,220 trials\n.28 [.24, .31] fail.") == ""
    assert row.mismatch("of 1,220 trials .27 [.24, .31] fail") == (
        "a.md says 'of 1,220 trials .27 [.24, .31] fail'; the data say 'of 1,220 trials .28 [.24, .31] fail'"
    )
    assert "no longer has the sentence" in row.mismatch("of all trials .28 [.24, .31] fail")
    ends = Sentence("a.md", "{n} scenes, {m:w} of", lambda: {"n": 20, "m": 3})
    assert ends.mismatch("120 scenes, three of") != ""
    assert ends.mismatch("20 scenes, four of") == "a.md says '20 scenes, four of'; the data say '20 scenes, three of'"


COUNTED = (
    (POLICIES, r"(\d+) of (\d+), (\d+) to (\d+) %", 14),
    (VLMS, r"(\d+) of (\d+), (\d+) to (\d+) %", 10),
    (EXPERIMENTS_MEASURED, r"(\d+) of (32) \[([\d.]+), (\d+)\]", 6),
    (
        "docs/use/scenes.md",
        r"(159) of (160), of which the exact 95 % interval is ([\d.]+) to (\d+) %",
        1,
    ),
)
"""Page, pattern of a count with its exact interval in per cent, and how many there are."""


@pytest.mark.parametrize(("page", "pattern", "number"), COUNTED, ids=[page for page, *_ in COUNTED])
def test_an_interval_is_that_of_the_count_beside_it(page: str, pattern: str, number: int) -> None:
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    found = re.findall(pattern, text)
    assert len(found) == number
    for successes, trials, *ends in found:
        exact = shipped.exact(int(successes), int(trials))
        wanted = [f"{100 * end:.{len(shown.partition('.')[2])}f}" for end, shown in zip(exact, ends, strict=True)]
        assert ends == wanted, f"{page}: {successes} of {trials}"


def test_the_intervals_of_faults_are_wilsons_of_twelve_scenes() -> None:
    text = (ROOT / DISTORTIONS_MEASURED).read_text(encoding="utf-8")
    cells = re.findall(r"(?<=\| )(\d+) \((\d+) to (\d+)\)", text)
    assert len(cells) == 50
    for share, low, high in cells:
        successes = round(12 * int(share) / 100)
        ends = wilson(successes, 12)
        assert (share, low, high) == (f"{100 * successes / 12:.0f}", f"{100 * ends.low:.0f}", f"{100 * ends.high:.0f}")


def test_the_tables_of_learned_policies_have_equal_sums() -> None:
    """Successes by verb and by difficulty are of the same scenes."""
    text = (ROOT / POLICIES).read_text(encoding="utf-8")
    by_verb = re.findall(r"^\| `([\w-]+)` \| ([\d() |]+) \|$", text, re.MULTILINE)
    by_difficulty = re.findall(r"^\| `([\w-]+)` \| `(test|shift)` \| (.*) \|$", text, re.MULTILINE)
    sums = {}
    for place, (member, row) in enumerate(by_verb):
        numbers = [int(each) for each in re.findall(r"\d+", row)]
        sums[member, "test" if place < 7 else "shift"] = sum(numbers[:9])
    assert len(by_difficulty) == 12
    for member, split, row in by_difficulty:
        counts = re.findall(r"(\d+) of (\d+)", row)
        assert sum(int(done) for done, _ in counts) == sums[member, split], (member, split)
        assert sum(int(of) for _, of in counts) == 450
    for member, share in re.findall(r"`(\w+)` (?:did )?(\d+) %(?= and| of 450)", text):
        assert share == f"{100 * sums[member, 'test'] / 450:.0f}", member


def test_the_sums_of_the_papers_are_those_of_their_rows() -> None:
    """The rows themselves: tests/studies/papers/test_papers.py."""
    text = (ROOT / REPRODUCE).read_text(encoding="utf-8")
    rows = re.findall(r"^\| `[\w-]+` \| [^|]+ \| ((?:[\d,]+ \| ?){6})", text, re.MULTILINE)
    table = [[int(cell.replace(",", "")) for cell in row.split("|")[:6]] for row in rows]
    assert len(table) == 6
    printed, equal, reading, misprint, unknown, _ = sums = [sum(column) for column in zip(*table, strict=True)]
    assert f"| all | | {' | '.join(f'{each:,}' for each in sums)} |" in text
    assert f"Of {printed - unknown} numbers that can be recomputed, {equal + reading} come out." in text
    assert f"is the {misprint}, and what else was found" in text


ANSWER = re.compile(r"^- \[[^\]]+\]\(([^)]+)\): .*?\? (.*?) ?`", re.MULTILINE)


def test_a_measured_number_stands_on_its_page() -> None:
    """Not recomputed, but nowhere two numbers for one measurement."""
    file = ROOT / MEASURED
    found = ANSWER.findall(file.read_text(encoding="utf-8"))
    assert len(found) > 15
    for link, answer in found:
        page = (file.parent / link).read_text(encoding="utf-8")
        for number in re.findall(r"(?:\d[\d,]*)?\.?\d+", answer):
            pattern = re.sub(r"^0?\\\.", r"0?\\.", re.escape(number))  # .5 is 0.5
            assert re.search(rf"(?<![\d,.]){pattern}(?!\d)", page), f"{link} has no {number}, as in {answer!r}"
