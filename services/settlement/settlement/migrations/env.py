from common.migrate import run_env
from settlement.store import METADATA

run_env(METADATA)
