"""Fuzz a target with atheris, guided by coverage.

    PYTHONPATH=spec-conformance python -m tests.fuzz TARGET [SECONDS] [--seed N] [--keep FOLDER]

Install atheris first. The first inputs are the corpus and the captured exchanges or the conformance
vectors. The smallest input for each new code path is written to a folder of the target in ``--keep``;
`archive` adds these to the corpus. A crash ends the run; its input is left in that folder.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["cloudevents_kafka"]):
    from tests.fuzz import converters, targets

VECTORS = Path(__file__).parents[1] / "protocol" / "vectors"
WORDS = Path(__file__).with_name("words.dict")
KEPT = Path(__file__).parents[2] / "build" / "fuzz"


def protocol_seeds(folder: Path, name: str) -> None:
    """Write the captured frames, without their sizes, as first inputs."""
    for path in VECTORS.glob("*.json"):
        for number, exchange in enumerate(json.loads(path.read_text()).get("exchanges", ())):
            for side in ("request", "response"):
                if frame := exchange.get(side):
                    prefix = b"" if name.startswith("request") else b"\x03\x00"
                    (folder / f"{path.stem}-{number}-{side}").write_bytes(prefix + bytes.fromhex(frame)[4:])


def converter_seeds(folder: Path, name: str) -> None:
    """Write the conformance vectors as first inputs."""
    for number, seed in enumerate(converters.seeds(name)):
        (folder / f"vector-{number}").write_bytes(seed)


def main() -> None:
    """Fuzz a target; atheris writes new inputs to the first folder that it reads."""
    parser = argparse.ArgumentParser(prog="fuzz")
    parser.add_argument("target", choices=targets.TARGETS)
    parser.add_argument("seconds", nargs="?", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0, help="0: another one each time")
    parser.add_argument(
        "--keep", type=Path, help="the folder of new inputs (default: %(default)s)", default=KEPT
    )
    arguments = parser.parse_args()
    name, target = arguments.target, targets.TARGETS[arguments.target]
    kept = arguments.keep / name
    kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as first:
        (converter_seeds if name in converters.TARGETS else protocol_seeds)(Path(first), name)
        for number, data in enumerate(targets.corpus(name)):
            (Path(first) / f"corpus-{number}").write_bytes(data)
        options = [f"-max_total_time={arguments.seconds}", f"-seed={arguments.seed}"]
        options += [f"-artifact_prefix={kept}/", "-max_len=4096", "-timeout=10", "-rss_limit_mb=2048"]
        options += [f"-dict={WORDS}"] if name in converters.TARGETS else []
        atheris.Setup([sys.argv[0], *options, str(kept), first], lambda data: targets.run(target, data))
        atheris.Fuzz()


if __name__ == "__main__":
    main()
