"""The operator's screen: the plugins that RViz's configuration names are installed, and rqt opens its perspective."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from ament_index_python.resources import get_resource, get_resources
from merton_interfaces.msg import SafetyState, TrialResult
from merton_interfaces.srv import ConfirmSuccess
from ruamel.yaml import YAML
from std_srvs.srv import Trigger

from merton.files import resource
from merton_nodes.ros import names
from patience import until

BASES = {
    "Displays": "rviz_common::Display",
    "Tools": "rviz_common::Tool",
    "Views": "rviz_common::ViewController",
    "Transformation": "rviz_common::transformation::FrameTransformer",
}
"""Base class of the plugins in a section of RViz's configuration."""

RQT = """
import json, os, sys
from rqt_gui.main import Main
from python_qt_binding.QtCore import QTimer
from python_qt_binding.QtWidgets import QApplication

def look():
    shown = {"services": [], "topics": [], "known": []}
    for widget in QApplication.allWidgets():
        if type(widget).__module__ == "rqt_service_caller.service_caller_widget":
            box = widget.service_combo_box
            shown["services"].append(box.currentText())
            shown["known"].extend(box.itemText(index) for index in range(box.count()))
        if type(widget).__module__ == "rqt_plot.plot_widget":
            shown["topics"].extend(widget._rosdata)
    print(json.dumps(shown), flush=True)

class Watched(Main):
    def create_application(self, argv):
        application = super().create_application(argv)
        self.timer = QTimer()
        self.timer.timeout.connect(look)
        self.timer.start(500)
        return application

Watched().main(["rqt", "--clear-config", "--force-discover", "--perspective-file", sys.argv[1]])
"""
"""rqt, which prints twice a second the services and topics it shows."""


def installed_plugins(of_package: str) -> set[tuple[str, str]]:
    """Name and base class of all plugins that packages declare to another."""
    kind, found = f"{of_package}__pluginlib__plugin", set()
    for package, prefix in get_resources(kind).items():
        for file in get_resource(kind, package)[0].split():
            for one in ElementTree.parse(Path(prefix) / file).getroot().iter("class"):
                found.add((str(one.get("name")), str(one.get("base_class_type"))))
    return found


def classes(tree: Any) -> set[str]:
    """Every plugin that a section of RViz's configuration names."""
    if isinstance(tree, dict):
        own = {tree["Class"]} if "Class" in tree else set()
        return own.union(*map(classes, tree.values()))
    return set().union(*map(classes, tree)) if isinstance(tree, list) else set()


@pytest.mark.needs("rviz_common", "rviz_default_plugins")
def test_rviz_has_the_plugins_of_its_configuration() -> None:
    configuration = YAML(typ="safe").load(resource("merton_bringup", "config/rviz/merton.rviz"))
    manager = configuration["Visualization Manager"]
    wanted = {(name, base) for section, base in BASES.items() for name in classes(manager[section])}
    assert len(wanted) >= 11
    assert wanted <= installed_plugins("rviz_common")


@pytest.mark.needs("rqt_gui", "rqt_image_view", "rqt_plot", "rqt_runtime_monitor", "rqt_service_caller")
def test_rqt_opens_the_perspective_on_a_running_graph(ros: Any, probe: Any, processes: Any, tmp_path: Path) -> None:
    for kind, topic in (
        (SafetyState, names.ARM_SAFETY),
        (SafetyState, names.CELL_SAFETY),
        (TrialResult, names.TRIAL_RESULTS),
    ):
        probe.create_publisher(kind, topic, 1)
    for kind, service in ((Trigger, names.STOP), (Trigger, names.RESET_STOP), (ConfirmSuccess, names.CONFIRM)):
        probe.create_service(kind, service, lambda _, response: response)
    perspective = resource("merton_bringup", "config/rqt/merton.perspective")
    expected = {
        "services": {f"/{name}" for name in (names.STOP, names.RESET_STOP, names.CONFIRM)},
        "topics": {f"/{names.ARM_SAFETY}/mode", f"/{names.CELL_SAFETY}/mode", f"/{names.CELL_SAFETY}/force"}
        | {f"/{names.TRIAL_RESULTS}/{stage}" for stage in ("cognition", "decision", "execution")},
    }

    def opens() -> bool:
        """False if rqt had not heard of the graph when it opened: it asks for services and topics only then."""
        rqt = processes.start(sys.executable, "-c", RQT, perspective, QT_QPA_PLATFORM="offscreen", HOME=str(tmp_path))

        def shown() -> dict[str, set[str]]:
            assert rqt.process.poll() is None, "rqt has ended"
            lines = [json.loads(line) for line in rqt.output.rpartition("\n")[0].splitlines() if line.startswith("{")]
            last = {key: set(value) for key, value in lines[-1].items()} if lines else {}
            heard = last.get("known", set()) >= expected["services"]
            return last if last.get("services") and (not heard or last.items() >= expected.items()) else {}

        heard = until(shown, 120.0)["known"] >= expected["services"]
        assert "could not load plugin" not in rqt.output
        processes.end()
        return heard

    until(opens, 300.0)
