import json

from commands import HERE, REFERENCE, kit
from faulty import FAULTS


def test_five_faults_are_found_by_their_rules_and_by_no_others():
    done = kit(REFERENCE, "--hooks", HERE / "faulty.py", "--json")
    assert done.returncode == 1, done.stderr
    rules = json.loads(done.stdout)["rules"]
    broken = {rule["id"]: rule for rule in rules if rule["outcome"] in ("fail", "crashed")}
    assert sorted(broken) == sorted(FAULTS), broken
