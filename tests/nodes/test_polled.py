"""A topic whose newest message is taken when it is needed."""

from __future__ import annotations

import pytest
from rclpy.serialization import deserialize_message
from std_msgs.msg import Float64

from merton_nodes.ros import names
from merton_nodes.ros.polled import PolledTopic
from ros import Probe, Ros


@pytest.mark.parametrize("raw", [False, True])
def test_the_newest_message_is_taken_once_and_no_callback_runs(ros: Ros, probe: Probe, raw: bool) -> None:
    polled, called = PolledTopic(probe, Float64, "numbers", raw=raw), []
    polled._subscription.callback = called.append
    heard = probe.listen(Float64, "numbers", names.RELIABLE_QOS)
    publisher = probe.create_publisher(Float64, "numbers", names.RELIABLE_QOS)
    ros.until(lambda: publisher.get_subscription_count() == 2)
    assert polled.take() is None
    for first in (0.0, 10.0):
        for number in range(4):
            publisher.publish(Float64(data=first + number))
        ros.until(lambda last=first + 3: heard and heard[-1].data == last)
        found = ros.until(polled.take)
        assert (deserialize_message(found, Float64) if raw else found).data == first + 3
        assert polled.take() is None
    assert len(heard) == 8
    assert not called


def test_its_warnings_of_publishers_that_do_not_match_are_heard(probe: Probe) -> None:
    polled = PolledTopic(probe, Float64, "numbers")
    group = polled._subscription.callback_group
    assert polled._subscription.event_handlers
    assert all(group.can_execute(handler) for handler in polled._subscription.event_handlers)
    assert not group.can_execute(polled._subscription)
