"""Call loaders so that one that raises is reported by plugin and name, and does not stop the others.

Our own are asked as they are: what they raise unasked is a mistake in npu-advisor and ends as an internal error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from advisor_core.contracts.isolation import working
from advisor_core.contracts.owner import Owner
from advisor_core.contracts.profile import InputError, Loader, Profile, RankInput, RoleError
from advisor_core.plugins.crash import crash
from advisor_core.plugins.host import Host
from advisor_core.result.run import Diagnostic
from advisor_core.text.base import Text
from advisor_core.text.messages import message


class LoaderError(InputError):
    """A plugin's loader raised: it is the loader that cannot be used, and not the input."""


@dataclass
class GuardedLoader:
    """A loader that finds nothing where another plugin's raises; ``problems`` takes why."""

    loader: Loader
    owner: Owner
    problems: list[Diagnostic] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.loader.name

    def discover(self, root: Path) -> Sequence[RankInput]:
        try:
            with working(self.owner, "which looks for profiles"):
                found = list(self.loader.discover(root))
            strange = next((source for source in found if not isinstance(source, RankInput)), None)
            if strange is not None:
                raise TypeError(f"discover gives a {type(strange).__name__} where a RankInput should be")
        except (InputError, RoleError, OSError):
            raise
        except Exception as error:
            text = _raised(self.name, self.owner, error)
            diagnostic = Diagnostic(severity="error", source=str(self.owner), message=text, about="tool")
            if diagnostic not in self.problems:  # a path for each rank of a job, and the same mistake
                self.problems.append(diagnostic)
            return []
        return found

    def traces(self, source: RankInput) -> Sequence[Path]:
        files = getattr(self.loader, "traces", None)
        try:
            return [] if files is None else [Path(file) for file in files(source)]
        except (InputError, OSError):
            raise
        except Exception as error:
            raise LoaderError(_raised(self.name, self.owner, error).en) from None

    def load(self, source: RankInput) -> Profile:
        try:
            with working(self.owner, f"which reads rank {source.rank}"):
                profile = self.loader.load(source)
            if not isinstance(profile, Profile):
                raise TypeError(f"load gives a {type(profile).__name__} where a Profile should be")
        except (InputError, RoleError):
            raise
        except Exception as error:
            raise LoaderError(_raised(self.name, self.owner, error).en) from None
        return profile


def loaders(host: Host) -> list[Loader]:
    """The loaders of all plugins, in order of registration."""
    return [guarded(host, name) for name in host.loaders]


def guarded(host: Host, name: str) -> Loader:
    """One loader, guarded unless it is our own."""
    owner = host.loaders.owner(name)
    return host.loaders[name] if owner.builtin else GuardedLoader(host.loaders[name], owner)


def problems_of(among: Sequence[Loader]) -> list[Diagnostic]:
    """The errors of the loaders while they looked for profiles."""
    return [diagnostic for loader in among if isinstance(loader, GuardedLoader) for diagnostic in loader.problems]


def _raised(loader: str, owner: Owner, error: Exception) -> Text:
    return message("engine.plugin_raised", what=f"loader {loader}", plugin=str(owner), error=crash(error))
