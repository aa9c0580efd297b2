"""The README's Python example, run as it stands there against a real `partita up`."""

import asyncio
import re
import sys
from pathlib import Path

from tests.system.test_cli_flow import LIMIT_S, environment, partita, up

MERKLE = Path("examples/merkle/bn254")
README = Path("README.md").read_text()
PROOF_HEX_DIGITS = 2 * 256
USUAL_ADDRESS = "127.0.0.1:9830"


async def test_the_readmes_python_example_prints_a_proof(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    data_dir = tmp_path / "data"
    files = ("--zkey", MERKLE / "circuit.zkey", "--wasm", MERKLE / "circuit.wasm")
    assert (await partita(data_dir, "circuits", "add", "merkle", *files))[0] == 0
    async with up(data_dir) as running:
        assert USUAL_ADDRESS in example
        program = example.replace(USUAL_ADDRESS, running.ready["scheduler"])
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", program),
            env=environment(data_dir),
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await asyncio.wait_for(process.communicate(), LIMIT_S)
    index, prover_id, proof = out.decode().split()
    assert (index, prover_id) == ("0", running.ready["provers"][0])
    assert len(proof) == PROOF_HEX_DIGITS
