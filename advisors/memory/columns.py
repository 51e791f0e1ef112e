"""Columns that several advisors of memory show in their evidence."""

from __future__ import annotations

from advisor_core.api.advisors import Column

SIZE = Column("size", "float", "B", "size of these tensors", zh="大小")
TENSORS = Column("tensors", "int", "count", "tensors", zh="tensor 数")
RESERVED = Column("reserved", "float", "B", "most memory that was reserved", zh="已预留")
