"""Builds the wheel of clusterrun with only the standard library, because clusters often cannot
reach a package index to fetch a build system.

pip uses it to build only the package's wheel. `make wheel` adds programs:

    python3 backend.py DIRECTORY PLATFORM PROGRAM...

The same files give the same wheel, dated SOURCE_DATE_EPOCH.
"""

import os
import re
import sys
import time
from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any, Sequence
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

_METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {description}\nRequires-Python: {requires-python}\n"
_WHEEL = "Wheel-Version: 1.0\nGenerator: clusterrun\nRoot-Is-Purelib: %s\n"


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: Any = None) -> str:
    """Build the wheel of the project in the working directory; see PEP 517."""
    return _build(wheel_directory, "any", ())


def _build(directory: str, platform: str, programs: Sequence[str]) -> str:
    """Build a wheel with programs for one or more platforms, separated by dots."""
    project = dict(re.findall(r'^([a-z-]+) = "(.*)"$', Path("pyproject.toml").read_text(), re.MULTILINE))
    release = "{name}-{version}".format(**project)
    files = {p.as_posix(): p.read_bytes() for p in sorted(Path("clusterrun").iterdir()) if p.suffix in (".py", ".typed")}
    scripts = {"%s.data/scripts/%s" % (release, Path(p).name): Path(p).read_bytes() for p in programs}
    info = release + ".dist-info/"
    wheel = _WHEEL % str(not programs).lower() + "".join("Tag: py3-none-%s\n" % p for p in platform.split("."))
    files.update(scripts)
    files[info + "METADATA"] = _METADATA.format(**project).encode()
    files[info + "WHEEL"] = wheel.encode()
    digests = {name: urlsafe_b64encode(sha256(content).digest()).decode().rstrip("=") for name, content in files.items()}
    record = ["%s,sha256=%s,%d\n" % (name, digests[name], len(content)) for name, content in files.items()]
    files[info + "RECORD"] = ("".join(record) + info + "RECORD,,\n").encode()
    earliest = 315532800  # 1980, a zip file's earliest time
    modified = time.gmtime(max(earliest, int(os.environ.get("SOURCE_DATE_EPOCH", earliest))))[:6]
    name = "%s-py3-none-%s.whl" % (release, platform)
    with ZipFile(Path(directory, name), "w", ZIP_DEFLATED) as archive:
        for member, content in files.items():
            entry = ZipInfo(member, modified)
            entry.compress_type = ZIP_DEFLATED
            entry.external_attr = (0o100755 if member in scripts else 0o100644) << 16
            archive.writestr(entry, content)
    return name


if __name__ == "__main__":
    print(_build(sys.argv[1], sys.argv[2], sys.argv[3:]))
