"""``mafl verify`` and ``mafl key``: check what was committed to, with no server; make the key that signs it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mafl.cli.output import CommandError, Json, emit, examples

if TYPE_CHECKING:
    from rich.console import Console

key_group = typer.Typer(name="key", help="The operator's signing key.", no_args_is_help=True)

MOST_SHOWN = 50


def install(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command(
        "verify",
        epilog=examples(
            "mafl verify week-4", "mafl verify week-4 --key 3d4017c3e843895a… --json", "mafl verify my-receipts"
        ),
    )(verify)
    app.add_typer(key_group)


def verify(
    folder: Annotated[
        Path,
        typer.Argument(
            help="What `mafl contest download` wrote, or your own receipt.json and proof.json; folders within too.",
            exists=True,
            file_okay=False,
        ),
    ],
    key: Annotated[
        str | None,
        typer.Option(
            help="The operator's public key, in base64 or hexadecimal digits, from elsewhere than the folder. Without "
            "it the folder's own keys.json is believed: trust on first use."
        ),
    ] = None,
    stamp_roots: Annotated[
        Path | None,
        typer.Option(help="Certificates (PEM) of RFC 3161 authorities, to check a root's stamp by.", dir_okay=False),
    ] = None,
    json: Json = False,
) -> None:
    """Check a downloaded contest, or your own receipts and proofs, with no server. Exits with 1 if anything is wrong.

    Every opened text is checked against its leaf, every leaf against the root, the root against its signature; leaves
    that were never opened are counted.
    """
    try:
        from cryptography.x509 import load_pem_x509_certificates

        from common import commitment
        from mafl import verify as verifying
    except ImportError as error:
        raise CommandError("not-installed", "This needs mafl-common beside the client", str(error)) from error
    try:
        given = None if key is None else commitment.public_key(key)
        roots = [] if stamp_roots is None else load_pem_x509_certificates(stamp_roots.read_bytes())
        report = verifying.verify(folder, given, roots)
    except commitment.KeyMalformed as error:
        raise CommandError("key-malformed", "--key is no public key", str(error)) from error
    except verifying.NothingToVerify as error:
        raise CommandError("nothing-to-verify", "There is nothing to check", str(error)) from error
    except OSError as error:
        raise CommandError("file-unreadable", "A file cannot be read", str(error)) from error
    except ValueError as error:
        raise CommandError("stamp-roots-malformed", f"{stamp_roots} holds no certificates", str(error)) from error
    document = report.document()
    emit(document, json, lambda console: _show(console, document))
    if not report.ok:
        raise typer.Exit(1)


def _show(console: Console, document: dict[str, Any]) -> None:
    for made in document["contests"]:
        if made["opened"] is None:
            counted = f"{made['entries']} lineups, {made['leaves']} leaves; what is opened was not checked"
        else:
            counted = (
                f"{made['entries']} lineups, {made['entries_opened']} opened; {made['leaves']} leaves, "
                f"{made['opened']} opened, {made['never_opened']} never opened"
            ) + (f", {made['redacted']} redacted" if made["redacted"] else "")
        console.print(
            f"{made['contest']}: {counted}; root {made['root']}",
            soft_wrap=True,
        )
        if made["stamp"] is not None:
            how = "" if made["stamp"]["checked"] else " (unchecked: give --stamp-roots)"
            console.print(f"  stamped at {made['stamp']['at']}{how}", markup=False)
    for proof in document["proofs"]:
        console.print(
            f"{proof['contest']}: revision {proof['revision']} of {proof['agent']} is under the root {proof['root']}"
        )
    for receipt in document["receipts"]:
        says = {True: "is what was committed to", False: "is NOT what was committed to", None: "is sound"}
        console.print(
            f"{receipt['file']}: revision {receipt['revision']} of {receipt['agent']} in {receipt['contest']} "
            f"{says[receipt['committed']]}"
            + (f"; redacted: {', '.join(receipt['redacted'])}" if receipt["redacted"] else ""),
            soft_wrap=True,
        )
    for one in document["keys"]:
        console.print(f"signed with the key {one['key_id']} (trust: {one['trust']})")
    for failure in document["failures"][:MOST_SHOWN]:
        where = failure["file"] + (f", line {failure['line']}" if failure["line"] else "")
        console.print(
            f"WRONG {failure['code']} in {where}: {failure['detail']}", markup=False, style="red", soft_wrap=True
        )
    if len(document["failures"]) > MOST_SHOWN:
        console.print(f"… and {len(document['failures']) - MOST_SHOWN} more; --json has them all")
    if document["ok"]:
        console.print("all of it is as it was committed to")
    elif {failure["code"] for failure in document["failures"]} == {"refused"}:
        console.print("NOT all of it could be checked; nothing that was is wrong")
    else:
        console.print("NOT as it was committed to")


@key_group.command("generate", epilog=examples("mafl key generate --out signing.pem", "mafl key generate --json"))
def generate(
    out: Annotated[
        Path | None,
        typer.Option(help="Write the private key there as PEM, readable by you alone, and print it nowhere."),
    ] = None,
    json: Json = False,
) -> None:
    """Make an Ed25519 key for MAFL_SIGNING_KEY, which receipts and roots are signed with.

    Publish its public key where people find it without asking your server. When you replace it, list the old public
    key in MAFL_SIGNING_KEYS_RETIRED.
    """
    try:
        from common.commitment import Signer
    except ImportError as error:
        raise CommandError("not-installed", "This needs mafl-common beside the client", str(error)) from error
    signer = Signer.generate()
    document = {"key_id": signer.key_id, "public_key": signer.public_key.hex()}
    if out is None:
        document["signing_key"] = signer.seed
    else:
        try:
            with os.fdopen(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(signer.pem)
        except OSError as error:
            raise CommandError("file-unwritable", f"{out} cannot be written", error.strerror or str(error)) from error

    def show(console: Console) -> None:
        console.print(f"key id      {document['key_id']}", markup=False)
        console.print(f"public key  {document['public_key']}", markup=False)
        console.print(
            f"private key in {out}" if out else f"MAFL_SIGNING_KEY={document['signing_key']}",
            markup=False,
            soft_wrap=True,
        )

    emit(document, json, show)
