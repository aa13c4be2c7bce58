"""The Croissant file of a dataset: MLCommons Croissant 1.0, JSON-LD over the vocabulary of schema.org."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from merton_studies.release.card import About
from merton_studies.release.shards import Shard, Written
from merton_studies.release.table import Field

CONFORMS_TO = "http://mlcommons.org/croissant/1.0"
_PARQUET = "application/x-parquet"
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
"""The context that Croissant 1.0 prescribes: its validator warns of any other."""


def croissant(about: About, description: str, tables: Sequence[Written]) -> str:
    """The file's text: every Parquet file with its size and SHA-256, and a record set for every table.

    Args:
        about: name, licence, authors, date.
        description: a few sentences.
        tables: as they were written.
    """
    found: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        "name": about.title,
        "description": description,
        "license": about.licence.url,
        "version": about.version,
        "url": f"https://huggingface.co/datasets/{about.repository}",
        "citeAs": about.citation,
        "isLiveDataset": False,
        "distribution": [entry for one in tables for entry in (_file_set(one), *map(_file, one.shards))],
        "recordSet": [entry for one in tables for entry in (_splits(one), _records(one))],
    }
    if about.authors:
        found["creator"] = [{"@type": "sc:Person", "name": name} for name in about.authors]
    if about.date:
        found["datePublished"] = about.date
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def _file(shard: Shard) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": shard.path,
        "name": shard.path,
        "contentUrl": shard.path,
        "contentSize": f"{shard.size} B",
        "encodingFormat": _PARQUET,
        "sha256": shard.sha256,
    }


def _file_set(one: Written) -> dict[str, Any]:
    name = one.table.name
    return {
        "@type": "cr:FileSet",
        "@id": f"files-{name}",
        "name": f"files-{name}",
        "description": f"The Parquet files of {name}.",
        "encodingFormat": _PARQUET,
        "includes": f"{name}/*.parquet",
    }


def _splits(one: Written) -> dict[str, Any]:
    name = f"{one.table.name}_splits"
    key = f"{name}/split_name"
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "dataType": "cr:Split",
        "description": f"The splits of {one.table.name}.",
        "key": {"@id": key},
        "field": [{"@type": "cr:Field", "@id": key, "name": "split_name", "dataType": "sc:Text"}],
        "data": [{key: split} for split in one.splits],
    }


def _records(one: Written) -> dict[str, Any]:
    name = one.table.name
    split = {
        "@type": "cr:Field",
        "@id": f"{name}/split",
        "name": "split",
        "description": "The split, from the name of the file.",
        "dataType": "sc:Text",
        "source": {
            "fileSet": {"@id": f"files-{name}"},
            "extract": {"fileProperty": "fullpath"},
            # the whole path: mlcroissant matches from its start, and makes a glob of it to filter by split
            "transform": {"regex": f"{name}/({'|'.join(one.splits)})-.+\\.parquet$"},
        },
        "references": {"field": {"@id": f"{name}_splits/split_name"}},
    }
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": one.table.title,
        "field": [split, *(_field(name, field) for field in one.table.fields)],
    }


def _field(table: str, field: Field) -> dict[str, Any]:
    source: dict[str, Any] = {"fileSet": {"@id": f"files-{table}"}, "extract": {"column": field.name}}
    if field.kind == "image":
        source["transform"] = {"jsonPath": "bytes"}
    found = {
        "@type": "cr:Field",
        "@id": f"{table}/{field.name}",
        "name": field.name,
        "description": field.about,
        "dataType": field.croissant,
        "source": source,
    }
    return found | ({"repeated": True} if field.depth else {})
