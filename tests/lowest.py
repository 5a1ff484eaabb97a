"""Print pip constraints: the lowest version that pyproject.toml allows of each direct dependency."""

import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

EXTRAS = ("web", "emd")


def lowest(project):
    """A line for each package, such as ``numpy==2.0``."""
    lists = [project["dependencies"], *(project["optional-dependencies"][extra] for extra in EXTRAS)]
    for requirement in (Requirement(line) for lines in lists for line in lines):
        for bound in requirement.specifier:
            if bound.operator == ">=":
                yield f"{requirement.name}=={bound.version}"


if __name__ == "__main__":
    whole = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    sys.stdout.write("\n".join([*lowest(whole["project"]), ""]))
