from boards.store import METADATA
from common.migrate import run_env

run_env(METADATA)
