"""How a person proves who they are: OpenID Connect, GitHub's OAuth, or a link by mail. No database, no pages.

All that a browser carries through a sign-in is one random ``state``; what OpenID Connect and PKCE need besides
(nonce, code verifier) is derived from it with the session secret, so that neither a cookie nor a table holds it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiosmtplib
import anyio.to_thread
import httpx
import uuid_utils
from authlib.common.urls import add_params_to_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import BadSignatureError, InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from registry.settings import GitHub, OpenIdProvider, PeopleSettings, Smtp, on_loopback

PATIENCE_SECONDS = 10.0
"""How long a provider may take for one answer."""

METADATA_HOLDS_SECONDS = 3_600.0
LEEWAY_SECONDS = 60
"""How far a provider's clock may be off."""

_ASYMMETRIC = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
"""Signatures that are believed. ``none`` is no signature, and an HMAC's key would be known to both sides."""

_MAIL = re.compile(r"[a-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{2,63}")
_LONGEST_ADDRESS = 254


class SignInFailed(Exception):
    """The provider's answer proves nothing. The message is for the log: it holds no secret and no identity."""


class UnknownKey(SignInFailed):
    """The ID token is signed with none of the keys that were published when they were fetched."""


class ProviderDown(Exception):
    """The provider, or the mail server, does not answer as it should at this moment."""


@dataclass(frozen=True)
class Identity:
    """Who a provider says somebody is: the pair that it promises never to give to anybody else."""

    issuer: str
    subject: str


@dataclass(frozen=True)
class Secrets:
    """The two secrets of the people's part: ``session`` may be changed, ``identity`` never."""

    session: bytes
    identity: bytes

    def nonce(self, state: str) -> str:
        return _derived(self.session, "nonce", state)

    def verifier(self, state: str) -> str:
        """The PKCE code verifier of a sign-in: 43 characters, as RFC 7636 recommends."""
        return _derived(self.session, "verifier", state)

    def burnt(self, name_key: str) -> str:
        """What stands in the place of a redacted name's key: one that nobody can guess a name by."""
        return hmac.new(self.identity, f"mafl.burnt-name\0{name_key}".encode(), hashlib.sha256).hexdigest()

    def known_as(self, identity: Identity) -> str:
        """What is kept of an identity: a keyed hash, so that a copy of the database names nobody."""
        return hmac.new(self.identity, f"{identity.issuer}\0{identity.subject}".encode(), hashlib.sha256).hexdigest()


