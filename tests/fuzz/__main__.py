"""Fuzz a target with atheris, guided by coverage.

    PYTHONPATH=tests python -m fuzz TARGET [SECONDS]     after pip install atheris

The first inputs are the corpus and the captured exchanges or the conformance vectors. The smallest
input for each new code path is added to the corpus. A crash ends the run; its input is left in the
working directory.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["cloudevents_kafka"]):
    from fuzz import converters, targets

VECTORS = Path(__file__).parents[1] / "protocol" / "vectors"
WORDS = Path(__file__).with_name("words.dict")


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
    """Fuzz a target; atheris adds new inputs to the corpus."""
    name, seconds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 60
    target = targets.TARGETS[name]
    corpus = targets.CORPUS / name
    corpus.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as first:
        (converter_seeds if name in converters.TARGETS else protocol_seeds)(Path(first), name)
        options = [f"-max_total_time={seconds}", "-max_len=4096", "-timeout=10", "-rss_limit_mb=2048"]
        options += [f"-dict={WORDS}"] if name in converters.TARGETS else []
        atheris.Setup([sys.argv[0], *options, str(corpus), first], lambda data: targets.run(target, data))
        atheris.Fuzz()


if __name__ == "__main__":
    main()
