"""Renews attnsim/__init__.pyi: the properties of its classes as the module has them, with types and documentation.

    PYTHONPATH=build/python python3 python/stub.py

Signatures of constructors, methods and functions are written by hand: the module does not know what they take.
"""

import ast
import re
import sys
import textwrap
from pathlib import Path

# The built package, not the sources beside this file.
sys.path = [folder for folder in sys.path if Path(folder).resolve() != Path(__file__).resolve().parent]
import attnsim  # noqa: E402

STUB = Path(__file__).parent / "attnsim/__init__.pyi"


def property_type(owner, name, fget):
    """As a stub has it: pybind11 writes the type that a getter returns into its documentation."""
    type_name = re.search(r"-> (.*)", fget.__doc__)[1].replace("attnsim._attnsim.", "")
    parts = "".join(word.capitalize() for word in name.split("_"))
    if type_name == "object" and hasattr(owner, parts):
        return parts
    return type_name.replace("Tuple[", "tuple[").replace("List[", "list[")


def members(owner):
    """Named tuples and properties, as lines of the class's stub."""
    for name, member in vars(owner).items():
        if hasattr(member, "_fields"):
            fields = [f"    {field}: {of.__name__}" for field, of in member.__annotations__.items()]
            yield from [f"class {name}(NamedTuple):", *fields, ""]
    for name, member in vars(owner).items():
        if isinstance(member, property):
            head = f"def {name}(self) -> {property_type(owner, name, member.fget)}:"
            yield "@property"
            yield from [head, f'    """{member.__doc__}"""'] if member.__doc__ else [f"{head} ..."]


def is_generated(node):
    if isinstance(node, ast.ClassDef):
        return True
    return isinstance(node, ast.FunctionDef) and any(getattr(d, "id", "") == "property" for d in node.decorator_list)


def renewed(text):
    lines = text.split("\n")
    for owner in reversed([node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]):
        old = [node for node in owner.body if is_generated(node)]
        if not old:
            continue
        first = min([old[0].lineno, *(d.lineno for d in old[0].decorator_list)])
        new = textwrap.indent("\n".join(members(getattr(attnsim, owner.name))), "    ").split("\n")
        lines[first - 1:old[-1].end_lineno] = new
    return "\n".join(lines)


if __name__ == "__main__":
    STUB.write_text(renewed(STUB.read_text()))
