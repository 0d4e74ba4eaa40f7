"""Where settings come from, which of them wins, and the one clear error that each bad one gets."""

import math
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from paceline import Paceline, PacelineError, StoreError, UsageError
from paceline.config import DEFAULT_STORE, Settings, current, load
from paceline.opening import open_store, path_of

SECOND = 1_000_000


def loaded(folder: Path, environment: Mapping[str, str] | None = None, **said: object) -> Settings:
    return load(folder, environment or {}, said)


def test_without_any_word_everything_has_its_default(tmp_path: Path) -> None:
    assert loaded(tmp_path) == Settings()
    assert loaded(tmp_path).store == DEFAULT_STORE == "sqlite:///.paceline/paceline.db"


def test_a_file_is_overruled_by_the_environment_and_that_by_the_program(tmp_path: Path) -> None:
    (tmp_path / "paceline.toml").write_text('slots = 1\nmax_pending = 2\ndrain = "3s"\n[limits]\ngpu = 4\n')
    environment = {"PACELINE_SLOTS": "10", "PACELINE_MAX_PENDING": "20"}
    settings = loaded(tmp_path, environment, slots=100)
    assert (settings.slots, settings.max_pending, settings.drain) == (100, 20, 3 * SECOND)
    assert settings.limits == {"gpu": 4}


def test_a_project_file_counts_only_without_a_file_of_our_own(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.other]\nslots = 1\n[tool.paceline]\nslots = 7\n")
    assert loaded(tmp_path).slots == 7
    (tmp_path / "paceline.toml").write_text("max_pending = 5\n")
    assert (loaded(tmp_path).slots, loaded(tmp_path).max_pending) == (1_000, 5)


def test_a_project_file_of_somebody_else_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n')
    assert loaded(tmp_path) == Settings()


def test_a_byte_order_mark_and_windows_line_ends_change_nothing(tmp_path: Path) -> None:
    (tmp_path / "paceline.toml").write_bytes(b"\xef\xbb\xbfslots = 3\r\n")
    assert loaded(tmp_path).slots == 3


def test_an_empty_variable_says_nothing_and_spaces_around_a_word_do_not_count(tmp_path: Path) -> None:
    assert loaded(tmp_path, {"PACELINE_SLOTS": "", "PACELINE_MAX_PENDING": " 12 "}) == Settings(max_pending=12)


@pytest.mark.parametrize(
    ("text", "shares"),
    [("true", True), ("1", True), ("on", True), ("YES", True), ("False", False), ("0", False), ("off", False),
     ("no", False)],
)  # fmt: skip
def test_a_switch_has_its_usual_words(tmp_path: Path, text: str, shares: bool) -> None:
    assert loaded(tmp_path, {"PACELINE_WORK_SHARING": text}).work_sharing is shares
    (tmp_path / "paceline.toml").write_text(f"work_sharing = {str(shares).lower()}\n")
    assert loaded(tmp_path).work_sharing is shares


def test_variables_that_name_no_setting_are_not_ours_to_judge(tmp_path: Path) -> None:
    assert loaded(tmp_path, {"PACELINE_DEBUG": "1", "PACELINE_LIMITS": "x"}) == Settings()


def test_what_the_program_leaves_open_does_not_overrule_anybody(tmp_path: Path) -> None:
    assert loaded(tmp_path, {"PACELINE_SLOTS": "9"}, slots=None, store=None).slots == 9


def test_the_settings_of_a_process_come_from_its_folder_and_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PACELINE_DRAIN", "1m")
    (tmp_path / "paceline.toml").write_text("slots = 2\n")
    assert (current().drain, current().slots, current(slots=5).slots) == (60 * SECOND, 2, 5)


def refusal(error: PacelineError, code: str, says: tuple[str, ...]) -> None:
    line = str(error)
    assert (error.code, error.exit_code) == (code, 2), line
    assert [fact for fact in says if fact not in line] == [], line
    assert line.isprintable()
    assert error.__context__ is None or error.__suppress_context__


