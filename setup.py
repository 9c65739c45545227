"""Lets CMake build the package; pyproject.toml says the rest.

ATTNSIM_BUILD names a build tree to use, else there is one in build/pip.
"""

import os
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCE = Path(__file__).resolve().parent


class cmake(build_ext):
    def run(self):
        tree = os.environ.get("ATTNSIM_BUILD") or SOURCE / "build" / "pip"
        run = lambda *arguments: subprocess.run(["cmake", *map(str, arguments)], check=True)
        if "ATTNSIM_BUILD" not in os.environ:
            run("-S", SOURCE, "-B", tree, "-DCMAKE_BUILD_TYPE=Release", "-DATTNSIM_TESTS=OFF",
                "-DATTNSIM_VALIDATE=OFF", "-DATTNSIM_MPI=OFF", f"-DPython3_EXECUTABLE={sys.executable}")
        run("--build", tree, "--target", "attnsim_python", "--parallel", os.cpu_count())
        run("--install", tree, "--prefix", Path(self.build_lib).resolve(), "--component", "python")


setup(ext_modules=[Extension("attnsim._attnsim", [])], cmdclass={"build_ext": cmake})
