"""The YAML of packages as plain data, by PyYAML and in half of its time."""

from __future__ import annotations

from typing import Any

import yaml

# Ten times as fast, where PyYAML was built with it.
_SAFE_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TEXT = "tag:yaml.org,2002:str"
_MERGE = "tag:yaml.org,2002:merge"
_DATE = "tag:yaml.org,2002:timestamp"


class PlainLoader(_SAFE_LOADER):  # type: ignore[misc]  # one of two loaders
    """Reads the same as PyYAML's safe loader in half of the time, apart from dates, which stay text. Its way round by
    generators is for nodes that hold themselves, its resolvers by path are for applications; here a node is built from
    the inside out."""

    yaml_implicit_resolvers = {  # noqa: RUF012  # as PyYAML has it
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _DATE]
        for first, resolvers in _SAFE_LOADER.yaml_implicit_resolvers.items()
    }

    def get_single_data(self) -> Any:
        node = self.get_single_node()
        return None if node is None else self._data(node)

    def _data(self, node: Any) -> Any:
        if isinstance(node, yaml.ScalarNode):
            return node.value if node.tag == _TEXT else self.construct_object(node)
        if isinstance(node, yaml.SequenceNode):
            return [self._data(item) for item in node.value]
        if any(key.tag == _MERGE for key, _ in node.value):
            self.flatten_mapping(node)
        return {self._data(key): self._data(value) for key, value in node.value}

    def resolve(self, kind: Any, value: str, implicit: Any) -> Any:
        if kind is yaml.ScalarNode and implicit[0] and value and value[0] not in self.yaml_implicit_resolvers:
            return _TEXT
        return super().resolve(kind, value, implicit)

    def descend_resolver(self, *place: object) -> None:
        pass

    def ascend_resolver(self) -> None:
        pass
