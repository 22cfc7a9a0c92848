"""Every route as /openapi.json describes it, asked by `schemathesis` in ways nobody thought of.

A server error, a status, content type or body that is not described, or a method that is
taken without being described fails the run. The same seed asks the same things.
"""

import os
import subprocess
import sys
import tempfile

CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    # What the description forbids is refused. The reverse cannot be asked for: a module
    # or a conversation that is well written need not exist.
    "negative_data_rejection",
    "unsupported_method",
    "allow_header_conformance",
    "use_after_free",
    "ensure_resource_availability",
]


def main():
    with tempfile.TemporaryDirectory() as folder:
        command = [os.path.join(os.path.dirname(sys.executable), "schemathesis")]
        command += ["run", os.environ["DOCENT_TEST_URL"] + "/openapi.json"]
        command += ["--phases", "examples,coverage,fuzzing,stateful"]
        command += ["--checks", ",".join(CHECKS)]
        command += ["--seed", "20260101", "--generation-database", "none"]
        command += ["--max-examples", "40", "--request-timeout", "30"]
        command += ["--continue-on-failure", "--no-color", "--warnings", "off"]
        ended = subprocess.run(command, cwd=folder)
    return ended.returncode


if __name__ == "__main__":
    sys.exit(main())
