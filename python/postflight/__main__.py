"""The program: ``postflight`` and ``python -m postflight``.

``postflight paths`` prints the folders that the package carries.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import sys
from typing import List, NoReturn, Optional


def program() -> str:
    """The program that belongs to the package, or the one on PATH."""
    given = os.environ.get("POSTFLIGHT_PROGRAM")
    if given:
        return given
    here = pathlib.Path(__file__).resolve().parent
    for path in (here / "bin" / "postflight",
                 here.parents[1] / "build" / "release" / "postflight"):
        if os.access(path, os.X_OK):
            return str(path)
    found = shutil.which("postflight")
    if found is None:
        raise SystemExit("postflight: the program was not found; install the "
                         "wheel, or name it in POSTFLIGHT_PROGRAM")
    return found


def paths() -> List[str]:
    """Lines that say where things are."""
    from ._library import library
    here = pathlib.Path(__file__).resolve().parent
    lines = [f"program        {program()}", f"library        {library()._name}"]
    compatibility = here / "compatibility"
    if compatibility.is_dir():
        lines.append(f"compatibility  {compatibility}")
    headers = here / "include"
    if headers.is_dir():
        lines.append(f"headers        {headers}")
    return lines


def main(arguments: Optional[List[str]] = None) -> NoReturn:
    """Becomes the program."""
    given = sys.argv[1:] if arguments is None else arguments
    if given == ["paths"]:
        print("\n".join(paths()))
        raise SystemExit(0)
    found = program()
    os.execv(found, [found, *given])


if __name__ == "__main__":
    main()
