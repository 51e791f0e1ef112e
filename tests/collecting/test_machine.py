"""The script of `advisor collect --check` on machines that lack one thing each. It runs apart from this package."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from advisor_core.cli.main import cli
from advisor_core.collecting.machine.script import script, texts

TORCH = "__version__ = '2.6.0'\n"
TORCH_NPU = """
import sys, types, pathlib, torch
__version__ = '{version}'
torch.npu = types.SimpleNamespace(is_available=lambda: {count} > 0, device_count=lambda: {count})
class _One:
    def npu(self): return self
    def __matmul__(self, other): return self
    def sum(self): return self
    def item(self): return 1
torch.ones = lambda *shape: _One()
class _Profile:
    def __init__(self, activities, on_trace_ready): self.folder = on_trace_ready
    def __enter__(self): return self
    def __exit__(self, *error):
        data = pathlib.Path(self.folder, 'host_1_ascend_pt', 'PROF_000001_1_A', 'device_0', 'data')
        data.mkdir(parents=True)
        (data / 'stars.data').write_bytes(b'{recorded}')
profiler = types.SimpleNamespace(
    ProfilerActivity=types.SimpleNamespace(CPU=0, NPU=1),
    tensorboard_trace_handler=lambda folder, analyse_flag: folder,
    profile=_Profile,
)
"""
"""What stands for torch_npu: it has ``count`` devices, and a trial leaves ``recorded``."""


class Machine:
    """A machine that is sound, in a folder; a test takes something away."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.environment = folder, {"PATH": str(folder / "bin"), "PYTHONPATH": str(folder / "packages")}
        for name in ("bin", "packages", "dev", "cann/x86_64-linux", "profile"):
            (folder / name).mkdir(parents=True)
        for name in ("davinci0", "davinci1", "davinci_manager", "devmm_svm", "hisi_hdc"):
            (folder / "dev" / name).touch()
        self.file("driver", "Version=25.0.rc1\n")
        self.file("cann/x86_64-linux/ascend_toolkit_install.info", "package_name=toolkit\nversion=8.2.RC1\n")
        for name in ("npu-smi", "msprof"):
            self.file(f"bin/{name}", "#!/bin/sh\necho fine\n").chmod(0o755)
        self.environment["ASCEND_HOME_PATH"] = str(folder / "cann")
        self.file("packages/torch.py", TORCH)
        self.torch_npu()

    def file(self, name: str, content: str) -> Path:
        path = self.folder / name
        path.write_text(content, encoding="utf-8")
        return path

    def torch_npu(self, version: str = "2.6.0.post1", count: int = 2, recorded: str = "x") -> None:
        content = TORCH_NPU.replace("{version}", version).replace("{count}", str(count)).replace("{recorded}", recorded)
        self.file("packages/torch_npu.py", content)

    def says(self, lang: str = "en", library: str = "libc.so.6", seconds: int = 120) -> tuple[dict[str, str], int]:
        """The state of each line by its text, and the exit code."""
        text = script(lang).replace('DEVICES = "/dev"', f"DEVICES = {str(self.folder / 'dev')!r}")
        text = text.replace(
            'DRIVER = "/usr/local/Ascend/driver/version.info"', f"DRIVER = {str(self.folder / 'driver')!r}"
        )
        text = text.replace('"/usr/local/Ascend/', f'"{self.folder}/').replace('libascendcl.so")', f'{library}")')
        text = text.replace("SECONDS = 120", f"SECONDS = {seconds}")
        program = self.file("check_machine.py", text)
        done = subprocess.run(
            [sys.executable, str(program), str(self.folder / "profile" / "new")],
            capture_output=True,
            text=True,
            env=self.environment,
            check=False,
        )
        assert done.stderr == ""
        return {
            line[7:]: line[1:5].strip() for line in done.stdout.splitlines() if line.startswith("[")
        }, done.returncode


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def without(name: str) -> Callable[[Machine], None]:
    return lambda machine: (machine.folder / name).unlink()


def unset(machine: Machine) -> None:
    del machine.environment["ASCEND_HOME_PATH"]
    (machine.folder / "ascend-toolkit").mkdir()
    machine.file("ascend-toolkit/set_env.sh", "")


def hide(machine: Machine) -> None:
    machine.environment["ASCEND_RT_VISIBLE_DEVICES"] = "7"
    machine.torch_npu(count=0)


def gone(machine: Machine) -> None:
    machine.environment["ASCEND_HOME_PATH"] = "/nowhere"


def no_chips(machine: Machine) -> None:
    for name in ("davinci0", "davinci1"):
        (machine.folder / "dev" / name).unlink()


