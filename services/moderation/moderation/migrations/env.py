from common.migrate import run_env
from moderation.store import METADATA

run_env(METADATA)
