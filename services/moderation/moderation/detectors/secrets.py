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

_MIXED = r"""["']?(?=[^\s&;"']{0,80}\d)(?=[^\s&;"']{0,80}[A-Za-z])[^\s&;"']"""
"""The first of the characters of a value of letters and figures, as keys are and words are not."""
_WORD_BESIDE = (
    r"\b(?:(?:api|access|auth|client|session|refresh|bearer|secret|signing|private|encryption|master|licen[sc]e"
    r"|deploy|app|bot|service|agent|account|webhook|vault|feed|heroku|wallet'?s?|my|our|your|the|x-api|x-auth)"
    r"[ _'-]{0,3}){0,3}"
    r"(?:keys?|tokens?|secrets?|credentials?|passwords?|api-?key|cookie|sid)\b"
)
_OPAQUE = (
    r"(?:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
    r"|(?!(?:\w{0,12}-){3})(?=[A-Za-z0-9+/_-]{0,40}\d)(?=[0-9+/_-]{0,40}[A-Za-z])[A-Za-z0-9+/_-]{24,}={0,2})"
)
"""What nobody writes by hand: a UUID, or a run of letters and figures that is no row of words."""

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
    "basic-auth": r"(?<=://)[^\s/:@]{0,64}:[^\s/@]{3,64}(?=@)",
    "assigned": r"(?i:(?:api|access)[ _-]?key|client[ _-]?secret|(?:auth|api|access|secret)[ _-]?token|passw(?:or)?d"
    r"|(?-i:[A-Z]{2,20}_(?:[A-Z]{2,20}_){0,3})(?:key|token|secret|pass|pwd))"
    r"[\"']? ?[:=] ?[\"']?(?=[^\s\"']{0,40}\d)(?=[^\s\"']{0,40}[A-Za-z])[^\s\"']{12,}",
    "password": r"(?i:\b(?:passw(?:or)?d|passcode|passphrase|pwd?|log-?in|credentials)\b)"
    r"(?i:(?: (?:for|to|of|on) [\w' ]{1,30})?(?: (?:is|are|was)|:| ?=))(?: [\w.@-]{1,30} [/|])? ?[\"']?"
    r"(?=[^\s\"']{0,30}\d)(?=[^\s\"']{0,30}[A-Za-z])[^\s\"']{6,}",
    "webhook": r"discord(?:app)?\.com/api/webhooks/\d{15,20}/[\w-]{40,}|hooks\.slack\.com/\w{6,12}/\w{6,}/[\w/]{20,}"
    r"|\w{1,40}\.webhook\.office\.com/\S{30,}|hooks\.zapier\.com/hooks/\w{3,}/\d{5,}/\w{5,}",
    "parameter": r"(?<![^\s?&;])(?:[\w-]{0,20}(?i:api_?key|api-key|access_?key|token|secret|passw(?:or)?d|passwd"
    r"|signature|auth|session_?id|app_?id|app_key|sid)|sig|key|hmac|pwd|pass|(?:PHP|J)SESSIONID|session)="
    + _MIXED
    + r"{10,300}",
    "beside": rf"(?i:{_WORD_BESIDE})[\"']?"
    rf"(?:\W{{1,4}}|\W{{1,3}}(?:[a-z']{{1,10}}\W{{1,3}}){{1,4}}?)[\"'(]?(?:0x)?{_OPAQUE}",
    "option": r"(?<!\S)(?:curl|wget|http|https)\b[^\n]{0,80}?\s(?:-u|--user)[ =][\"']?[\w.@-]{1,40}:[^\s\"']{4,64}"
    r"|(?:mysql|mysqldump|mariadb)\b[^\n]{0,60}?\s-p(?=\S{0,30}\d)\S{6,64}|sshpass -p ?\S{4,64}"
    r"|--?(?:password|passwd|pass|token|api-?key|secret|access-token|auth-token|client-secret|pw)[ =]"
    + _MIXED
    + r"{6,200}"
    r"|(?:login|docker|helm|az|psql|ftp|rsync|smbclient)\b[^\n]{0,60}?\s-[pPW][ =]?" + _MIXED + r"{8,64}",
    "credential-line": r"(?i:\b(?:user(?:name)?|login|e-?mail|machine|account)[ :=]{1,3}[\w.@-]{1,40}[ ,;/|:]{1,3}"
    r"(?:and |with )?(?:pass(?:word|wd|phrase|code)?|pwd?|pw|secret)[ :=]{1,3}(?:is )?)"
    r"(?=[^\s\"']{0,40}[\d!@#$%&])[^\s\"']{6,64}",
    "pin": r"(?i:\b(?:pin|passcode|otp|(?:safe|door|alarm|access|security|unlock|2fa) code|code (?:for|to|of) "
    r"(?:the|my|our) (?:safe|door|gate|alarm|vault|lock|locker|garage|phone|house|building))"
    r"(?: (?:code|number))?(?: (?:is|was)|:| ?=)) ?\d{1,4}(?:[ -]?\d{1,4}){0,4}(?<=\d\d\d\d|\d-\d\d)\b",
    "wallet": r"[5KL][1-9A-HJ-NP-Za-km-z]{50,51}(?![1-9A-HJ-NP-Za-km-z])|[xyz]prv[1-9A-HJ-NP-Za-km-z]{80,}",
    "vendor-key": r"hv[sbr]\.[\w-]{20,}|EAA[A-Za-z0-9]{40,}|key-[0-9a-f]{32}\b|sq0[a-z]{3}-[\w-]{20,}|1//0[\w-]{30,}"
    r"|SharedAccess(?:Key|Signature)=\S{20,}|rzp_(?:live|test)_\w{12,}|PMAK-[0-9a-f]{24}-[0-9a-f]{34}"
    r"|ATATT[\w=-]{40,}|figd_[\w-]{30,}|glsa_\w{30,}|sntrys_\S{40,}|nvapi-[\w-]{40,}|dp\.pt\.\w{40,}|sl\.[\w-]{60,}"
    r"|AccountKey=[A-Za-z0-9+/]{40,}=*|pscale_\w{2,10}_[\w.-]{30,}|shippo_(?:live|test)_\w{30,}",
    "assigned-line": r"(?:[A-Z][A-Z0-9]{0,20}_){0,4}[A-Z0-9]{0,20}(?:PASSWORD|PASSWD|PASS|PWD|SECRET|TOKEN|KEY"
    r"|CREDENTIALS|DSN)\s?[=:]\s?" + _MIXED + r"{8,200}",
    "connection-string": r"(?i:(?:server|data source|host|user id|uid|database|initial catalog)=[^;\s]{1,60};"
    r"[^\n]{0,160}?(?:password|pwd)=)[^;\s]{4,64}",
    "otp-secret": r"(?i:(?:otp|totp|2fa|authenticator|mfa)(?:[ :=-]{0,3}(?:secret|seed|key|code))?[ :=-]{1,3}(?:is )?)"
    r"[A-Z2-7]{16,64}\b",
    "basic": r"(?i:authorization: ?(?:basic|token|digest|apikey|key)) [A-Za-z0-9+/._-]{8,}={0,2}",
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
    r"[\w+/=.~-]{16}|://|-----BEGIN|:AA|\s-[pu]|(?i:bearer|secret|pass|\bpin\b|code (?:for|to|of|is)|\w code\b|\botp\b"
    r"|token|pwd?\b|log-?in|credentials|phrase|words)"
)
"""The least that a text has where there is a key in it: most texts have none of it and are soon done."""
_END_OF_TOKEN = re.compile(r"\s|$")


class Secrets(Detector):
    name = "secrets"
    version = "3"

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
