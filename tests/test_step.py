"""The command ``treering step``: what it prints, what it writes, and what it refuses."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from treering.cli.main import run

EXAMPLES = Path(__file__).parents[1] / "examples"
TOY = {
    "model_type": "qwen3", "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 8, "head_dim": 16,
    "intermediate_size": 176, "vocab_size": 1001, "max_position_embeddings": 32, "tie_word_embeddings": True,
}


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    path = tmp_path / "toy.json"
    path.write_text(json.dumps(TOY))
    return path


def test_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["step", str(EXAMPLES / "llama-3-8b.json"), "--layout", "dp=2,tp=4,pp=2", "--microbatches", "8",
                "--grad-dtype", "fp32"]) == 0
    printed = capsys.readouterr().out
    for fact in ("8,030,261,248 parameters", "stage 0: 1,003,880,448 a rank", "order, fastest first: tp, fsdp, dp, pp",
                 "stride 4: {0, 4} {1, 5} {2, 6} {3, 7} … (8 groups)", "seq 8192", "microbatches 8", "global batch 16",
                 "bf16, gradients fp32", "Megatron-LM", "1F1B"):
        assert fact in printed
    assert re.search(r"send pp +activations, bf16 +8 +536,870,912", printed)
    assert re.search(r"^dp +\d+ +4,015,5\d\d,\d\d\d ", printed, re.MULTILINE)


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.json")))
def test_every_example_has_a_step(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["step", str(EXAMPLES / f"{name}.json"), "--layout", "tp=2,fsdp=2"]) == 0
    assert "parameters" in capsys.readouterr().out


def test_no_number_is_ever_broken(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    run(["step", str(EXAMPLES / "deepseek-v3.json"), "--layout", "dp=512,tp=8"])
    assert "…" not in capsys.readouterr().out.replace("… (", "").replace(" … ", "")


def test_the_file(toy: Path, tmp_path: Path) -> None:
    path = tmp_path / "step.json"
    assert run(["step", str(toy), "--layout", "pp=2,tp=2", "--json", str(path)]) == 0
    found = json.loads(path.read_text())
    assert found["step"]["layout"] == {"tp": 2, "pp": 2}
    assert found["step"]["vocab"] == 1002
    assert sum(row["total"] for row in found["rows"]) == found["total"] > 0
    assert {row["label"] for row in found["rows"]} >= {"tied embedding gradient", "replicated-weight gradients"}
    assert found["run"] is None


@pytest.mark.parametrize(("arguments", "why"), [
    (["--layout", "tp=3"], "valid tp are 1, 2, 4, 8"),
    (["--layout", "pp=3"], "valid pp are 1, 2, 4"),
    (["--layout", "dp=2,tp=2", "-n", "8"], "dp 2 x tp 2 = 4 ranks, but there are 8"),
    (["--layout", "cats=9"], "the axes are dp, fsdp, pp, tp"),
    (["--layout", "dp=2", "--microbatches", "0"], "--microbatches must be at least 1, not 0"),
    (["--layout", "dp=2", "--sample"], "--sample and --iters are about --run"),
])
def test_what_does_not_fit_is_refused(toy: Path, arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["step", str(toy), *arguments]) == 2
    assert why in capsys.readouterr().err


def test_a_config_that_is_none_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["step", str(tmp_path / "nothing.json"), "--layout", "dp=2"]) == 2
    assert "No such file" in capsys.readouterr().err


def test_without_run_no_mpi_is_loaded(toy: Path) -> None:
    program = ("import sys; from treering.cli.main import run; "
               f"code = run(['step', {str(toy)!r}, '--layout', 'dp=2,tp=2']); "
               "sys.exit(code or 'mpi4py.MPI' in sys.modules)")
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
