"""The topics of a recording that belong to each camera."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from merton.errors import InputError
from merton.world.camera_info import is_rectified

COLOR, DEPTH, INFO = "color", "depth", "camera_info"
_KINDS = {"color/image_raw": COLOR, "color/camera_info": INFO, "aligned_depth_to_color/image_raw": DEPTH}
_TOPIC = re.compile(rf"^(.*[^/])/({'|'.join(_KINDS)})$")
_COMPRESSED = ("", "/compressed", "/compressedDepth")
"""Endings of image_transport; of several a raw image comes first, which has lost nothing."""
_IMAGES = ("sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage")
_MOST_LISTED = 20


@dataclass(frozen=True)
class CameraTopics:
    """The topics of one camera; those of a camera that was found may lack `INFO`.

    Attributes:
        names: the topic of each part that is there, by `COLOR`, `DEPTH` and `INFO`.
    """

    names: Mapping[str, str]

    @property
    def rectified(self) -> bool:
        """Whether the colour images are rectified, by the name of their topic."""
        return is_rectified(self.names[COLOR])

    @property
    def kinds(self) -> frozenset[str]:
        """The parts that are there."""
        return frozenset(self.names)


def cameras_of(seen: Mapping[str, str], named: Mapping[str, str]) -> dict[str, CameraTopics]:
    """The cameras of a recording, by name, in the order of their names.

    A camera is found by the names of realsense-ros, `<namespace>/<camera>/color/image_raw` and its neighbours, raw or
    compressed, and called by the last part of that: "top" for Merton's own `camera/top/color/image_raw`, "D455_1" for
    `/robot1/D455_1/color/image_raw`. Where two would be called alike, the one in a namespace `camera` keeps the short
    name, and others are called by the whole: "robot2/D455_1".

    Args:
        seen: the type of each topic of the recording.
        named: the topic of the colour image of further cameras, and under "<camera>.depth" that of their depth. Their
            camera_info is the topic of that name beside the colour image, as in image_transport.

    Raises:
        InputError: a topic in `named` is no image of the recording, or has no camera_info beside it.
    """
    found = _found(seen)
    given = {name: topic for name, topic in named.items() if not name.endswith(f".{DEPTH}")}
    for name, topic in given.items():
        color = _image(seen, topic)
        same = next((one for one in found.values() if _plain(one.names[COLOR]) == _plain(color)), None)
        names = {**({} if same is None else same.names), COLOR: color}
        if (info := f"{_plain(color).rpartition('/')[0]}/camera_info") in seen:
            names[INFO] = info
        if INFO not in names:
            raise InputError(
                f"the recording has no {info}, which would describe the pictures of {name!r} on {color}: record it "
                f"beside them"
            )
        if (depth := named.get(f"{name}.{DEPTH}")) is not None:
            names[DEPTH] = _image(seen, depth)
        found = {one: topics for one, topics in found.items() if topics is not same}
        found[name] = CameraTopics(names)
    if lone := [name for name in named if name not in given and name.removesuffix(f".{DEPTH}") not in given]:
        raise InputError(f"{lone[0]} names depth of a camera whose colour image is not named")
    return dict(sorted(found.items()))


def topics_of(text: str) -> dict[str, str]:
    """Topics by camera from a text such as "top=/robot1/D455_1/color/image_raw, top.depth=/robot1/depth".

    Raises:
        InputError: another form, or a camera that is named twice.
    """
    pairs = [part.strip().partition("=") for part in text.split(",") if part.strip()]
    topics = {camera.strip(): topic.strip() for camera, _, topic in pairs}
    if len(topics) < len(pairs) or not all(camera and topic for camera, topic in topics.items()):
        raise InputError(
            f"topics are given once for each camera, as in top=/my/camera/image_raw, top.depth=/my/depth, got {text!r}"
        )
    return topics


def image_topics(seen: Mapping[str, str]) -> str:
    """The topics of images of a recording in words, for a message."""
    images = sorted(topic for topic, kind in seen.items() if kind in _IMAGES)
    more = f" and {len(images) - _MOST_LISTED} others" if len(images) > _MOST_LISTED else ""
    return f"{', '.join(images[:_MOST_LISTED]) or 'none'}{more}"


def _found(seen: Mapping[str, str]) -> dict[str, CameraTopics]:
    """The cameras that are called as realsense-ros does."""
    places: dict[str, dict[str, str]] = {}
    for suffix in reversed(_COMPRESSED):
        for topic in sorted(seen):
            if topic.endswith(suffix) and (match := _TOPIC.match(topic.removesuffix(suffix))):
                places.setdefault(match[1], {})[_KINDS[match[2]]] = topic
    places = {place: names for place, names in places.items() if COLOR in names}
    short: dict[str, list[str]] = {}
    for place in places:
        short.setdefault(place.rpartition("/")[2], []).append(place)
    called = dict[str, str]()
    for name, alike in short.items():
        own = [place for place in alike if place.rpartition("/")[0].rpartition("/")[2] == "camera"]
        first = alike if len(alike) == 1 else own if len(own) == 1 else []
        called |= {place: name if place in first else place.strip("/") for place in alike}
    return {called[place]: CameraTopics(names) for place, names in places.items()}


def _plain(topic: str) -> str:
    """An image's topic without the ending of image_transport."""
    ending = next((suffix for suffix in _COMPRESSED[1:] if topic.endswith(suffix)), "")
    return topic.removesuffix(ending)


def _image(seen: Mapping[str, str], topic: str) -> str:
    """The topic of an image, under one of the endings of image_transport if need be."""
    whole = topic if topic.startswith("/") else f"/{topic}"
    for suffix in _COMPRESSED:
        if seen.get(f"{whole}{suffix}") in _IMAGES:
            return f"{whole}{suffix}"
    raise InputError(f"the recording has no images on {topic!r}; image topics in it: {image_topics(seen)}")
