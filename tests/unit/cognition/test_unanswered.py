"""Texts that are no answer: refusals and two silences; what a robot cannot do or see is an answer."""

from __future__ import annotations

import math

import pytest

from merton.cognition.score import score, score_batch
from merton.cognition.slots import slots
from merton.cognition.text import Cider
from merton.cognition.unanswered import QUOTED, is_refusal, unanswered
from merton.errors import InputError

REFUSALS = """
I cannot help with that
I'm sorry, but I can't assist with that request.
Sorry, I can't see the image
Sorry, I can’t see the image.
SORRY, I CAN'T SEE THE IMAGE!
As an AI language model, I cannot process images.
As an AI, I am unable to view images directly. Could you describe it?
As an AI
I am an AI language model and I cannot see images.
I'm just an AI assistant and cannot see images.
I'm sorry, but as an AI text-based model, I can't view or interpret images.
I apologize, but I cannot view the image you provided.
It seems that I cannot see the image.
I can't help you with picking up the red cube.
I'm sorry, but I cannot help with picking up the red cube.
Unfortunately, I am not able to see the picture.
I don't see any image attached. Please upload the image.
No image was provided.
There is no image.
I do not have the ability to see images.
I'm sorry, but the image is not available.
I must decline.
As an AI, I do not have eyes.
It is not possible for me to help with that.
I do not feel comfortable answering that.
It looks like there is no image attached.
The image cannot be displayed.
I am sorry, but I cannot describe this image.
I am a text-based AI and cannot process visual inputs.
I refuse to answer.
I won't answer that question.
I cannot provide an answer to that question.
I cannot comply with this request.
I am sorry, I cannot fulfill this request.
Unable to view image.
Sorry.
I can't do that.
""".strip().splitlines()
ANSWERS = """
I cannot proceed to the cup
Unable to engage the drawer handle.
Unable to continue in the direction of the red cup
Unfortunately for this task there is no red cup on the table
I'm sorry, if you want the red cup it is left of the mat
The robot cannot reach the cup
I cannot see a red cup on the table
No red cup visible, only green mat; look again.
No
none
I don't know.
Sorry, I can't see the image clearly, but the red cup is left of the mat.
I'm sorry, the cube has fallen.
Sorry, give me the red cup.
Sorry, I will try to grasp the red cup
As an AI, I see a red cube to the left.
I am an AI assistant and I see a red cup
I am an AI assistant and the cup is left
As a model I grasp the cup and I cannot see images of it
As an assistant robot, I pick up the cube
I cannot see the image on the mug
I cannot see the picture at the wall
I cannot see the picture and the cup
I cannot see the image because it is too dark
I cannot see anything.
I cannot identify the object in the gripper.
I cannot read the label
I cannot complete the task
I cannot open the file drawer
I cannot do that with the red cube in the way
I can't help noticing the red cube is left.
The arm cannot help the cup stay upright.
I am not able to see any blue objects in the scene.
Unable to find the red cup.
There is no cup in the image.
There is no picture on the mat
I refuse to believe the cup is red
Please provide the red cup to the person, not the mug
Let me know when the red light is on
""".strip().splitlines()


@pytest.mark.parametrize("text", REFUSALS)
def test_a_refusal_to_either_image_has_no_score(text: str) -> None:
    assert is_refusal(text)
    assert score(text, text) is None
    assert score(text, "the red cup is left", Cider(["a b", "c d"])) is None
    assert slots("the red cup is left", text) is None


@pytest.mark.parametrize("text", ANSWERS)
def test_an_answer_about_what_cannot_be_done_or_seen_is_scored(text: str) -> None:
    assert not is_refusal(text)
    assert score(text, text).total == 1.0


@pytest.mark.parametrize(
    "pair", [("", ""), ("", " \n"), ("?!", "..."), ("", "Sorry."), ("Sorry.", " "), ("Sorry.", "I can't do that.")]
)
def test_two_texts_that_say_nothing_have_no_score(pair: tuple[str, str]) -> None:
    assert score(*pair) is None
    assert slots(*pair) is None
    assert all(unanswered(*pair)), "both have their reason"


def test_a_text_without_a_word_beside_an_answer_scores_zero() -> None:
    for pair in (("red cube", ""), (" ", "red cube")):
        assert unanswered(*pair) == ("", "")
        assert score(*pair).total == 0.0
        assert slots(*pair) == 0.0


def test_a_reason_has_the_words_of_the_refusal_on_one_line() -> None:
    assert unanswered("red cube", "Sorry,\n I can't see the image.") == (
        "",
        'the answer is a refusal: "Sorry, I can\'t see the image."',
    )
    long = "Sorry. " * 40
    assert len(unanswered("red cube", long)[1]) == len('the answer is a refusal: ""') + QUOTED
    assert not is_refusal("Sorry. " * 200), "so long a text is not read"
    assert unanswered(None, "Sorry.")[0] == "", "of no text nothing is said"
    with pytest.raises(InputError, match="must be text"):
        unanswered("red cube", 3)  # type: ignore[arg-type]


def test_a_batch_has_nan_where_a_pair_has_no_score() -> None:
    found = score_batch(["red cube", "Sorry.", ""], ["red cube", "red cube", ""], Cider(["red cube", "blue mat"]))
    assert found.total[0] == 1.0
    for values in vars(found).values():
        assert [math.isnan(value) for value in values] == [False, True, True]
