"""Builds the wheel of clusterrun for pip, with nothing but the standard library: where
clusters are, no package index may be reached to fetch a build system from."""

import re
from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any
from zipfile import ZipFile

_METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {description}\nRequires-Python: {requires-python}\n"
_WHEEL = "Wheel-Version: 1.0\nGenerator: clusterrun\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: Any = None) -> str:
    """Build the wheel of the project in the working directory; see PEP 517."""
    project = dict(re.findall(r'^([a-z-]+) = "(.*)"$', Path("pyproject.toml").read_text(), re.MULTILINE))
    files = {p.as_posix(): p.read_bytes() for p in sorted(Path("clusterrun").iterdir()) if p.suffix in (".py", ".typed")}
    release = "{name}-{version}".format(**project)
    info = release + ".dist-info/"
    files[info + "METADATA"] = _METADATA.format(**project).encode()
    files[info + "WHEEL"] = _WHEEL.encode()
    digests = {name: urlsafe_b64encode(sha256(content).digest()).decode().rstrip("=") for name, content in files.items()}
    record = ["%s,sha256=%s,%d\n" % (name, digests[name], len(content)) for name, content in files.items()]
    files[info + "RECORD"] = ("".join(record) + info + "RECORD,,\n").encode()
    wheel = release + "-py3-none-any.whl"
    with ZipFile(Path(wheel_directory, wheel), "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return wheel
