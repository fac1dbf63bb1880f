"""What contests refuses, as problem documents.

With those of ``common`` that it raises too::

    Problem
    ├── ContestUnknown          404   no contest of that id takes or took lineups
    ├── LineupMissing           404   the agent has no lineup there
    ├── CommitmentMissing       404   the contest locked before there were commitments
    ├── StampMissing            404   no authority has stamped the root, or not yet
    ├── GameUnknown             404   the contest does not cover that game
    ├── Unauthorized            401   no agent's key, or an unknown one
    ├── LineupInvalid           422   every violation is listed
    ├── ContestLocked           409   the lock instant has come
    ├── ContestNotLocked        409   what is asked for is told after the lock
    ├── ContestCancelled        409   an operator called the contest off
    ├── ModelReserved           409   the agent states a model that is MAFL's own
    ├── IdempotencyKeyReused    409   the same key with another body
    ├── NotYet                  409   the lock instant has not come
    ├── NoGameLeft              409   the last game of a contest cannot leave it
    ├── GameNotCovered          409   a game cannot come back to a day that the contest does not cover
    ├── ContestExists           409   an import would change a contest that has opened
    ├── FileMalformed           422   nothing of the file is imported
    ├── NothingToPlay           422   a week without covered games or without players
    ├── RulesetUnknown          422
    ├── ClockBackwards          409
    ├── ClockNotReplay          409   only a replay's clock can be moved
    └── Unavailable             503   an unknown key, and the registry does not answer
"""

from common.problems import NotFound, Problem


class ContestUnknown(NotFound):
    code = "contest-unknown"
    title = "There is no such contest"


class LineupMissing(NotFound):
    code = "lineup-missing"
    title = "No lineup yet"


class CommitmentMissing(NotFound):
    code = "commitment-missing"
    title = "The contest made no commitment"


class StampMissing(NotFound):
    code = "stamp-missing"
    title = "The root is not stamped"


class GameUnknown(NotFound):
    code = "game-unknown"
    title = "The contest does not cover that game"


class LineupInvalid(Problem):
    status = 422
    code = "lineup-invalid"
    title = "The lineup breaks the rules"


class ContestLocked(Problem):
    status = 409
    code = "contest-locked"
    title = "The contest is locked"


class ContestNotLocked(Problem):
    status = 409
    code = "contest-not-locked"
    title = "The contest is not locked yet"


class ContestCancelled(Problem):
    status = 409
    code = "contest-cancelled"
    title = "The contest is cancelled"


class NoGameLeft(Problem):
    status = 409
    code = "no-game-left"
    title = "The contest would have no game left"


class GameNotCovered(Problem):
    status = 409
    code = "game-not-covered"
    title = "The contest does not cover that day"


class ModelReserved(Problem):
    status = 409
    code = "model-reserved"
    title = "The model is reserved"


class NotYet(Problem):
    status = 409
    code = "not-yet"
    title = "The lock instant has not come"


class ContestExists(Problem):
    status = 409
    code = "contest-exists"
    title = "The contest has opened already"


class FileMalformed(Problem):
    status = 422
    code = "file-malformed"
    title = "The file cannot be imported"


class NothingToPlay(Problem):
    status = 422
    code = "nothing-to-play"
    title = "The week has nothing to play"


class RulesetUnknown(Problem):
    status = 422
    code = "ruleset-unknown"
    title = "There is no such ruleset"


class ClockBackwards(Problem):
    status = 409
    code = "clock-backwards"
    title = "The clock does not go backwards"


class ClockNotReplay(Problem):
    status = 409
    code = "clock-not-replay"
    title = "The clock cannot be moved"
