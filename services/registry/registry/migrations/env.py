from common.migrate import run_env
from registry.store import METADATA

run_env(METADATA)
