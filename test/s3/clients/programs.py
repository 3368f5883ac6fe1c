"""How clients that are programs are run: their output is the result, an exit status other than 0 an error."""

import os
import subprocess
import tempfile

from common import summary
from serve import without_passing


class ProgramFailed(Exception):
    pass


def run(*command, environment=None, body=None):
    done = subprocess.run(
        command, input=body, capture_output=True, env={**os.environ, **(environment or {})}, check=False, timeout=300
    )
    if done.returncode:
        raise ProgramFailed(f"{done.returncode}: {without_passing(done.stderr.decode(errors='replace'))[-600:]}")
    return done.stdout


def downloaded(*command, environment=None):
    """Runs the command with the name of a new file at its end; tells what it wrote there."""
    with tempfile.TemporaryDirectory(prefix="nezha-client-") as folder:
        file = f"{folder}/body"
        run(*command, file, environment=environment)
        with open(file, "rb") as stream:
            return summary(stream.read())


def with_file(body, use):
    """Calls use(name of a file that holds `body`)."""
    with tempfile.NamedTemporaryFile(prefix="nezha-client-") as file:
        file.write(body)
        file.flush()
        return use(file.name)