LACKS: Mapping[str, tuple[Callable[[Machine], object], str, int]] = {
    "no_driver": (without("driver"), "warn", 0),
    "no_npu_smi": (without("bin/npu-smi"), "warn", 0),
    "npu_smi_fails": (lambda machine: machine.file("bin/npu-smi", "#!/bin/sh\necho bad\nexit 8\n"), "fail", 1),
    "no_nodes": (no_chips, "fail", 1),
    "absent_nodes": (without("dev/hisi_hdc"), "warn", 0),
    "not_sourced": (unset, "fail", 1),
    "no_cann": (lambda machine: machine.environment.pop("ASCEND_HOME_PATH"), "fail", 1),
    "cann_gone": (gone, "fail", 1),
    "no_msprof": (without("bin/msprof"), "warn", 0),
    "no_package": (without("packages/torch_npu.py"), "fail", 1),
    "broken_package": (
        lambda machine: machine.file("packages/torch_npu.py", "raise OSError('x.so')") and None,
        "fail",
        1,
    ),
    "not_a_pair": (lambda machine: machine.torch_npu(version="2.5.1"), "fail", 1),
    "no_device": (lambda machine: machine.torch_npu(count=0), "fail", 1),
    "hidden": (hide, "fail", 1),
    "trial_empty": (lambda machine: machine.torch_npu(recorded=""), "fail", 1),
}


def pattern(name: str, lang: str) -> re.Pattern[str]:
    """What the text of this id may be filled to."""
    return re.compile(re.sub(r"\\{\w+\\}", ".*", re.escape(texts()[name].of(lang))))


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_sound_machine_is_ready(machine: Machine, lang: str) -> None:
    lines, code = machine.says(lang)
    assert code == 0 and set(lines.values()) == {"ok"}
    for name in ("driver", "npu_smi", "nodes", "cann", "library", "msprof", "package", "device", "trial", "disk"):
        assert any(pattern(name, lang).fullmatch(line) for line in lines), name


def test_warnings_behind_an_answer_are_no_answer(machine: Machine) -> None:
    warns = "import atexit, os, sys\nsys.stdout.reconfigure(line_buffering=True)\n"
    machine.file("packages/torch.py", TORCH + warns + "atexit.register(os.write, 2, b'[W] left at exit\\n')\n")
    lines, code = machine.says()
    assert code == 0 and "torch 2.6.0 can be imported" in lines and "torch_npu sees 2 devices" in lines


def test_a_command_that_does_not_end_is_no_answer_of_the_driver(machine: Machine) -> None:
    machine.file("bin/npu-smi", "#!/bin/sh\nexec /bin/sleep 30\n")
    lines, code = machine.says(seconds=1)
    assert code == 1 and any("(1 s: no answer)" in line for line in lines)


@pytest.mark.parametrize("name", LACKS)
def test_what_is_lacking_is_named(machine: Machine, name: str) -> None:
    take, state, code = LACKS[name]
    take(machine)
    lines, ended = machine.says()
    assert ended == code
    assert [of for line, of in lines.items() if pattern(name, "en").fullmatch(line)] == [state]
    assert [line for line, of in lines.items() if of != "ok" and not pattern(name, "en").fullmatch(line)] == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open everything")
def test_rights_are_asked_of_the_system(machine: Machine) -> None:
    (machine.folder / "dev" / "davinci1").chmod(0)
    lines, code = machine.says()
    assert code == 1 and any(pattern("closed_nodes", "en").fullmatch(line) for line in lines)


def test_a_library_that_is_missing_is_named(machine: Machine) -> None:
    lines, code = machine.says(library="libnothing_of_the_kind.so")
    assert code == 1 and any(pattern("no_library", "en").fullmatch(line) for line in lines)


def test_on_a_machine_with_nothing_of_it_the_script_says_so(tmp_path: Path) -> None:
    program = tmp_path / "check_machine.py"
    program.write_text(CliRunner().invoke(cli, ["collect", "--check"]).output, encoding="utf-8")
    empty = {"PATH": "", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-S", str(program)], capture_output=True, text=True, env=empty, cwd=tmp_path, check=False
    )
    assert done.returncode == 1 and done.stderr == ""
    assert "[fail] torch is not installed" in done.stdout


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_script_needs_python_3_7_alone(lang: str) -> None:
    tree = ast.parse(script(lang), feature_version=(3, 7))
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert imported and imported <= sys.stdlib_module_names


def test_every_text_is_said_and_has_its_fields_in_both_languages() -> None:
    source = script("en").split("SAID = ")[1].split("\n}\n")[1]
    for name, text in texts().items():
        assert name == "comment" or f'"{name}"' in source, name
        assert sorted(re.findall(r"{(\w+)}", text.en)) == sorted(re.findall(r"{(\w+)}", text.zh))


@pytest.mark.parametrize("more", [["--for", "torch"], ["--for", "torch_npu"]])
def test_it_takes_nothing_besides(more: list[str]) -> None:
    assert CliRunner().invoke(cli, ["collect", "--check", *more]).exit_code == 2
