"""A job that a YAML file describes: what it may say, what it takes over, and how mistakes are told."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from advisor_core.cli.sample import sample
from advisor_core.sample import SCENARIOS, job_file, job_from, write_sample
from advisor_core.sample.causes import CAUSES, SlowLoader, Unfused
from advisor_core.sample.job import simulate
from advisor_core.sample.job_file import JobFileError
from advisor_core.sample.layout import Layout

JOB = """\
like: healthy-compact
training: {steps: 2, model: {layers: 4}}
layout: {ranks: 4, pp: 2}
chip: {mhz: 1650}
causes:
  - unfused-swiglu
  - slow-data-loader: {loading_ns: 40000000, ranks: [3], dose: 0.5}
"""


def described(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "our-job.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_says_what_is_other_than_in_the_job_that_it_is_like(tmp_path: Path) -> None:
    job = job_from(described(tmp_path, JOB))
    like = SCENARIOS["healthy-compact"].job
    assert (job.name, job.ranks, job.steps) == ("our-job", 4, 2)
    assert job.job.layout == Layout(data=2, pipeline=2)
    assert job.causes == (Unfused("swiglu"), SlowLoader(40_000_000, (3,), dose=0.5))
    assert (job.training.shape.layers, job.training.shape.hidden) == (4, like.training.shape.hidden)
    assert {rank.mhz for rank in job.job.ranks} == {1650}
    assert "4 ranks with an unfused SwiGLU and a slow data loader" in job.description.en


def test_the_example_of_the_documentation_is_a_job(tmp_path: Path) -> None:
    example = re.search(r"\n\n((?:    .*\n)+)", job_file.__doc__ or "")
    assert example
    job = job_from(described(tmp_path, re.sub("(?m)^    ", "", example.group(1))))
    assert len(simulate(replace(job, job=replace(job.job, training=replace(job.job.training, steps=1))), 0)) == 8


def test_the_job_without_its_causes_is_the_job_that_has_none(tmp_path: Path) -> None:
    job = job_from(described(tmp_path, JOB))
    both = job.without(["unfused-swiglu", "slow-data-loader@3"])
    assert both.causes == () and both.setup == job.job
    assert job.without(["slow-data-loader"]).causes == (Unfused("swiglu"),)
    for unknown in ("slow-data-loader@1", "fragmentation"):
        with pytest.raises(ValueError, match=f"no cause '{unknown}'; it has: unfused-swiglu, slow-data-loader"):
            job.without([unknown])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("training: {steps: 2}\n", "1:1: missing key 'model'"),
        ("training: {model: {}}\nvision: {}\n", "a job is one of .*; this is training and vision"),
        ("like: healthy-compacter\n", "1:7: there is no scenario 'healthy-compacter'"),
        ("like: healthy-compact\nlayuot: {dp: 2}\n", r"2:1: unknown key 'layuot' \(did you mean 'layout'\?\)"),
        (
            "like: healthy-compact\ntraining: {modle: {layers: 1}}\n",
            r"2:12: unknown key 'modle' \(did you mean 'model'\?\)",
        ),
        ("like: healthy-compact\ntraining: {steps: two}\n", '2:19: expected a whole number, found "two"'),
        ("like: healthy-compact\nlayout: {ranks: 5, tp: 2}\n", "2:9: tp x pp x dp is 4, not the 5 ranks"),
        ("like: healthy-compact\nlayout: {dp: 3, ep: 2}\n", "2 parts of the experts do not divide 3"),
        ("like: healthy-compact\nlayout: {pp: 4}\n", r"2:9: 4 stages of \(1, 1, 1, 1\) layers for a model of 6"),
        ("like: healthy-compact\nlayout: {tp: 3}\n", "2:9: 3 tensor-parallel ranks do not divide 8"),
        ("like: healthy-moe\nlayout: {dp: 4}\n", "2:9: experts need an ep of more than 1"),
        ("like: healthy-decode\nlayout: {tp: 2}\n", "2:9: only training is spread by tp, pp or ep"),
        ("like: healthy-compact\ntraining: {steps: 0}\n", "2:19: .*greater than 0"),
        ("like: healthy-compact\nchip: {mhz: 0}\n", "2:13: .*greater than 0"),
        ("like: healthy-compact\ncauses:\n- slow-python: {ns: -5}\n", "3:21: slow-python: ns: .*greater than or equal"),
        (
            "like: healthy-pipeline\ncauses:\n- pipeline-stage-imbalance: {layers: [4, 4, 4]}\n",
            "4 stages of \\(4, 4, 4\\)",
        ),
        ("like: healthy-pipeline\ncauses:\n- pipeline-bubble: {fewer: 64}\n", "there are only 48 micro-batches"),
        ("like: healthy-compact\nphysics: {contention: [0.4, 0.1]}\n", "2:10: contention is two shares"),
        (
            "like: healthy-compact\ncauses: [unfused-swiglo]\n",
            r"2:10: there is no cause 'unfused-swiglo' \(did you mean 'unfused-swiglu'\?\)",
        ),
        ("like: healthy-compact\ncauses:\n- slow-data-loader\n", "3:3: slow-data-loader: loading_ns: Field required"),
        ("like: healthy-compact\ncauses:\n- slow-python: {ns: 1, size: 2}\n", "3:24: slow-python: unknown key 'size'"),
        ("like: healthy-compact\ncauses:\n- slow-python: {ns: 1, layer: runtime}\n", "unknown key 'layer'"),
        ("like: healthy-compact\ncauses:\n- slow-link: {pair: [0, 7], slowdown: 2.0}\n", "the job has no rank 7"),
        ("like: healthy-compact\ncauses:\n- slow-reward: {ns: 1}\n", "only reinforcement learning has rewards"),
        ("like: healthy-cnn\ncauses: [unfused-swiglu]\n", "a recorded program does not have what"),
        ("recorded_serving: {program: llama-decode}\nlayout: {dp: 2}\n", "that generates tokens runs on one rank"),
        ("recorded: {program: llama}\nlayout: {tp: 2}\n", "2:9: 'llama' was recorded with a tp of 1"),
        ("recorded: {program: llama-tp2}\nlayout: {tp: 4}\n", "2:9: 'llama-tp2' was recorded with a tp of 2"),
        ("recorded: {program: qwen3-moe}\nlayout: {dp: 2, ep: 2}\n", "recorded programs are spread by tp, pp and dp"),
        ("recorded: {program: gpt2}\nlayout: {pp: 2}\n", "2:9: .*two share a weight"),
        ("like: healthy-compact\ncauses:\n- launch-blocking: {dose: 0.5}\n", "either there or not"),
        ("like: healthy-compact\ncauses:\n- slow-python: {ns: 9000, dose: 0}\n", "a dose is more than 0 and at most 1"),
        ("like: healthy-compact\ntraining: {steps: 2, steps: 3}\n", "key 'steps' is given twice"),
        ("- 1\n", "a job is a mapping"),
        ("like: healthy-cnn\n---\nlike: healthy-cnn\n", "has 2 documents"),
    ],
)
def test_a_mistake_is_told_with_its_file_and_place(tmp_path: Path, text: str, said: str) -> None:
    path = described(tmp_path, text)
    with pytest.raises(JobFileError) as caught:
        job_from(path)
    assert re.search(f"^{re.escape(str(path))}:.*{said}", str(caught.value), re.MULTILINE), str(caught.value)


def test_every_cause_is_told_by_its_name_and_stands_in_the_catalogue() -> None:
    found = {cause.name for scenario in SCENARIOS.values() for cause in scenario.causes}
    assert found == set(CAUSES)
    for name, known in CAUSES.items():
        some = next(cause for job in SCENARIOS.values() for cause in job.causes if cause.name == name)
        assert type(some) is known.kind


def test_the_command_writes_a_job_and_leaves_causes_out(tmp_path: Path) -> None:
    path = described(tmp_path, JOB.replace("layout: {ranks: 4, pp: 2}\n", "").replace("ranks: [3]", "ranks: [1]"))
    for folder, options in (("all", []), ("cured", ["--without", "slow-data-loader@1", "--without", "unfused-swiglu"])):
        done = CliRunner().invoke(sample, [str(tmp_path / folder), "--job", str(path), *options])
        assert done.exit_code == 0, done.output
        assert len(done.output.splitlines()) == 2
    healthy = described(tmp_path, JOB.partition("causes:")[0].replace("layout: {ranks: 4, pp: 2}\n", ""))
    wanted = write_sample(tmp_path / "healthy", scenario=job_from(healthy))
    for export in wanted:
        kernels = "ASCEND_PROFILER_OUTPUT/kernel_details.csv"
        assert (tmp_path / "cured" / export.name / kernels).read_bytes() == (export / kernels).read_bytes()
        assert (tmp_path / "all" / export.name / kernels).read_bytes() != (export / kernels).read_bytes()


def test_the_command_tells_mistakes_and_writes_nothing(tmp_path: Path) -> None:
    path = described(tmp_path, "like: healthy-compact\nsteps: 2\n")
    for options, said in (
        (["--job", str(path)], "our-job.yaml:2:1: unknown key 'steps'"),
        (["--job", str(path), "--scenario", "no-overlap"], "two ways to choose one job"),
        (["--scenario", "no-overlap", "--without", "leak"], "no cause 'leak'"),
    ):
        done = CliRunner().invoke(sample, [str(tmp_path / "out"), *options])
        assert (done.exit_code, (tmp_path / "out").exists()) == (2, False)
        assert said in done.output


def test_a_job_of_a_name_is_the_same_whether_a_file_or_the_catalogue_describes_it(tmp_path: Path) -> None:
    path = tmp_path / "slow-python.yaml"
    path.write_text("like: slow-python\n", encoding="utf-8")
    (one,), (other,) = simulate(job_from(path), 0), simulate(SCENARIOS["slow-python"], 0)
    assert [(task.start, task.end) for task in one.tasks] == [(task.start, task.end) for task in other.tasks]