SAID = [
    ({"slots": 0}, "bad_setting", ("slots", "found: 0", "1 to 100,000", "arguments")),
    ({"slots": -1}, "bad_setting", ("slots", "-1")),
    ({"slots": 10**400}, "bad_setting", ("slots",)),
    ({"slots": True}, "bad_setting", ("slots", "True")),
    ({"slots": "12"}, "bad_setting", ("slots", "'12'", "integer")),
    ({"slots": 2.5}, "bad_setting", ("slots", "2.5")),
    ({"slots": math.nan}, "bad_setting", ("slots", "nan")),
    ({"max_pending": 0}, "bad_setting", ("max_pending",)),
    ({"heartbeat": 0}, "bad_duration", ("heartbeat (arguments)", "too short", "100 ms")),
    ({"heartbeat": math.nan}, "bad_duration", ("heartbeat", "nan")),
    ({"heartbeat": "-1s"}, "bad_duration", ("heartbeat", "negative")),
    ({"heartbeat": "15"}, "bad_duration", ("heartbeat", "no unit")),
    ({"dead_after": "1s"}, "bad_duration", ("dead_after", "too short", "2 s")),
    ({"dead_after": "1h"}, "bad_duration", ("dead_after", "too long", "10m")),
    ({"dead_after": "15s"}, "bad_setting", ("longer than heartbeat", "15 s")),
    ({"drain": "300 years"}, "bad_duration", ("drain", "years")),
    ({"synchronous": "off"}, "bad_setting", ("synchronous", "'off'", "full, normal")),
    ({"synchronous": 1}, "bad_setting", ("synchronous", "found: 1")),
    ({"work_sharing": "off"}, "bad_setting", ("work_sharing", "'off'", "true or false")),
    ({"work_sharing": 1}, "bad_setting", ("work_sharing", "found: 1")),
    ({"store": 5}, "bad_setting", ("store", "found: 5")),
    ({"limits": 5}, "bad_setting", ("limits", "found: 5", "table")),
    ({"limits": {"gpu": 0}}, "bad_setting", ("limits.gpu", "found: 0")),
    ({"limits": {"gpu": True}}, "bad_setting", ("limits.gpu", "True")),
    ({"limits": {"gpu": math.nan}}, "bad_setting", ("limits.gpu", "nan")),
    ({"slot": 5}, "unknown_setting", ("'slot'", "did you mean 'slots'?")),
    ({"a\x1b[31m": 5}, "unknown_setting", (r"\x1b",)),
]  # fmt: skip


@pytest.mark.parametrize("said, code, says", SAID)
def test_what_a_program_may_not_say(tmp_path: Path, said: dict[str, object], code: str, says: tuple[str, ...]) -> None:
    with pytest.raises(UsageError) as caught:
        load(tmp_path, {}, said)
    refusal(caught.value, code, says)
    assert list(tmp_path.iterdir()) == []


VARIABLES = [
    ("PACELINE_SLOTS", "abc", "bad_setting", ("slots", "'abc'", "integer")),
    ("PACELINE_SLOTS", "0", "bad_setting", ("slots", "0")),
    ("PACELINE_SLOTS", "1.5", "bad_setting", ("'1.5'",)),
    ("PACELINE_SLOTS", "+-5", "bad_setting", ("'+-5'",)),
    ("PACELINE_SLOTS", "²", "bad_setting", ("'²'",)),
    ("PACELINE_SLOTS", "9" * 5_000, "bad_setting", ("999",)),
    ("PACELINE_MAX_PENDING", "nan", "bad_setting", ("max_pending", "'nan'")),
    ("PACELINE_HEARTBEAT", "5", "bad_duration", ("heartbeat", "no unit")),
    ("PACELINE_DRAIN", "-5s", "bad_duration", ("drain", "negative")),
    ("PACELINE_WORK_SHARING", "maybe", "bad_setting", ("work_sharing", "'maybe'", "on, yes", "off, no")),
    ("PACELINE_WORK_SHARING", "2", "bad_setting", ("work_sharing", "'2'")),
    ("PACELINE_SYNCHRONOUS", "FULL\x1b[0m", "bad_setting", ("synchronous", r"\x1b")),
]


@pytest.mark.parametrize("name, value, code, says", VARIABLES)
def test_a_bad_variable_is_named(tmp_path: Path, name: str, value: str, code: str, says: tuple[str, ...]) -> None:
    with pytest.raises(UsageError) as caught:
        loaded(tmp_path, {name: value})
    refusal(caught.value, code, (f"environment {name}", *says))


