"""Licences: the names that hubs know, and those of the photographs in a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from merton.errors import InputError, UnknownNameError
from merton.results.tables import file_bytes, read_cells

_SPDX = (
    "Apache-2.0", "MIT", "AFL-3.0", "Artistic-2.0", "BSL-1.0", "BSD-2-Clause", "BSD-3-Clause", "BSD-3-Clause-Clear",
    "CC0-1.0", "CC-BY-2.0", "CC-BY-2.5", "CC-BY-3.0", "CC-BY-4.0", "CC-BY-SA-3.0", "CC-BY-SA-4.0", "CC-BY-NC-2.0",
    "CC-BY-NC-3.0", "CC-BY-NC-4.0", "CC-BY-ND-4.0", "CC-BY-NC-ND-3.0", "CC-BY-NC-ND-4.0", "CC-BY-NC-SA-2.0",
    "CC-BY-NC-SA-3.0", "CC-BY-NC-SA-4.0", "CDLA-Sharing-1.0", "CDLA-Permissive-1.0", "CDLA-Permissive-2.0", "WTFPL",
    "ECL-2.0", "EPL-1.0", "EPL-2.0", "etalab-2.0", "EUPL-1.1", "EUPL-1.2", "AGPL-3.0", "GPL-2.0", "GPL-3.0",
    "LGPL-2.1", "LGPL-3.0", "ISC", "LPPL-1.3c", "MS-PL", "MPL-2.0", "OSL-3.0", "PostgreSQL", "OFL-1.1", "NCSA",
    "Unlicense", "Zlib",
)  # fmt: skip
_OTHER_NAMES = {"ODC-By-1.0": "odc-by", "ODbL-1.0": "odbl", "PDDL-1.0": "pddl", "C-UDA-1.0": "c-uda"}
HUB_IDS = {spdx: spdx.lower() for spdx in _SPDX} | _OTHER_NAMES
"""SPDX name to the name in the list of the Hugging Face hub; its families of licences without a version, its licences
of models, `unknown` and `other` are left out, because they do not tell a reader what is allowed."""

CREATIVE_COMMONS = tuple(
    f"CC-{terms}-{version}"
    for terms in ("BY", "BY-SA", "BY-ND", "BY-NC", "BY-NC-SA", "BY-NC-ND")
    for version in ("1.0", "2.0", "2.5", "3.0", "4.0")
)
"""All of them, of which the hub lists some: a photograph may have any."""
PUBLIC_DOMAIN = "public-domain"
"""In place of a licence where the maker gave a photograph away without one."""

COLUMNS = ("source", "licence", "attribution")
"""Of a table of sources: a file name or a pattern such as "lab_*.png", the licence, and who is to be named."""


@dataclass(frozen=True)
class Licence:
    """A licence.

    Attributes:
        spdx: its name in the list of SPDX; `PUBLIC_DOMAIN` for some photographs.
        attribution: who is to be named, and where it is from; may be "".
    """

    spdx: str
    attribution: str = ""

    @property
    def hub_id(self) -> str:
        """The name that the front matter of a card needs."""
        return HUB_IDS[self.spdx]

    @property
    def url(self) -> str:
        """A page with its text."""
        return f"https://spdx.org/licenses/{self.spdx}.html"

    @property
    def allows_altered_copies(self) -> bool:
        """Whether distorted copies may be passed on; the licences without derivatives (ND) forbid it."""
        return "-ND-" not in f"{self.spdx}-"


BUILT_IN: dict[str, tuple[str, Licence]] = {
    "7605af19ba2b975845037d479d9429d3fbc334ff78c7b51f67f112d50f85ed65": (
        "a portrait of the astronaut Eileen Collins",
        Licence(PUBLIC_DOMAIN, "NASA; through scikit-image"),
    ),
    "bf98e824a0e89e0e5fc9883963758bfd21453203a3fb1f22a32c108d939ffac6": (
        "a photographer, whose face is turned to the camera that he looks through",
        Licence("CC0-1.0", "Lav Varshney; through scikit-image"),
    ),
    "2a48da897e30584d1ae09abf8802730963e97735ab7f4ccede25b412ab11e5dd": (
        "a cat",
        Licence("CC0-1.0", "Stefan van der Walt; through scikit-image"),
    ),
    "013a8175a6f60538e29aa8bee676f3e4b4c9a4388defc9a81368b20fc7b3fe9c": (
        "a cup",
        Licence("CC0-1.0", "Rachel Michetti; through scikit-image"),
    ),
    "9d55b6a566c73f3c20e2e36b81acc5d14fddc66453247ba544eced175a87cf54": (
        "a rocket",
        Licence(PUBLIC_DOMAIN, "SpaceX; through scikit-image"),
    ),
    "9459dffd4ad72e7b57c431b62b1c14c636e1885ca56c49f1a7efe5a1bd4b448a": (
        "a building",
        Licence("CC-BY-2.0", "danielbuechele, https://www.flickr.com/photos/danielbuechele/; through scikit-learn"),
    ),
    "028008e42002966d0d18ae40c6aeb65f49ffb1a0238f997431a2a0d78538d15c": (
        "a flower",
        Licence("CC-BY-2.0", "vultilion, https://www.flickr.com/photos/vultilion/; through scikit-learn"),
    ),
}
"""`pixels_sha256` of a photograph of the built-in sample to what it shows and its licence, as the package that it
comes with says. Two photographs of the sample, coins and motorcycle, have none there."""


def licence_named(name: str) -> Licence:
    """The licence of a name of SPDX's list or the hub's, in upper or lower case.

    Raises:
        UnknownNameError: it is neither; the text names the near ones.
    """
    for spdx, hub_id in HUB_IDS.items():
        if name.strip().lower() in (spdx.lower(), hub_id):
            return Licence(spdx)
    raise UnknownNameError("licence", name, HUB_IDS)


def photograph_licence(name: str, attribution: str) -> Licence:
    """The licence of a photograph: one of the hub's, of Creative Commons, or `PUBLIC_DOMAIN`.

    Raises:
        UnknownNameError: it is none of them; the text names the near ones.
        InputError: the licence asks that someone is named, and `attribution` is empty.
    """
    others = {other.lower(): other for other in (*CREATIVE_COMMONS, PUBLIC_DOMAIN)}
    spdx = others.get(name.strip().lower()) or licence_named(name).spdx
    if spdx.startswith("CC-BY") and not attribution.strip():
        raise InputError(f"{spdx} asks that its maker is named: fill in attribution")
    return Licence(spdx, attribution)


@dataclass(frozen=True)
class Sources:
    """The licences of photographs by pattern of their file's name; the first pattern that fits counts."""

    patterns: Sequence[tuple[str, Licence]] = ()

    def of(self, file: str) -> Licence | None:
        """The licence of a file; None where no pattern fits."""
        return next((licence for pattern, licence in self.patterns if fnmatch(file, pattern)), None)


def read_sources(path: Path) -> Sources:
    """The table of sources in a CSV file with the columns source, licence, attribution.

    Raises:
        InputError: it cannot be read, has other columns, names an unknown licence, or lacks an attribution that the
            licence asks for; the sentence names the line.
    """
    rows = read_cells(path.name, file_bytes(path))
    where, header = next(rows)
    if sorted(header) != sorted(COLUMNS):
        raise InputError(f"{where}: the columns must be {', '.join(COLUMNS)}")
    found = []
    for where, cells in rows:
        source, licence, attribution = (str(cells[header.index(name)]) for name in COLUMNS)
        try:
            found.append((source, photograph_licence(licence, attribution)))
        except (InputError, UnknownNameError) as error:
            raise InputError(f"{where}: {error}") from None
    return Sources(tuple(found))
