"""Sizes, ranks, names and result files as they are typed."""

import click
import pytest
from click.testing import CliRunner

from treering.cli.options import ALGORITHM, COLLECTIVE, RANKS, SIZES, parse_ranks, parse_size, parse_sizes, results_options


@pytest.mark.parametrize("text, size", [
    ("0", 0), ("17", 17), ("1k", 1024), ("1K", 1024), ("64M", 64 * 2**20), ("64m", 64 * 2**20), ("2G", 2 * 2**30),
])
def test_sizes_are_in_powers_of_1024_in_either_case(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "-1", "1.5K", "64MB", "K", "1 K", "٣"])
def test_what_is_no_size_is_refused_by_name(text):
    with pytest.raises(ValueError, match="is not a size"):
        parse_size(text)


@pytest.mark.parametrize("text, sizes", [
    ("8", (8,)),
    ("0,1,17,1K", (0, 1, 17, 1024)),
    ("4:64M:4", tuple(4 ** k for k in range(1, 14))),
    ("4:100:5", (4, 20, 100)),
    ("4:99:5", (4, 20)),
    ("8:8:2", (8,)),
    ("0,1:4:2", (0, 1, 2, 4)),
])
def test_sizes_are_one_a_list_or_a_range(text, sizes):
    assert parse_sizes(text) == sizes


@pytest.mark.parametrize("text", ["4:64M", "0:8:2", "8:4:2", "4:8:1", "4:8:x", "1:2:3:4", "1,,2", "4:8:-2"])
def test_ranges_that_never_end_or_never_start_are_refused(text):
    with pytest.raises(ValueError):
        parse_sizes(text)


@pytest.mark.parametrize("text, ranks", [
    ("4", (4,)), ("1-4", (1, 2, 3, 4)), ("1,2,5-8", (1, 2, 5, 6, 7, 8)), ("5-6,1,5", (1, 5, 6)),
])
def test_ranks_are_numbers_and_ranges(text, ranks):
    assert parse_ranks(text) == ranks


@pytest.mark.parametrize("text, said", [
    ("0", "at least one"), ("0-3", "at least one"), ("8-1", "ends before"), ("a", "not a number"), ("", "not a number"),
    ("1-", "not a number"), ("-4", "not a number"),
])
def test_what_is_no_number_of_ranks_is_refused(text, said):
    with pytest.raises(ValueError, match=said):
        parse_ranks(text)


@click.command()
@click.argument("collective", type=COLLECTIVE)
@click.argument("algorithm", type=ALGORITHM, required=False)
@click.option("-b", type=SIZES, default="1K")
@click.option("-n", type=RANKS, default=(2, 3))
def typed(collective, algorithm, b, n):
    print(collective, algorithm and algorithm[0].name, b, n)


def said(*words):
    return CliRunner().invoke(typed, words).output


@pytest.mark.parametrize("name", ["allreduce", "all-reduce", "All_Reduce", "ALLREDUCE"])
def test_spellings_of_a_collective_are_printed_one_way(name):
    assert said(name) == "all-reduce None (1024,) (2, 3)\n"


def test_an_algorithm_belongs_to_the_collective_before_it():
    assert said("allreduce", "Ring", "-b", "4:16:2", "-n", "1-3") == "all-reduce ring (4, 8, 16) (1, 2, 3)\n"


@pytest.mark.parametrize("words, answer", [
    (["allredcue"], "all-reduce"),
    (["bcast", "rang"], "broadcast has no algorithm"),
    (["bcast", "-b", "1KB"], "'1KB' is not a size"),
])
def test_errors_name_the_word_and_what_there_is(words, answer):
    assert answer in said(*words)


@pytest.fixture
def results():
    @click.command()
    @results_options
    def command(json, force):
        print(json, force)

    return lambda *words: CliRunner().invoke(command, words)


def test_a_result_file_that_exists_is_refused_at_once_unless_forced(results, tmp_path):
    path = tmp_path / "out.json"
    assert results("--json", str(path)).output == f"{path} False\n"
    path.touch()
    refused = results("--json", str(path))
    assert refused.exit_code == 2
    assert "--force" in refused.output
    assert results("--json", str(path), "--force").output == results("--force", "--json", str(path)).output == f"{path} True\n"
