"""Keys and tokens: the token plugins of detect-secrets (no entropy, no keyword guessing) and prefixes of our own."""

from __future__ import annotations

import re
from collections.abc import Iterable

from detect_secrets.plugins.aws import AWSKeyDetector
from detect_secrets.plugins.azure_storage_key import AzureStorageKeyDetector
from detect_secrets.plugins.basic_auth import BasicAuthDetector
from detect_secrets.plugins.discord import DiscordBotTokenDetector
from detect_secrets.plugins.github_token import GitHubTokenDetector
from detect_secrets.plugins.gitlab_token import GitLabTokenDetector
from detect_secrets.plugins.jwt import JwtTokenDetector
from detect_secrets.plugins.mailchimp import MailchimpDetector
from detect_secrets.plugins.npm import NpmDetector
from detect_secrets.plugins.openai import OpenAIDetector
from detect_secrets.plugins.private_key import PrivateKeyDetector
from detect_secrets.plugins.pypi_token import PypiTokenDetector
from detect_secrets.plugins.sendgrid import SendGridDetector
from detect_secrets.plugins.slack import SlackDetector
from detect_secrets.plugins.square_oauth import SquareOAuthDetector
from detect_secrets.plugins.stripe import StripeDetector
from detect_secrets.plugins.twilio import TwilioKeyDetector

from moderation.pipeline import Context, Detector, Match

_PLUGINS = (
    AWSKeyDetector,
    AzureStorageKeyDetector,
    BasicAuthDetector,
    DiscordBotTokenDetector,
    GitHubTokenDetector,
    GitLabTokenDetector,
    JwtTokenDetector,
    MailchimpDetector,
    NpmDetector,
    OpenAIDetector,
    PrivateKeyDetector,
    PypiTokenDetector,
    SendGridDetector,
    SlackDetector,
    SquareOAuthDetector,
    StripeDetector,
    TwilioKeyDetector,
)

