"""The learned VLMs that come with Merton, and the tools that train them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from merton.cognition.models import gaze, learned, scribe
from merton.cognition.models.base import MODELS, question_for
from merton.cognition.models.gaze import Sight, sentence
from merton.errors import InputError, UnknownNameError
from merton.experiment.local import LocalPorts
from merton.simulation.scene import make_scene
from merton.simulation.varied import verbs_of
from merton.world.nouns import noun
from merton.world.observation import Image
from merton.world.tasks import parse

MEMBERS = [entry.name for entry in MODELS.values() if entry.adapter in ("gaze", "scribe")]
SCENES = 4


@pytest.fixture(scope="module")
def pictures(renders: None) -> dict[int, tuple[Image, list[str]]]:
    """Scenes of `test`: seed to the image from above and the five instructions."""
    ports, found = LocalPorts(), {}
    for seed in range(SCENES):
        instructions = [ports.reset(f"test-{verb}", seed) for verb in verbs_of(seed)]
        found[seed] = ports.view().reference["top"].color, instructions
    return found


@pytest.fixture(scope="module")
def tools() -> Iterator[pytest.MonkeyPatch]:
    """The training script, which needs torch, can be imported."""
    pytest.importorskip("torch", reason="the training script needs torch")
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def samples(renders, tools, tmp_path_factory):
    """Two scenes of the training split."""
    import split_samples

    tools.setattr(split_samples, "BLOCK", 2)
    return split_samples.load(tmp_path_factory.mktemp("samples"), "train", range(2))


# Words and places -----------------------------------------------------------------------------------------------------


def test_an_answer_names_things_places_and_the_plan():
    mug, ball = Sight("red", "mug", (-60.0, -30.0)), Sight("blue", "ball", (0.0, 0.0))
    mat = Sight("green", "mat", (60.0, 15.0))
    assert sentence(parse("pick up the red mug"), mug, ball, None) == (
        "Red mug far left, beside blue ball; lower gripper, close, lift."
    )
    assert sentence(parse("place the red mug on the green mat"), mug, ball, mat) == (
        "Red mug far left, beside blue ball; grasp it, set on green mat near right."
    )
    assert sentence(None, ball, mat, None) == "Blue ball middle center, beside green mat."
    assert str(Sight("", "mug", (0.0, 0.0))) == "mug middle center"


@pytest.mark.parametrize("shrink", [1, 2])
def test_the_fovea_looks_at_its_place(shrink):
    """A white pixel drawn at a place of the map is in the middle of what the fovea sees."""
    places = gaze.places_px(shrink)
    for place in (places[0], places[len(places) // 2 + 5], places[-1]):
        image = np.zeros((gaze.SIDE_PX, 424, 3), np.uint8)
        column, row = np.array([(424 - 1) / 2, (gaze.SIDE_PX - 1) / 2]) + place
        image[int(row) : int(row) + 2, int(column) : int(column) + 2] = 255
        planes = gaze.prepared(image, 3, shrink)[0]
        assert planes.shape == (gaze.ROWS_PX // shrink, gaze.COLUMNS_PX // shrink)
        half = gaze.FOVEA // 2
        top, left = gaze.corner((float(place[0]), float(place[1])), shrink)
        seen = np.pad(planes, half)[top : top + gaze.FOVEA, left : left + gaze.FOVEA]
        rows, columns = np.nonzero(seen)
        assert rows.mean() == pytest.approx(half, abs=1)
        assert columns.mean() == pytest.approx(half, abs=1)


@pytest.mark.parametrize("size", [(240, 424), (480, 640), (720, 1280), (1280, 720)])
def test_an_image_of_any_size_is_prepared(size):
    image = np.zeros((*size, 3), np.uint8)
    assert gaze.prepared(image, 3, 1).shape == (3, gaze.ROWS_PX, gaze.COLUMNS_PX)
    assert gaze.prepared(image, 1, 2).shape == (1, gaze.ROWS_PX // 2, gaze.COLUMNS_PX // 2)


# Training -------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("renders")
def test_the_right_answers_are_those_of_the_scene(samples, tmp_path):
    """Things are where the picture shows their colour, and an answer names the thing that the instruction means."""
    from vlm_samples import tasks_of, things_of

    scenes = things_of(samples, tmp_path)
    for number, (seed, seen) in enumerate(zip(samples.seeds, scenes, strict=True)):
        for verb, text in zip(verbs_of(seed), tasks_of(samples, number), strict=True):
            scene = make_scene(f"train-{verb}", seed)
            meant = noun(scene.meant.object)
            assert seen.names[seen.index(scene.command.object)] == meant.name
            answer = seen.answer(text)
            assert answer.startswith(f"{meant.color.capitalize()} {meant.shape} ")
            assert seen.answer(text, colors=False).startswith(meant.shape.capitalize())
    assert [seen.places_px.tolist() for seen in things_of(samples, tmp_path)] == [
        seen.places_px.tolist() for seen in scenes
    ]


def trained(name: str, samples, folder: Path, stop: int):
    """The weights of a member after 4 steps, or those of a training that ended after `stop`."""
    import train_vlm as training
    from vlm_samples import things_of

    member, scenes = replace(training.MEMBERS[name], steps=4), things_of(samples, folder)
    words = training.words_of(samples, scenes, member)
    truth, images = training.truth_of(samples, scenes, words, member), training.images_of(samples, member, folder)
    network = training.new_network(words, member)
    for step, _ in training.train(network, member, images, truth, folder / f"{name}_{stop}.pt"):
        if step == stop:
            break
    return network, words


@pytest.mark.parametrize("name", ["gaze-small", "scribe"])
def test_a_training_that_was_ended_goes_on_as_if_it_was_not(name, samples, tmp_path, monkeypatch):
    import torch
    import train_vlm as training
    import training_loop

    monkeypatch.setattr(training_loop, "SAVED_STEPS", 1)
    monkeypatch.setattr(training, "SCENES_PER_BATCH", 2)
    whole = trained(name, samples, tmp_path, 4)[0].state_dict()
    trained(name, samples, tmp_path, 2)
    (tmp_path / f"{name}_2.pt").rename(tmp_path / f"{name}_9.pt")
    resumed = trained(name, samples, tmp_path, 9)[0].state_dict()
    assert all(torch.equal(whole[key], resumed[key]) for key in whole)


@pytest.mark.usefixtures("renders")
@pytest.mark.parametrize("name", ["gaze", "gaze-grey", "gaze-small"])
def test_numpy_gaze_gives_the_results_of_torch(name, tools, pictures, tmp_path):
    import torch
    import train_vlm as training
    import vlm_lessons

    member, shapes = training.MEMBERS[name], ("ball", "cube", "mug")
    network = training.new_network(shapes, member)
    with torch.no_grad():
        network.direction.weight *= 20.0
        network.nearness.fill_(1.0)
        for value in network.parameters():
            value.copy_(value.half().float())
    training.save(network, shapes, tmp_path / "weights.npz")
    ours = gaze.Network(tmp_path / "weights.npz")
    planes = ours.planes(pictures[0][0])
    features = ours.features(planes)
    batch = torch.from_numpy(planes)[None]
    with torch.no_grad():
        theirs = network.features(batch)
        assert features == pytest.approx(theirs[0].numpy(), abs=1e-4)
        for said in ("small red mug", "left blue cube", "green cube nearest to the red ball"):
            wanted = noun(said)
            numbers = [vlm_lessons.numbered(each, shapes) for each in (wanted.name, wanted.landmark or "red ball")]
            nouns, landmarks = (torch.tensor(each)[None, None] for each in numbers)
            place = torch.tensor([[list(gaze.PLACES).index(wanted.place) if wanted.place else -1]])
            related = torch.tensor([[float(wanted.landmark is not None)]])
            expected = network.look_among(theirs, nouns, place, landmarks, related)[0, 0].softmax(-1)
            attention = ours.look_for(features, wanted)
            assert attention == pytest.approx(expected.numpy(), abs=1e-5)
        thing = ours.sight(planes, attention)
        spot = torch.tensor(thing.place_px)[None]
        beside = network.look_beside(theirs, spot[None])[0, 0].softmax(-1)
        assert ours.look_beside(features, thing) == pytest.approx(beside.numpy(), abs=1e-5)
        color, shape = network.names(vlm_lessons.parts(batch, spot, torch.tensor([0]), member.shrink))
        assert thing.shape == shapes[int(shape.argmax())]
        assert thing.color == ("" if member.channels == 1 else list(gaze.COLORS)[int(color.argmax())])


def test_numpy_scribe_writes_the_likeliest_words_of_torch(tools, pictures, tmp_path):
    import torch
    import train_vlm as training

    words = ("cube", "far", "left.", "pick", "red", "the", "up")
    network = training.new_network(words, training.MEMBERS["scribe"])
    with torch.no_grad():
        network.next2.bias[scribe.END] = -9.0
        for value in network.parameters():
            value.copy_(value.half().float())
    training.save(network, words, tmp_path / "weights.npz")
    ours = scribe.Network(tmp_path / "weights.npz")
    asked = scribe.numbers("pick up the RED cube.", words)
    assert asked[:6].tolist() == [5, 8, 7, 6, 2, scribe.END]
    image = pictures[0][0]
    written, ended = ours.write(ours.tokens(image), ours.read(asked), 8)
    assert (len(written), ended) == (8, False)
    planes = torch.from_numpy(gaze.prepared(image, 3, scribe.SHRINK))[None] / 255 - 0.5
    with torch.no_grad():
        scores, _ = network(planes, torch.from_numpy(asked)[None, None], torch.tensor(written)[None, None])
        scores[..., scribe.UNKNOWN] = -np.inf
    assert scores[0, 0].argmax(-1).tolist() == written


# The members ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MEMBERS)
def test_a_member_keeps_its_contract(name, pictures):
    model = MODELS[name].build()
    assert (learned.FOLDER / f"{name}.npz").stat().st_size <= 1e6
    image, instructions = pictures[0]
    answers = [model.answer([image], question_for(text)).text for text in instructions]
    assert answers == [model.answer([image], question_for(text)).text for text in instructions]
    assert model.answer([image], "What do you see?").text
    short = model.answer([image], question_for(instructions[0]), 3)
    assert short.truncated
    assert short.text.split() == answers[0].split()[:3]
    for images, most in (([], 32), ([image], 0)):
        with pytest.raises(InputError, match="needs an image and room for at least one word"):
            model.answer(images, question_for(instructions[0]), most)


@pytest.mark.parametrize("name", MEMBERS)
def test_the_five_tasks_of_a_scene_have_five_answers(name, pictures):
    model = MODELS[name].build()
    for image, instructions in pictures.values():
        answers = {model.answer([image], question_for(text)).text for text in instructions}
        assert len(answers) == len(instructions), answers


@pytest.mark.parametrize("name", MEMBERS)
def test_a_member_says_on_which_side_a_thing_is(name, pictures):
    """Of things more than 12 cm from the middle, at least two of three; by chance it would be one of three."""
    model, right = MODELS[name].build(), []
    for seed, (image, instructions) in pictures.items():
        for verb, text in zip(verbs_of(seed), instructions, strict=True):
            scene = make_scene(f"test-{verb}", seed)
            y = scene.placements[scene.meant.object][1]
            if abs(y) > 0.12:
                side = "left" if y > 0 else "right"
                right.append(side in model.answer([image], question_for(text)).text.partition(", beside")[0])
    assert len(right) >= 8
    assert np.mean(right) >= 2 / 3


@pytest.mark.parametrize("name", MEMBERS)
def test_the_answer_depends_on_the_picture(name, pictures):
    """Mirrored, left is right: at least some of the answers change, and so they do without any picture."""
    model = MODELS[name].build()
    changed = []
    for image, instructions in pictures.values():
        for other in (np.ascontiguousarray(image[:, ::-1]), np.full_like(image, 128)):
            changed += [
                model.answer([image], question_for(text)).text != model.answer([other], question_for(text)).text
                for text in instructions
            ]
    assert np.mean(changed) > 0.5


def test_gaze_grey_sees_no_colours(pictures):
    model = MODELS["gaze-grey"].build()
    for image, instructions in pictures.values():
        grey = cv2.cvtColor(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), cv2.COLOR_GRAY2RGB)
        for text in instructions:
            assert model.answer([grey], question_for(text)).text == model.answer([image], question_for(text)).text


def test_an_unknown_member_is_named_with_the_choices():
    with pytest.raises(UnknownNameError, match=r"choose one of: gaze"):
        gaze.Gaze("gaze-sage")
