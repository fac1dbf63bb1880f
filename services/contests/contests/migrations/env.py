from common.migrate import run_env
from contests.store import METADATA

run_env(METADATA)