_PREFIXES = {
    "mafl": r"mafl_(?:sk|claim)_[0-9A-Za-z_-]{8,}",
    "anthropic": r"sk-ant-[\w-]{16,}",
    "openai": r"sk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{24,}",
    "openrouter": r"sk-or-(?:v1-)?[\w-]{16,}",
    "google": r"AIza[\w-]{30,}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,}",
    "aws": r"(?:AKIA|ASIA|AIDA|AROA)[0-9A-Z]{16}|(?i:aws.{0,20}secret.{0,20}[=:]) ?[\"']?[A-Za-z0-9/+]{40}",
    "slack": r"xox[a-z]-[\w-]{10,}|xapp-\d-[\w-]{10,}",
    "stripe": r"(?:sk|rk)_(?:live|test)_[0-9A-Za-z]{10,}|whsec_[0-9A-Za-z]{16,}",
    "jwt": r"eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}",
    "gitlab": r"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas)-[\w-]{16,}",
    "npm": r"npm_[A-Za-z0-9]{30,}",
    "pypi": r"pypi-[\w-]{32,}",
    "docker": r"dckr_pat_[\w-]{16,}",
    "digital-ocean": r"do[opr]_v1_[0-9a-f]{32,}",
    "shopify": r"shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{24,}",
    "sendgrid": r"SG\.[\w-]{16,}\.[\w-]{16,}",
    "tavily": r"tvly-[\w-]{20,}",
    "langsmith": r"lsv2_[a-z]{2}_[0-9a-f]{20,}",
    "linear": r"lin_api_[A-Za-z0-9]{20,}",
    "notion": r"ntn_[A-Za-z0-9]{30,}",
    "databricks": r"dapi[0-9a-f]{32}",
    "fireworks": r"fw_[A-Za-z0-9]{20,}",
    "age": r"(?i:age-secret-key-1)[0-9A-Za-z]{30,}",
    "hugging-face": r"hf_[A-Za-z]{30,}",
    "x-ai": r"xai-[A-Za-z0-9]{40,}",
    "groq": r"gsk_[A-Za-z0-9]{32,}",
    "perplexity": r"pplx-[A-Za-z0-9]{32,}",
    "replicate": r"r8_[A-Za-z0-9]{32,}",
    "github": r"github_pat_\w{22,}|gh[opsur]_[A-Za-z0-9]{20,}",
    "telegram": r"(?<!\d)\d{8,10}:AA[\w-]{33}",
    "bearer": r"(?i:bearer) [A-Za-z0-9._~+/-]{32,}=*",
    "basic-auth": r"(?<=://)[^\s/:@]{1,64}:[^\s/@]{3,64}(?=@)",
    "assigned": r"(?i:(?:api|access)[ _-]?key|client[ _-]?secret|(?:auth|api|access|secret)[ _-]?token|passw(?:or)?d"
    r"|(?-i:[A-Z]{2,20}_(?:[A-Z]{2,20}_){0,3})(?:key|token|secret|pass|pwd))"
    r"[\"']? ?[:=] ?[\"']?(?=[^\s\"']{0,40}\d)(?=[^\s\"']{0,40}[A-Za-z])[^\s\"']{12,}",
    "password": r"(?i:\b(?:passw(?:or)?d|passcode|passphrase|pwd?|log-?in|credentials)\b)"
    r"(?i:(?: (?:for|to|of|on) [\w' ]{1,30})?(?: (?:is|are|was)|:| ?=))(?: [\w.@-]{1,30} [/|])? ?[\"']?"
    r"(?=[^\s\"']{0,30}\d)(?=[^\s\"']{0,30}[A-Za-z])[^\s\"']{6,}",
    "basic": r"(?i:authorization: ?basic) [A-Za-z0-9+/]{8,}={0,2}",
    "seed-phrase": r"(?i:(?:seed|recovery|backup|secret|mnemonic) (?:phrase|words?))\W{1,4}(?:is |are )?"
    r"(?:[a-z]{3,8}[ ,]{1,2}){11,24}",
    "token": r"[A-Za-z]{2,12}[_-](?:[A-Za-z0-9]{1,8}[_-]){0,3}"
    r"(?=[A-Za-z]{0,60}\d)(?=[A-Z0-9]{0,60}[a-z])(?=[a-z0-9]{0,60}[A-Z])[A-Za-z0-9]{24,}",
    "private-key": r"-----BEGIN (?:[A-Z]+ ){0,4}(?:PRIVATE KEY|SECRET)|PuTTY-User-Key-File-\d",
}
_PREFIX = re.compile(
    r"(?<![A-Za-z0-9])(?:" + "|".join(f"(?P<{name.replace('-', '_')}>{one})" for name, one in _PREFIXES.items()) + ")"
)
_MAY_HOLD = re.compile(
    r"[\w+/=.~-]{16}|://|-----BEGIN|:AA|(?i:bearer|secret|passw|passphrase|passcode|pwd?\b|log-?in|credentials|phrase|words)"
)
"""The least that a text has where there is a key in it: most texts have none of it and are soon done."""
_END_OF_TOKEN = re.compile(r"\s|$")


class Secrets(Detector):
    name = "secrets"
    version = "2"

    def __init__(self) -> None:
        self._plugins = [plugin() for plugin in _PLUGINS]

    def judge(self, text: str, context: Context) -> Iterable[Match]:
        if _MAY_HOLD.search(text) is None:
            return
        for found in _PREFIX.finditer(text):
            yield Match(str(found.lastgroup).replace("_", "-"), found.start(), found.end())
        for plugin in self._plugins:
            for secret in set(plugin.analyze_string(text)):
                # Some plugins give only a part of what they found (a prefix): take the token that it begins.
                start = text.find(secret) if secret else -1
                while start >= 0:
                    end = max(start + len(secret), _END_OF_TOKEN.search(text, start).start())  # type: ignore[union-attr]
                    yield Match(plugin.secret_type.lower().replace(" ", "-"), start, end)
                    start = text.find(secret, end)
