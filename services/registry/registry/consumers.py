"""What the registry listens to: nothing of the week. The replay clock, where there is one, common follows itself."""

from common.inbox import Handlers

HANDLERS = Handlers()
