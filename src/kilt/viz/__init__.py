"""Figures from data: curves, hand grids, boards and reports. Only this package imports matplotlib."""

import os
import sys
from contextlib import suppress
from pathlib import Path

from kilt.machine import is_writable, temporary_folder

# Matplotlib keeps its list of fonts in the folder of its settings. Where it cannot, it says so in two long lines.
with suppress(OSError, RuntimeError):  # RuntimeError: nobody knows where the home folder is
    if not os.environ.get("MPLCONFIGDIR"):
        _settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "matplotlib"
        if not is_writable(_settings if sys.platform.startswith(("linux", "freebsd")) else Path.home() / ".matplotlib"):
            os.environ["MPLCONFIGDIR"] = str(temporary_folder("cache") / "fonts")
