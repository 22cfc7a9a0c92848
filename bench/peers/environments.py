"""Create a virtual environment for each Python stack, from PyPI, and measure what was installed.

Packages are installed with uv, which stores every file once and links it into the environments. Together they
take the disk space of one; the sizes reported are those of each environment alone, which are what `pip install`
takes. The environments are reused until their list of packages changes.
"""

import os
import subprocess
import sys
from pathlib import Path

STACKS = Path(__file__).parent / "stacks"

# nltk refuses to read a file that has several links, and this package contains data files of nltk. It is installed
# once more as a copy.
COPIED = ["llama-index-core"]


def prepare(work, stack):
    """Returns the folder of the environment, which contains `bin/python`."""
    requirements = STACKS / f"{stack}.txt"
    folder = work / "environments" / stack
    stamp = folder / "installed.txt"
    if stamp.exists() and stamp.read_text() == requirements.read_text():
        return folder
    print(f"installing {stack} from PyPI", flush=True)
    uv = installer(work)
    run(work, uv, "venv", "--quiet", "--clear", "--python", sys.executable, folder)
    install = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", folder]
    run(work, *install, "--requirement", requirements)
    for package in COPIED:
        if package in requirements.read_text():
            run(work, *install, "--link-mode", "copy", "--no-deps", "--reinstall-package", package,
                "--requirement", requirements)
    stamp.write_text(requirements.read_text())
    return folder


def installer(work):
    tools = work / "environments" / "uv"
    if not (tools / "bin" / "uv").exists():
        subprocess.run([sys.executable, "-m", "venv", tools], check=True)
        subprocess.run([tools / "bin" / "pip", "install", "--quiet", "uv"], check=True)
    return tools / "bin" / "uv"


def run(work, *command):
    subprocess.run(command, check=True, env={**os.environ, "UV_CACHE_DIR": str(work / "uv")})


def installed_size(folder):
    """Megabytes in the files of the environment, including the model."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir()) / 1e6


def installed_packages(folder):
    return len(list(folder.glob("lib/*/site-packages/*.dist-info")))
