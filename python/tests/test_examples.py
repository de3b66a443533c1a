"""The examples of training, as programs: each ends with an error if its model has not learned."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import LEFT_OUT, environment

EXAMPLES = Path(__file__).parents[2] / "examples"
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
GLOO_RANK = Path(__file__).parent / "gloo_rank.py"

pytestmark = pytest.mark.skipif("torch" in LEFT_OUT, reason="torch was left out")


def output_of(name, *launcher):
    done = subprocess.run(
        [sys.executable, *launcher, EXAMPLES / name],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_text_classifier_resumes_within_an_epoch():
    output = output_of("train_text.py")
    assert re.search(r"told apart: \d+\.\d%", output)
    assert "resumed is the same" in output


def test_a_model_learns_from_images_in_parquet():
    assert re.search(r"told apart: \d+\.\d%", output_of("train_images.py"))


def test_a_service_gives_what_training_does():
    assert "served 32 rows as training has them" in output_of("service.py")


def test_two_ranks_train_one_model():
    output = output_of("train_ranks.py", *TORCHRUN, GLOO_RANK)
    shares = re.findall(r"rank \d, epoch 0: ([\d,]+) of ([\d,]+) flights", output)
    shares = [[int(number.replace(",", "")) for number in share] for share in shares]
    assert len(shares) == 2
    assert {every for _, every in shares} == {sum(own for own, _ in shares)}
