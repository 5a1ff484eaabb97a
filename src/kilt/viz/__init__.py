"""Draw figures: convergence curves, hand grids, boards and reports. Only this package imports matplotlib."""

import os
import sys
from contextlib import suppress
from pathlib import Path

from kilt.machine import is_writable, temporary_folder

# Matplotlib caches its list of fonts in its settings folder. If it cannot, it prints two long lines of warnings.
with suppress(OSError, RuntimeError):  # RuntimeError: the home folder is unknown
    if not os.environ.get("MPLCONFIGDIR"):
        _settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "matplotlib"
        if not is_writable(_settings if sys.platform.startswith(("linux", "freebsd")) else Path.home() / ".matplotlib"):
            os.environ["MPLCONFIGDIR"] = str(temporary_folder("cache") / "fonts")
