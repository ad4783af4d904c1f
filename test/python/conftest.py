"""Makes the packages under python/ importable and shares what tests build."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from memplan_tools import compiler  # noqa: E402


@pytest.fixture(scope="session")
def build_folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("build")


@pytest.fixture(scope="session")
def memplan_opt() -> Path:
    """The compiler; a missing one is an error, never a skip."""
    return compiler.tool()