FILES = [
    ("paceline.toml", b"slots = \nx", "bad_config", ("line 1",)),
    ("paceline.toml", b"slots = 1\nslots = 2\n", "bad_config", ("line 2", "overwrite")),
    ("paceline.toml", b"slots = 1\0", "bad_config", ("line 1", "column 10")),
    ("paceline.toml", b"\xff\xfes\0", "bad_config", ("decode", "position 0")),
    ("paceline.toml", b"limits = " + b"[" * 5_000, "bad_config", ()),
    ("paceline.toml", b"slots = nan\n", "bad_setting", ("slots", "nan")),
    ("paceline.toml", b"slot = 3\n", "unknown_setting", ("'slot'", "did you mean 'slots'?")),
    ("paceline.toml", b"[slots]\n", "bad_setting", ("slots", "{}")),
    ("paceline.toml", b"drain = 1979-05-27\n", "bad_duration", ("drain", "1979")),
    ("paceline.toml", b"[limits]\ngpu = '4'\n", "bad_setting", ("limits.gpu", "'4'")),
    ("pyproject.toml", b"[tool.paceline]\nslots = 0\n", "bad_setting", ("[tool.paceline]", "slots")),
    ("pyproject.toml", b"tool.paceline = 5\n", "bad_setting", ("[tool.paceline]", "5", "table")),
    ("pyproject.toml", b"[tool\n", "bad_config", ("line 1",)),
]


@pytest.mark.parametrize("name, content, code, says", FILES)
def test_a_bad_file_is_named_with_the_place(
    tmp_path: Path, name: str, content: bytes, code: str, says: tuple[str, ...]
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError) as caught:
        loaded(tmp_path)
    refusal(caught.value, code, (str(tmp_path / name), *says))


URLS = [
    ("", ("sqlite:///relative.db",)),
    ("work.db", ("found: work.db", "sqlite:///relative.db")),
    ("/var/lib/work.db", ("sqlite:////absolute.db",)),
    ("sqlite:work.db", ("sqlite:///relative.db",)),
    ("sqlite://work.db", ("three slashes", "sqlite:///work.db")),
    ("sqlite:///", ("folder", "paceline.db")),
    ("SQLITE:///work.db", ("sqlite:///relative.db",)),
    ("mysql://root:hunter2@host/db", ("what may hold a password", "postgresql://user@host/database")),
    ("host=localhost dbname=x password=hunter2", ("what may hold a password",)),
    ("sqlite:///a\0b.db", (r"\x00",)),
    ("sqlite:///a\nb.db", (r"\n",)),
    ("sqlite:///\ud800.db", (r"\ud800",)),
    ("sqlite:///\x1b[31m.db", (r"\x1b",)),
]


@pytest.mark.parametrize("url, says", URLS)
def test_a_url_that_names_no_store_is_refused_without_its_password(url: str, says: tuple[str, ...]) -> None:
    with pytest.raises(UsageError) as caught:
        path_of(url)
    refusal(caught.value, "bad_store", says)
    assert "hunter2" not in str(caught.value)


def test_a_url_names_a_file_by_its_slashes() -> None:
    assert path_of("sqlite:///work.db") == Path("work.db")
    assert path_of("sqlite:////var/lib/work.db") == Path("/var/lib/work.db")
    assert path_of("sqlite://") is None
    assert path_of("sqlite://:memory:") is None


def test_a_program_with_bad_settings_never_touches_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="bad_setting"):
        Paceline(slots=0)
    with pytest.raises(UsageError, match="bad_duration"):
        Paceline(heartbeat="soon")
    assert os.listdir(tmp_path) == []


def test_a_store_in_a_folder_that_does_not_exist_is_refused_and_no_folder_is_made(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        open_store(Settings(store=f"sqlite:///{tmp_path}/missing/work.db"))
    refusal(caught.value, "no_folder", (str(tmp_path / "missing"), "mkdir -p"))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("content, code", [(b"", "store_empty"), (b"this is no database, only text\n" * 200, "")])
def test_a_file_that_is_no_store_is_refused_and_stays_as_it_is(tmp_path: Path, content: bytes, code: str) -> None:
    file = tmp_path / "work.db"
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(StoreError) as caught:
        open_store(Settings(store=f"sqlite:///{file}"))
    line = str(caught.value)
    assert caught.value.exit_code == 1
    assert caught.value.code == (code or caught.value.code)
    assert str(file) in line
    assert line.isprintable()
    assert file.read_bytes() == content
