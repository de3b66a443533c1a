import json

from commands import HERE, REFERENCE, kit

FAULTS = {
    "DL116": "a copy does not say that it is one",
    "DL403": "an object without the methods is a TypeError",
    "AR202": "a slice has the null count of the whole",
    "AR308": "a failure without a text ends the process",
    "AR414": "a request of fewer fields is answered",
}


def test_five_faults_are_found_by_their_rules_and_by_no_others():
    done = kit(REFERENCE, "--hooks", HERE / "faulty.py", "--json")
    assert done.returncode == 1, done.stderr
    rules = json.loads(done.stdout)["rules"]
    broken = {rule["id"]: rule for rule in rules if rule["outcome"] in ("fail", "crashed")}
    assert sorted(broken) == sorted(FAULTS), broken
