"""Unpacks a Chromium that is packed for the npm registry: unpack_browser.py FROM TO"""

import io
import os
import sys
import tarfile

import brotli

source, target = sys.argv[1], sys.argv[2]


def unpacked(name):
    with open(os.path.join(source, name), "rb") as file:
        return brotli.decompress(file.read())


path = os.path.join(target, "chromium")
with open(path, "wb") as file:
    file.write(unpacked("chromium.br"))
os.chmod(path, 0o755)
for name in ("al2023.tar.br", "fonts.tar.br", "swiftshader.tar.br"):
    tarfile.open(fileobj=io.BytesIO(unpacked(name))).extractall(target, filter="data")
