def pytest_addoption(parser):
    parser.addoption(
        "--every-rule",
        action="store_true",
        help="judge each mutant by the rules of all groups, not of the one: many times as long",
    )
