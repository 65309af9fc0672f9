"""The bill of materials of a wheel, as CycloneDX JSON: the package, the jars in it, and the packages that it needs.

The wheel contains no code of others. Its requirements are ranges of versions, so their components have no version: an
installation decides which ones are used. Serial number and date follow from the wheel, so equal wheels have equal
bills.
"""

from __future__ import annotations

import hashlib
import uuid
import zipfile
from datetime import datetime, timezone
from email.parser import Parser
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_VERSION = SchemaVersion.V1_6
_LICENSE = "Apache-2.0"


def bill_of(wheel: Path, when: int) -> str:
    """The bill of materials of a wheel.

    Args:
        wheel: The wheel.
        when: The date of the bill, in seconds since 1970.
    Raises:
        ValueError: The bill is not valid by the schema of CycloneDX.
    """
    content = wheel.read_bytes()
    with zipfile.ZipFile(wheel) as archive:
        (metadata_file,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(metadata_file).decode())
        jars = {name: archive.read(name) for name in sorted(archive.namelist()) if name.endswith(".jar")}
    name, version = metadata["Name"], metadata["Version"]
    digest = hashlib.sha256(content).hexdigest()
    package = Component(
        type=ComponentType.LIBRARY, name=name, version=version, bom_ref=f"{name}@{version}",
        description=metadata["Summary"], licenses=[DisjunctiveLicense(id=_LICENSE)],
        purl=PackageURL("pypi", name=name, version=version), hashes=[_sha256(content)],
        components=[_jar(path, jar, version) for path, jar in jars.items()],
    )  # fmt: skip
    needed = _requirements(metadata.get_all("Requires-Dist", []))
    bill = Bom(
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"pkg:pypi/{name}@{version}#{digest}"),
        metadata=BomMetaData(component=package, timestamp=datetime.fromtimestamp(when, timezone.utc)),
        components=needed,
    )
    bill.register_dependency(package, [one for one in needed if one.scope is ComponentScope.REQUIRED])
    text: str = make_outputter(bill, OutputFormat.JSON, _VERSION).output_as_string(indent=2) + "\n"
    error = JsonStrictValidator(_VERSION).validate_str(text)
    if error is not None:
        raise ValueError(f"the bill of materials is not valid CycloneDX {_VERSION.to_version()}: {error}")
    return text


def _sha256(content: bytes) -> HashType:
    return HashType(alg=HashAlgorithm.SHA_256, content=hashlib.sha256(content).hexdigest())


def _jar(path: str, content: bytes, version: str) -> Component:
    """A jar in the wheel, by its path there. The jar of the same name on Maven has other entries, so it has no purl."""
    return Component(
        type=ComponentType.FILE, name=path, version=version, bom_ref=path, hashes=[_sha256(content)],
        licenses=[DisjunctiveLicense(id=_LICENSE)],
    )  # fmt: skip


def _requirements(lines: list[str]) -> list[Component]:
    """The packages that the metadata names: required ones, and optional ones with the extras that need them."""
    ranges: dict[str, set[str]] = {}
    extras: dict[str, set[str]] = {}
    required = set()
    for line in lines:
        requirement = Requirement(line)
        name = canonicalize_name(requirement.name)
        ranges.setdefault(name, set()).add(str(requirement.specifier))
        marker = str(requirement.marker or "")
        if "extra ==" in marker:
            extras.setdefault(name, set()).add(marker.partition("extra == ")[2].strip('"'))
        else:
            required.add(name)
    return [
        Component(
            type=ComponentType.LIBRARY, name=name, bom_ref=name, purl=PackageURL("pypi", name=name),
            scope=ComponentScope.REQUIRED if name in required else ComponentScope.OPTIONAL,
            properties=[
                *(Property(name="pyjoinopt:range", value=text) for text in sorted(ranges[name]) if text),
                *(Property(name="pyjoinopt:extra", value=text) for text in sorted(extras.get(name, ()))),
            ],
        )
        for name in sorted(ranges) if name != "pyjoinopt"
    ]  # fmt: skip
