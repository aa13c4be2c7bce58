"""What RViz draws."""

from __future__ import annotations

import numpy as np
from geometry_msgs.msg import Point
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

ALLOWED = ColorRGBA(r=0.1, g=0.7, b=0.3, a=1.0)
REFUSED = ColorRGBA(r=0.9, g=0.2, b=0.1, a=1.0)


def path_markers(positions: np.ndarray, allowed: bool, frame: str) -> MarkerArray:
    """The path (n, 3) [m] the tool is about to take: green, or red if the gate cut it short."""
    line = Marker(ns="path", id=0, type=Marker.LINE_STRIP, action=Marker.ADD, color=ALLOWED if allowed else REFUSED)
    line.header.frame_id = frame
    line.scale.x = 0.006
    line.pose.orientation.w = 1.0
    line.points = [Point(x=x, y=y, z=z) for x, y, z in positions.tolist()]
    return MarkerArray(markers=[line])
