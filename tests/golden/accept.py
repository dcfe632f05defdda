"""Accept changed answers: `python -m tests.golden.accept --reason "…" STAGE [EXCHANGE…]`.

Every step of the exchanges that the present program answers in another way than was recorded gets
an entry in `changed.yaml`; an entry that is needed no more is deleted.
"""

from __future__ import annotations

import argparse

from tests.golden.answers import Change, read_changes, read_recorded, same, write_changes
from tests.golden.play import play
from tests.golden.stage import read_stage
from tests.golden.world import Program


def main() -> None:
    """Accept."""
    parser = argparse.ArgumentParser(description="Accept answers that were changed on purpose.")
    parser.add_argument("--reason", required=True, help="why they changed, for reviewers")
    parser.add_argument("stage")
    parser.add_argument("exchanges", nargs="*", metavar="EXCHANGE", help="only these")
    options = parser.parse_args()
    stage = read_stage(options.stage)
    played, recorded = play(stage, Program()), read_recorded(stage.name)
    kept = {(one.stage, one.exchange, one.step): one for one in read_changes()}
    for title in options.exchanges or played:
        for number, (now, before) in enumerate(zip(played[title], recorded[title], strict=True), 1):
            place = (stage.name, title, number)
            known = kept.pop(place, None)
            if same(now, before):
                continue
            if known is None or not same(known.answer, now):
                known = Change(*place, options.reason, now)
                print(f"{stage.name}: {title}: step {number}: accepted")
            kept[place] = known
    write_changes(kept.values())


if __name__ == "__main__":
    main()
