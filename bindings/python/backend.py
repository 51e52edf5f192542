# SPDX-License-Identifier: MIT OR Apache-2.0
"""Builds the wheel of macrotick.py: a backend of PEP 517, without other packages, because the library is no extension
module of Python. It compiles ../macrotick.c, so it works in a checkout only. The version is that of the workspace."""

import base64
import hashlib
import os
import platform
import re
import subprocess
import tempfile
import zipfile

_here = os.path.dirname(os.path.abspath(__file__))
_root = os.path.join(_here, "..", "..")
_name = "macrotick"


def _version():
    with open(os.path.join(_root, "Cargo.toml"), encoding="utf-8") as workspace:
        return re.search(r'^version = "(.*)"$', workspace.read(), re.MULTILINE)[1]


def _library():
    """Returns the content of libmacrotick.so."""
    includes = [os.path.join(_root, "include"), os.path.join(_root, "kernel", "overlay", "include", "uapi")]
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "libmacrotick.so")
        compiler = [os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", "-s"]
        compiler += [word for include in includes for word in ("-I", include)]
        subprocess.run([*compiler, "-o", path, os.path.join(_here, "..", "macrotick.c")], check=True)
        with open(path, "rb") as library:
            return library.read()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Writes the wheel, and returns its name."""
    if platform.system() != "Linux":
        raise RuntimeError("a task of Macrotick runs on Linux only")
    version, tag = _version(), f"py3-none-linux_{platform.machine()}"
    with open(os.path.join(_here, "macrotick.py"), "rb") as module:
        files = {"macrotick.py": module.read(), "libmacrotick.so": _library()}
    info = f"{_name}-{version}.dist-info"
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: {_name}\nVersion: {version}\nSummary: A task of Macrotick in Python\n"
        "License: MIT OR Apache-2.0\nRequires-Python: >=3.9\n"
    ).encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: {_name}\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    record = f"{info}/RECORD"
    lines = []
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(content)}\n")
    files[record] = ("".join(lines) + f"{record},,\n").encode()
    wheel = f"{_name}-{version}-{tag}.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            # The time of a member is fixed, so the same sources give the same wheel.
            archive.writestr(zipfile.ZipInfo(path, (2026, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    """Refuses: the header and the library's source are outside of this directory."""
    raise RuntimeError("there is no source distribution: build the wheel in a checkout of Macrotick")
