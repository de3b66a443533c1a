"""What the conformance kit says of this package, which is what docs/design.md says of it."""

import json
import re
import subprocess
import sys
from pathlib import Path

DESIGN = Path(__file__).parents[2] / "docs" / "design.md"


def test_only_those_rules_are_broken_of_which_the_docs_say_why():
    done = subprocess.run(
        [sys.executable, "-m", "arrow_dlpack", "check", "arrow_dlpack", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rules = json.loads(done.stdout)["rules"]
    broken = {rule["id"] for rule in rules if rule["outcome"] in ("fail", "crashed")}
    told = DESIGN.read_text("utf-8").partition("## Rules of the protocols that are not kept")[2]
    assert broken == set(re.findall(r"\*\*([A-Z]{2}\d{3})\*\*", told))
    assert sum(rule["outcome"] == "pass" for rule in rules) > 250