def _derived(key: bytes, purpose: str, state: str) -> str:
    mac = hmac.new(key, f"mafl.signin.{purpose}\0{state}".encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(mac).rstrip(b"=").decode("ascii")


# --- OpenID Connect ------------------------------------------------------------------------------


@dataclass
class _Known:
    """What a provider publishes of itself, and when it was fetched (monotonic seconds)."""

    metadata: Mapping[str, Any]
    keys: KeySet
    at: float


class Providers:
    """The configured providers. What they publish of themselves is remembered for an hour."""

    def __init__(self, settings: PeopleSettings) -> None:
        self._by_name = {provider.name: provider for provider in settings.providers}
        self._known: dict[str, _Known] = {}

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return httpx.create_ssl_context()

    async def _ask(self, method: str, url: str, **content: Any) -> httpx.Response:
        # A client of its own for each question: they are few, and no connection idles between them.
        try:
            async with httpx.AsyncClient(verify=self._tls, timeout=PATIENCE_SECONDS) as client:
                return await client.request(method, url, **content)
        except httpx.HTTPError as error:
            raise ProviderDown(f"{urlsplit(url).hostname} does not answer: {type(error).__name__}") from None

    def get(self, name: str) -> OpenIdProvider | GitHub | None:
        return self._by_name.get(name)

    async def address(
        self, provider: OpenIdProvider | GitHub, *, redirect_uri: str, state: str, secrets: Secrets
    ) -> str:
        """Where the browser goes to sign in. Raises :class:`ProviderDown`."""
        challenge = create_s256_code_challenge(secrets.verifier(state))
        parameters = {
            "response_type": "code",
            "client_id": provider.client_id,
            "redirect_uri": redirect_uri,
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        if isinstance(provider, GitHub):
            endpoint = f"{provider.url}/login/oauth/authorize"
        else:
            endpoint = _endpoint((await self._about(provider)).metadata, "authorization_endpoint")
            # The subject alone is needed: no name, no address.
            parameters |= {"scope": "openid", "nonce": secrets.nonce(state)}
        return str(add_params_to_uri(endpoint, list(parameters.items())))

    async def identity(
        self,
        provider: OpenIdProvider | GitHub,
        *,
        code: str,
        issuer: str | None,
        redirect_uri: str,
        state: str,
        secrets: Secrets,
        now: int,
    ) -> Identity:
        """Exchange a code for who came back with it. ``issuer`` is the answer's ``iss`` (RFC 9207), where it has one.

        Raises :class:`SignInFailed`, :class:`ProviderDown`.
        """
        if isinstance(provider, GitHub):
            return await self._github(provider, code, redirect_uri, secrets.verifier(state))
        if issuer is not None and issuer != provider.issuer:
            raise SignInFailed("the answer names another issuer")
        about = await self._about(provider)
        answer = await self._exchange(
            _endpoint(about.metadata, "token_endpoint"),
            provider,
            {"code": code, "redirect_uri": redirect_uri, "code_verifier": secrets.verifier(state)},
            basic="client_secret_basic"
            in about.metadata.get("token_endpoint_auth_methods_supported", ("client_secret_basic",)),
        )
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise SignInFailed("the provider sent no id_token")
        access_token = answer.get("access_token")

        def judged(about: _Known) -> str:
            return subject_of(
                token,
                about.keys,
                issuer=provider.issuer,
                client_id=provider.client_id,
                nonce=secrets.nonce(state),
                access_token=access_token if isinstance(access_token, str) else None,
                supported=about.metadata.get("id_token_signing_alg_values_supported"),
                now=now,
            )

        try:
            subject = judged(about)
        except UnknownKey:  # a provider changes its keys now and then
            subject = judged(await self._about(provider, afresh=True))
        return Identity(provider.issuer, subject)

    async def _about(self, provider: OpenIdProvider, *, afresh: bool = False) -> _Known:
        known = self._known.get(provider.name)
        if known is not None and not afresh and anyio.current_time() - known.at < METADATA_HOLDS_SECONDS:
            return known
        metadata = await self._fetch(f"{provider.issuer.rstrip('/')}/.well-known/openid-configuration")
        if metadata.get("issuer") != provider.issuer:
            raise ProviderDown(f"{provider.name} says that it is another issuer than the one configured")
        try:
            keys = KeySet.import_key_set(await self._fetch(_endpoint(metadata, "jwks_uri")))  # type: ignore[arg-type]
        except (JoseError, ValueError, KeyError, TypeError) as error:
            raise ProviderDown(f"{provider.name} publishes no usable keys") from error
        known = _Known(metadata, keys, anyio.current_time())
        self._known[provider.name] = known
        return known

    async def _exchange(
        self, endpoint: str, provider: OpenIdProvider | GitHub, parameters: dict[str, str], *, basic: bool
    ) -> Mapping[str, Any]:
        secret = provider.client_secret.get_secret_value()
        form = {"grant_type": "authorization_code", "client_id": provider.client_id, **parameters}
        auth = httpx.BasicAuth(provider.client_id, secret) if basic else httpx.USE_CLIENT_DEFAULT
        if not basic:
            form["client_secret"] = secret
        answer = await self._ask("POST", endpoint, data=form, auth=auth, headers={"Accept": "application/json"})
        if answer.status_code >= 500:
            raise ProviderDown(f"the token endpoint answers {answer.status_code}")
        document = _document(answer)
        if answer.status_code != 200 or "error" in document:
            raise SignInFailed(f"the token endpoint refuses the code with {answer.status_code}")
        return document

    async def _github(self, provider: GitHub, code: str, redirect_uri: str, verifier: str) -> Identity:
        answer = await self._exchange(
            f"{provider.url}/login/oauth/access_token",
            provider,
            {"code": code, "redirect_uri": redirect_uri, "code_verifier": verifier},
            basic=False,
        )
        token = answer.get("access_token")
        if not isinstance(token, str):
            raise SignInFailed("GitHub sent no access token")
        user = await self._fetch(f"{provider.api_url}/user", {"Authorization": f"Bearer {token}"})
        # The number stays an account's own; its login name can be given up and taken by somebody else.
        number = user.get("id")
        if not isinstance(number, int) or isinstance(number, bool):
            raise SignInFailed("GitHub named no user")
        return Identity(provider.url, str(number))

    async def _fetch(self, url: str, headers: Mapping[str, str] | None = None) -> Mapping[str, Any]:
        answer = await self._ask("GET", url, headers={"Accept": "application/json", **(headers or {})})
        if answer.status_code != 200:
            raise ProviderDown(f"{urlsplit(url).hostname} answers {answer.status_code}")
        return _document(answer)


def _document(answer: httpx.Response) -> Mapping[str, Any]:
    try:
        document = answer.json()
    except ValueError as error:
        raise ProviderDown(f"{answer.url.host} answers with something that is no JSON") from error
    if not isinstance(document, dict):
        raise ProviderDown(f"{answer.url.host} answers with JSON that is no object")
    return document


def _endpoint(metadata: Mapping[str, Any], name: str) -> str:
    url = metadata.get(name)
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None or not (parts.scheme == "https" or (parts.scheme == "http" and on_loopback(parts.hostname))):
        raise ProviderDown(f"the provider's {name} is missing, or not https")
    return str(url)


def subject_of(
    token: str,
    keys: KeySet,
    *,
    issuer: str,
    client_id: str,
    nonce: str,
    now: int,
    access_token: str | None = None,
    supported: object = None,
) -> str:
    """The subject of an ID token (OpenID Connect Core 3.1.3.7), or :class:`SignInFailed`.

    ``keys`` are the provider's public keys; ``supported`` the algorithms that it says it signs with (RS256 where it
    says nothing); ``now`` seconds since 1970.
    """
    algorithms = [name for name in _ASYMMETRIC if name in (supported if isinstance(supported, list) else ["RS256"])]
    if not algorithms:  # an empty list would mean the library's own
        raise SignInFailed("the provider signs with nothing that is believed")
    try:
        decoded = jwt.decode(token, keys, registry=JWSRegistry(algorithms=algorithms, strict_check_header=False))
        claims = CodeIDToken(
            decoded.claims,
            decoded.header,
            {
                "iss": {"essential": True, "value": issuer},
                "aud": {"essential": True, "value": client_id},
                "sub": {"essential": True},
            },
            {"nonce": nonce, "client_id": client_id, "access_token": access_token},
        )
        claims.validate(now=now, leeway=LEEWAY_SECONDS)
    except (InvalidKeyIdError, BadSignatureError):  # a provider with one key may name none
        raise UnknownKey("the id_token is signed with none of the provider's keys") from None
    except (JoseError, ValueError, TypeError, KeyError) as error:
        # The error's text may repeat claims; its kind is enough.
        raise SignInFailed(f"the id_token is not good: {type(error).__name__}") from None
    subject = claims["sub"]
    if not isinstance(subject, str) or not 1 <= len(subject) <= 255:
        raise SignInFailed("the id_token names no subject")
    return subject


# --- mail ----------------------------------------------------------------------------------------

MAIL_ISSUER = "mailto:"
"""Stands in an issuer's place for people who sign in by mail."""


def mail_address(written: str) -> str | None:
    """The address as it is written to and known by, all in small letters; ``None`` where it is none."""
    local, _, domain = written.strip().rpartition("@")
    try:
        domain = domain.encode("idna").decode("ascii")
    except UnicodeError:
        return None
    address = f"{local}@{domain}".lower()
    fits = len(address) <= _LONGEST_ADDRESS and ".." not in address and _MAIL.fullmatch(address) is not None
    return address if fits else None


def message(settings: PeopleSettings, to: str, link: str, minutes: int) -> EmailMessage:
    """The mail with a link to sign in."""
    mail = EmailMessage()
    mail["From"] = settings.mail_from
    mail["To"] = to
    mail["Subject"] = "Sign in to MAFL"
    mail["Date"] = formatdate()
    mail["Message-ID"] = f"<{uuid_utils.uuid7()}@{urlsplit(link).hostname}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(
        f"This link signs you in to MAFL:\n\n{link}\n\n"
        f"It works once, for {minutes} minutes, in the browser that asked for it.\n"
        "If you did not ask for it, do nothing: nobody can sign in without it.\n",
        cte="7bit",
    )
    return mail


async def send(settings: PeopleSettings, mail: EmailMessage) -> None:
    """Hand a mail in, or write it to the outbox of an embedded stack. Raises :class:`ProviderDown`."""
    if settings.smtp is None:
        if settings.mail_outbox is None:
            raise ProviderDown("no mail is configured")
        await anyio.to_thread.run_sync(partial(_keep, settings.mail_outbox, mail))
        return
    smtp = Smtp.parse(settings.smtp.get_secret_value())
    try:
        await aiosmtplib.send(
            mail,
            hostname=smtp.host,
            port=smtp.port,
            username=smtp.user,
            password=None if smtp.password is None else smtp.password.get_secret_value(),
            use_tls=smtp.tls,
            # Off this machine, no encryption means no mail.
            start_tls=False if smtp.tls else None if on_loopback(smtp.host) else True,
            timeout=PATIENCE_SECONDS,
        )
    except (aiosmtplib.SMTPException, OSError) as error:
        raise ProviderDown(f"the mail server does not take mail: {type(error).__name__}") from None


def _keep(outbox: Path, mail: EmailMessage) -> None:
    outbox.mkdir(mode=0o700, parents=True, exist_ok=True)
    name = f"{uuid_utils.uuid7()}.eml"
    unfinished = outbox / f".{name}"
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(mail.as_bytes())
    unfinished.rename(outbox / name)
