"""The number of files that one release enters is counted, and does not grow unnoticed."""

from tools.walk import Walk, walks

FIRST, FURTHER, READ = 64, 53, 24


def test_a_release_enters_no_more_files_than_it_did() -> None:
    first, further, read = walks()
    assert len(further.files) <= FURTHER
    assert len(first.files) <= FIRST
    assert len(read.files) <= READ, "to the interfaces of the extension points"
    assert next(iter(first.files)) == "gate/vault.py"


def test_a_walk_sees_the_files_of_what_it_follows() -> None:
    from privcfs.public.epsilon import parse_epsilon

    assert list(Walk().follow(lambda: parse_epsilon("1")).files) == ["public/epsilon.py"]
