import json
import subprocess
from pathlib import Path

import pytest

from app.cli import main
from app.cli.launch_env import _text_of


def run(*arguments: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["launch-env", *arguments])
    assert ended.value.code == 0


def test_a_shell_takes_the_lines_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "it's here"
    run("--crash-dump-folder", str(folder))
    printed = capsys.readouterr()
    script = tmp_path / "env.sh"
    script.write_text(printed.out + 'printf %s "$CUDA_COREDUMP_FILE"\n')
    shown = subprocess.run(["sh", str(script)], check=True, capture_output=True, text=True)
    assert shown.stdout == f"{folder}/%h/core.cuda.%t.%p"
    assert "# add to the start command: --crash-dump-folder" in printed.out
    assert f"folder {folder}: made" in printed.err
    assert folder.is_dir()


def test_what_is_set_is_kept_and_said_on_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    existing = tmp_path / "env"
    existing.write_text("CUDA_COREDUMP_PIPE=/run/pipe.%p\nHF_TOKEN=hf_secret\n")
    run("--crash-dump-folder", str(tmp_path / "d"), "--existing", str(existing))
    printed = capsys.readouterr()
    assert "CUDA_COREDUMP_PIPE" not in printed.out
    assert "kept: CUDA_COREDUMP_PIPE=/run/pipe.%p" in printed.err
    assert "hf_secret" not in printed.out + printed.err


def test_json_is_one_document(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    run("--crash-dump-folder", str(tmp_path), "--sglang-version", "0.5.23", "--json")
    told = json.loads(capfdbinary.readouterr().out)
    assert told["environment"]["CUDA_ENABLE_USER_TRIGGERED_COREDUMP"] == "1"
    assert told["folders"][0] == {"path": str(tmp_path), "state": "there already"}
    assert told["flags"] == [f"--crash-dump-folder {tmp_path}", "--enable-metrics"]


def test_a_folder_that_cannot_be_made_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    run("--crash-dump-folder", str(tmp_path / "file" / "d"))
    assert "not made: Not a directory" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["launch-env", "--crash-dump-folder", "/d", "--existing", str(tmp_path / "none")])
    assert ended.value.code == 1
    assert "cannot be read" in capsys.readouterr().err
    assert not Path("/d").exists()


def test_a_version_that_is_none_is_a_mistake_of_the_caller(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["launch-env", "--crash-dump-folder", str(tmp_path), "--sglang-version", "newest"])
    assert ended.value.code == 2


def test_without_a_file_nothing_is_set_already() -> None:
    assert _text_of(None) == ""
