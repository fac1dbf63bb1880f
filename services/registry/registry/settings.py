"""What the registry alone is told by its environment: how people sign in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from common.settings import Settings

_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_SHORTEST_SECRET = 32


def on_loopback(host: str | None) -> bool:
    """Whether a host is this machine, where no TLS is needed."""
    return host in _LOOPBACK


def _guarded(url: str) -> str:
    parts = urlsplit(url)
    if parts.hostname is None or parts.query or parts.fragment or parts.username:
        raise ValueError("must be a plain address such as https://accounts.example.org")
    if parts.scheme != "https" and not (parts.scheme == "http" and on_loopback(parts.hostname)):
        raise ValueError("must begin with https:// (http:// is for this machine only)")
    return url


def _guarded_base(url: str) -> str:
    return _guarded(url).rstrip("/")


Issuer = Annotated[str, AfterValidator(_guarded)]
"""An issuer identifier, compared letter by letter as OpenID Connect demands: a slash at its end counts."""
Base = Annotated[str, AfterValidator(_guarded_base)]


class OpenIdProvider(BaseModel):
    """An OpenID Connect provider. ``name`` stands in addresses, ``title`` on the button."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,31}$")
    issuer: Issuer
    client_id: str = Field(min_length=1)
    client_secret: SecretStr
    title: str | None = None

    @property
    def shown(self) -> str:
        return self.title or self.name.replace("-", " ").title()


class GitHub(BaseModel):
    """GitHub's OAuth, or that of a GitHub Enterprise server at another address."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    client_id: str = Field(min_length=1)
    client_secret: SecretStr
    url: Base = "https://github.com"
    api_url: Base = "https://api.github.com"
    name: str = Field("github", pattern=r"^[a-z0-9][a-z0-9-]{0,31}$")
    shown: str = "GitHub"


class Smtp(BaseModel):
    """Where mail is handed in. ``tls`` from the first byte, else STARTTLS; neither is demanded on this machine."""

    model_config = ConfigDict(frozen=True)

    host: str
    port: int
    tls: bool
    user: str | None
    password: SecretStr | None

    @classmethod
    def parse(cls, url: str) -> Smtp:
        """Read ``smtps://user:password@host:465`` or ``smtp://…:587``. Raises ``ValueError``."""
        parts = urlsplit(url)
        if parts.scheme not in ("smtp", "smtps") or parts.hostname is None or parts.path not in ("", "/"):
            raise ValueError("must look like smtps://user:password@mail.example.org:465 or smtp://mail.example.org:587")
        tls = parts.scheme == "smtps"
        return cls(
            host=parts.hostname,
            port=parts.port or (465 if tls else 587),
            tls=tls,
            user=None if parts.username is None else unquote(parts.username),
            password=None if parts.password is None else SecretStr(unquote(parts.password)),
        )


class PeopleSettings(BaseSettings):
    """How people sign in. With none of it, only an operator's word can claim an agent.

    Raises ``pydantic.ValidationError`` naming each variable that is wrong.
    """

    model_config = SettingsConfigDict(env_prefix="MAFL_REGISTRY_", extra="ignore", populate_by_name=True)

    issuers: tuple[OpenIdProvider, ...] = Field((), description="JSON list of {name, issuer, client_id, client_secret}")
    github: GitHub | None = Field(
        None, description="JSON {client_id, client_secret}; url and api_url for another server"
    )
    smtp: SecretStr | None = Field(None, description="smtps://user:password@host:465, or smtp:// with STARTTLS")
    mail_from: str = Field("MAFL <no-reply@localhost>", description="the sender of links by mail")
    mail_outbox: Path | None = Field(
        None,
        validation_alias="MAFL_MAIL_OUTBOX",
        description="embedded stacks: a directory that takes mail as .eml files instead of sending it",
    )
    session_secret: SecretStr | None = Field(
        None, description="signs cookies and forms; another one signs everybody out and does no more"
    )
    identity_secret: SecretStr | None = Field(
        None, description="turns accounts into owners; with another one nobody is known any more: never change it"
    )

    @property
    def providers(self) -> Sequence[OpenIdProvider | GitHub]:
        return (*self.issuers, *(() if self.github is None else (self.github,)))

    @property
    def by_mail(self) -> bool:
        return self.smtp is not None or self.mail_outbox is not None

    @property
    def enabled(self) -> bool:
        """Whether anybody can sign in."""
        return bool(self.providers) or self.by_mail

    def check(self, settings: Settings) -> PeopleSettings:
        """These settings, where they fit the stack's. Raises ``ValueError``."""
        names = [provider.name for provider in self.providers]
        if len(set(names)) != len(names) or {"mail", "callback", "out", "with"} & set(names):
            raise ValueError("MAFL_REGISTRY_ISSUERS: every provider needs a name of its own, and not a reserved one")
        if self.smtp is not None:
            Smtp.parse(self.smtp.get_secret_value())
        if settings.environment == "production":
            if self.mail_outbox is not None:
                raise ValueError("MAFL_MAIL_OUTBOX leaves sign-in links in files; a production stack sends its mail")
            for name, secret in (("SESSION", self.session_secret), ("IDENTITY", self.identity_secret)):
                if self.enabled and (secret is None or len(secret.get_secret_value()) < _SHORTEST_SECRET):
                    raise ValueError(
                        f"MAFL_REGISTRY_{name}_SECRET must have {_SHORTEST_SECRET} random characters or more"
                    )
            if self.enabled and not settings.public_url.startswith("https://"):
                raise ValueError("MAFL_PUBLIC_URL must begin with https:// where people sign in")
        return self
