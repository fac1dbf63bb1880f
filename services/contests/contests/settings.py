"""What contests alone is told by its environment: the keys that receipts and roots are signed with."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cryptography.x509 import Certificate, load_pem_x509_certificates
from pydantic import AnyHttpUrl, AwareDatetime, BaseModel, ConfigDict, Field, FilePath, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from common import commitment
from common.canonical import instant
from common.commitment import KeyMalformed, Signer
from common.settings import Settings


class RetiredKey(BaseModel):
    """A key that signs nothing any more and whose signatures still hold, but none that it would make now."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    public_key: str = Field(description="32 bytes, in base64 or hexadecimal digits")
    retired_at: AwareDatetime

    @field_validator("public_key")
    @classmethod
    def _sound(cls, given: str) -> str:
        return commitment.public_key(given).hex()

    def document(self) -> dict[str, str | None]:
        """As ``GET /api/v1/keys`` shows it."""
        return _key(bytes.fromhex(self.public_key), self.retired_at)


class Keyring:
    """The key that signs, and those that did."""

    def __init__(self, signer: Signer, retired: tuple[RetiredKey, ...] = ()) -> None:
        self.signer = signer
        self.retired = retired

    def documents(self) -> list[dict[str, str | None]]:
        """All public keys, the one in use first."""
        return [_key(self.signer.public_key, None), *(key.document() for key in self.retired)]

    def document(self) -> dict[str, Any]:
        """What ``GET /api/v1/keys`` answers: the keys, signed with the one in use, which vouches for the others."""
        listed = self.documents()
        signature = self.signer.sign(commitment.keys_statement(listed))
        signed = {"kind": commitment.KEYS_KIND, "keys": listed, "key_id": self.signer.key_id}
        return {**signed, "signature": signature.hex()}


def _key(public_key: bytes, retired_at: datetime | None) -> dict[str, str | None]:
    return {
        "key_id": commitment.key_id(public_key),
        "algorithm": "Ed25519",
        "public_key": public_key.hex(),
        "retired_at": instant(retired_at) if retired_at else None,
    }


@dataclass(frozen=True)
class Stamping:
    """The authority that stamps roots: its address, and the certificates that its own hangs by."""

    url: str
    roots: tuple[Certificate, ...]


class SigningSettings(BaseSettings):
    """The keys of receipts and roots. Raises ``pydantic.ValidationError`` naming each variable that is wrong."""

    model_config = SettingsConfigDict(env_prefix="MAFL_", extra="ignore")

    signing_key: SecretStr | None = Field(
        None,
        description="Ed25519 private key, PEM or its seed in base64; contests alone; `mafl key generate` makes one",
    )
    signing_keys_retired: tuple[RetiredKey, ...] = Field(
        (), description="JSON list of {public_key, retired_at}: keys that signed before, which stay published"
    )

    stamp_url: AnyHttpUrl | None = Field(
        None, description="address of an RFC 3161 authority that stamps each root; none: roots are not stamped"
    )
    stamp_roots: FilePath | None = Field(
        None, description="PEM file of the certificates that the authority's own hangs by; needed with stamp_url"
    )

    def stamping(self) -> Stamping | None:
        """The authority that stamps roots, if any. Raises ``ValueError`` where its certificates are missing."""
        if self.stamp_url is None:
            return None
        if self.stamp_roots is None:
            raise ValueError(
                "MAFL_STAMP_ROOTS is missing: what the authority of MAFL_STAMP_URL answers is kept for ever, so its "
                "signature is checked first. Give a PEM file of the root certificates that the authority publishes"
            )
        try:
            roots = load_pem_x509_certificates(self.stamp_roots.read_bytes())
        except ValueError as error:
            raise ValueError(f"MAFL_STAMP_ROOTS: {self.stamp_roots} holds no certificates in PEM ({error})") from None
        return Stamping(str(self.stamp_url), tuple(roots))

    def keyring(self, settings: Settings) -> Keyring:
        """The keys of a stack. Raises ``ValueError`` where a production stack has none, or one is no key."""
        if self.signing_key is not None:
            try:
                signer = Signer.read(self.signing_key.get_secret_value())
            except KeyMalformed as error:
                raise ValueError(f"MAFL_SIGNING_KEY: {error}; `mafl key generate` makes one") from None
        elif settings.environment == "production":
            raise ValueError(
                "MAFL_SIGNING_KEY is missing: receipts and roots are signed with an Ed25519 private key, PEM or its "
                "seed in base64. Make one with `mafl key generate` and give every copy of contests the same"
            )
        else:
            # One that every copy of a stack for trying things has, and that stays: it hangs by the operator's token.
            token = settings.operator_token.get_secret_value()
            signer = Signer.from_seed(hashlib.sha256(f"mafl embedded signing key {token}".encode()).digest())
        keyring = Keyring(signer, self.signing_keys_retired)
        named = [document["key_id"] for document in keyring.documents()]
        if len(set(named)) != len(named):
            raise ValueError("MAFL_SIGNING_KEYS_RETIRED: a key stands there twice, or is the one in use")
        return keyring
