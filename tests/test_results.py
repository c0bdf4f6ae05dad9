"""Result files: what they say, and that they are never lost or half written."""

import csv
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from treering import __version__
from treering.core.errors import Refused
from treering.measuring.results import header, write_csv, write_json


@dataclass
class Row:
    name: str
    sizes: tuple[int, ...]


def test_json_holds_what_was_given(tmp_path):
    path = tmp_path / "out.json"
    payload = {"row": Row("ring", (1, 2)), "time": np.float32(0.5), "counts": np.arange(3), "at": Path("a"), "n": {2, 1}}
    write_json(path, payload)
    assert json.loads(path.read_text()) == {
        "row": {"name": "ring", "sizes": [1, 2]}, "time": 0.5, "counts": [0, 1, 2], "at": "a", "n": [1, 2]}


def test_a_file_that_exists_is_only_overwritten_by_force(tmp_path):
    path = tmp_path / "out.json"
    write_json(path, 1)
    with pytest.raises(Refused, match="--force"):
        write_json(path, 2)
    assert json.loads(path.read_text()) == 1
    write_json(path, 2, force=True)
    assert json.loads(path.read_text()) == 2


@pytest.mark.parametrize("payload", [{"time": float("nan")}, {"what": object()}])
def test_what_json_cannot_say_leaves_no_file(tmp_path, payload):
    with pytest.raises((TypeError, ValueError)):
        write_json(tmp_path / "out.json", payload)
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "out.json"
    write_json(path, "old")

    def no_space(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(Path, "replace", no_space)
    with pytest.raises(Refused, match="No space left"):
        write_json(path, "new", force=True)
    assert json.loads(path.read_text()) == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(Refused, match="cannot write"):
        write_json(tmp_path / "nowhere" / "out.json", 1)


def test_result_files_have_the_permissions_of_any_new_file(tmp_path):
    write_json(tmp_path / "ours.json", 1)
    (tmp_path / "any").touch()
    assert (tmp_path / "ours.json").stat().st_mode == (tmp_path / "any").stat().st_mode


def test_csv_has_one_row_each(tmp_path):
    rows = [{"name": "ring", "time": 0.5}, {"name": "a, b", "time": 1.0}]
    write_csv(tmp_path / "out.csv", rows)
    with (tmp_path / "out.csv").open(newline="") as file:
        assert list(csv.DictReader(file)) == [{"name": "ring", "time": "0.5"}, {"name": "a, b", "time": "1.0"}]
    with pytest.raises(Refused):
        write_csv(tmp_path / "out.csv", rows)


def test_the_header_says_what_changes_runs_and_no_secret():
    environ = {
        "OMPI_MCA_pml": "ob1", "UCX_TLS": "tcp", "OMP_NUM_THREADS": "1", "AWS_SECRET_ACCESS_KEY": "s3cret", "HOME": "/h",
        "SLURM_JWT": "s3cret", "I_MPI_INFO_VEND": "3",
    }
    head = header(["-n", "4", "verify", "a b"], environ)
    assert head["environment"] == {"OMPI_MCA_pml": "ob1", "OMP_NUM_THREADS": "1", "UCX_TLS": "tcp"}
    assert head["command"] == "treering -n 4 verify 'a b'"
    assert head["treering"] == __version__
    assert "s3cret" not in json.dumps(head)
