"""Hostfiles in every style, and what is wrong with a line."""

from pathlib import Path

import pytest

from treering.core.errors import Refused
from treering.running.hostfile import parse_hostfile, read_hostfile
from treering.running.hosts import Host, total_slots

EXAMPLES = Path(__file__).parents[1] / "hostfiles"


@pytest.mark.parametrize("line, hosts", [
    ("node1 slots=2 max_slots=4", [Host("node1", 2, 4)]),
    ("node1 slots = 2", [Host("node1", 2)]),
    ("node1 max-slots=3", [Host("node1", 1, 3)]),
    ("node1:2", [Host("node1", 2)]),
    ("node1", [Host("node1", 1)]),
    ("  node1:2   # the fast one", [Host("node1", 2)]),
    ("user@node1.cluster.org:2", [Host("user@node1.cluster.org", 2)]),
    ("10.0.0.7:8", [Host("10.0.0.7", 8)]),
    ("fe80::1", [Host("fe80::1", 1)]),
    ("2001:db8::2 slots=3", [Host("2001:db8::2", 3)]),
    ("[2001:db8::2]:3", [Host("2001:db8::2", 3)]),
    ("[::1]", [Host("::1", 1)]),
    ("node[01-02]", [Host("node01"), Host("node02")]),
    ("node[01-02]:4", [Host("node01", 4), Host("node02", 4)]),
    ("node[1,3] slots=2", [Host("node1", 2), Host("node3", 2)]),
])
def test_styles_of_a_line(line, hosts):
    assert parse_hostfile(line) == tuple(hosts)


def test_comments_and_empty_lines_are_skipped_and_hosts_named_again_add_up():
    text = "# ours\n\na slots=2\nb\n  \na\r\na:3 # again\n"
    assert parse_hostfile(text) == (Host("a", 6), Host("b", 1))
    assert total_slots(parse_hostfile(text)) == 7


@pytest.mark.parametrize("line, said", [
    ("node1 slots=0", "slots must be a number of at least 1, not '0'"),
    ("node1 slots=two", "not 'two'"),
    ("node1 slots=", "not ''"),
    ("node1:", "not ''"),
    ("node1:x", "not 'x'"),
    ("node1:2 slots=3", "slots is given twice"),
    ("node1 cores=4", "unknown setting 'cores=4'"),
    ("node1 node2", "unknown setting 'node2'"),
    ("node!", "'node!' is not the name of a host"),
    ("-n", "'-n' is not the name of a host"),
    ("node[3-1]", "not a range of nodes: '3-1'"),
    (":4", "no host is named"),
    ("slots=4", "is not the name of a host"),
])
def test_a_bad_line_is_named_with_its_number(line, said):
    with pytest.raises(Refused) as refused:
        parse_hostfile(f"good\n# comment\n{line}\n", "my-hosts")
    assert str(refused.value).startswith("my-hosts, line 3: ")
    assert said in str(refused.value)
    assert str(refused.value).endswith(f": {line!r}")


def test_a_file_without_hosts_or_with_too_many_slots_is_refused():
    with pytest.raises(Refused, match="names no host"):
        parse_hostfile("# nothing\n")
    with pytest.raises(Refused, match="a has 5 slots but at most 4"):
        parse_hostfile("a slots=3 max_slots=4\na slots=2\n")


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(Refused, match="cannot read the hostfile"):
        read_hostfile(tmp_path / "nowhere")
    (tmp_path / "picture").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(Refused, match="cannot read the hostfile"):
        read_hostfile(tmp_path / "picture")


@pytest.mark.parametrize("name", ["openmpi", "mpich", "slurm"])
def test_the_examples_take_four_ranks(name):
    assert total_slots(read_hostfile(EXAMPLES / name)) == 4
