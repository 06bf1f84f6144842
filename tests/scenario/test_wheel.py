"""What is built is whole: the wheel alone, in an empty environment, runs the demo from anywhere."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(
    *command: str | Path, cwd: Path, within: float = 120, codes: tuple[int, ...] = (0,)
) -> subprocess.CompletedProcess[str]:
    """A command that sees nothing of this checkout but what it is given."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "ATTN_"))}
    ran = subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=within,
        check=False,
    )
    assert ran.returncode in codes, f"{command}\n{ran.stdout}\n{ran.stderr}"
    return ran


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
    run(*pip, "wheel", "--no-deps", "--wheel-dir", folder, ROOT, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_has_all_that_runs(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        built = set(archive.namelist())

    source = ROOT / "src"
    ours = [
        path.relative_to(source).as_posix()
        for path in (source / "attention_queue").rglob("*")
        if path.suffix in (".py", ".sql") or path.name == "py.typed"
    ]
    hub = [f"markethub/{path.name}" for path in (ROOT / "examples" / "markethub").glob("*.py")]
    assert {*ours, *hub} - built == set()
    assert "attention_queue/py.typed" in built
    assert any(name.startswith("attention_queue/engines/migrations/") for name in built)
    assert not any(name.startswith(("tests", "benchmarks", "examples")) for name in built)


def test_the_demo_runs_from_the_wheel_in_another_folder(wheel: Path, tmp_path: Path) -> None:
    environment, elsewhere = tmp_path / "env", tmp_path / "elsewhere"
    elsewhere.mkdir()
    venv.create(environment, with_pip=True)
    pip = (environment / "bin" / "pip", "--disable-pip-version-check", "--quiet")
    run(*pip, "install", wheel, cwd=elsewhere)

    attn = environment / "bin" / "attn"
    ran = run(attn, "demo", "--quick", cwd=elsewhere, codes=(0, 1))

    assert ran.stdout.count("ok ") + ran.stdout.count("FAILED ") == 4, ran.stdout
    assert " accepted, 0 lost" in ran.stdout
    assert ran.stdout.count("ok ") >= 3, ran.stdout
    assert list(elsewhere.iterdir()) == []
