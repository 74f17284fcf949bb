#!/usr/bin/env python3
"""Lists import cycles of more than three files in the workspace's crates.

A file imports another if it names an item that the other defines: in `use`, or by a path. A name is followed through re-exports to the
file that defines it, so a `mod.rs` that only re-exports imports nothing. Code under `#[cfg(test)]` does not count. Methods are invisible
to this: it reads names, not types.

    .ci/cycles.py                  all crates; for information, always succeeds
    .ci/cycles.py --check          fails if a crate has a cycle of more than three files
    .ci/cycles.py --edges feed     also why: the imports within each cycle, with the names imported
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILES_MAX = 3

TOKEN = re.compile(
    r"""(?P<skip>//[^\n]*|/\*.*?\*/|b?r(?P<hash>\#*)".*?"(?P=hash)|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^'\\])')"""
    r"""|(?P<life>'\w+)|(?P<word>(?:r\#)?[A-Za-z_]\w*)|(?P<path>::)|(?P<other>\S)""",
    re.S,
)
ITEM = {"fn", "struct", "enum", "union", "trait", "type", "const", "static", "mod", "macro_rules"}
PATH_ROOTS = {"crate", "self", "super"}


def tokens(text):
    """Words, `::` and single signs; without comments, texts and lifetimes."""
    found = [m.group() for m in TOKEN.finditer(text) if not m.group("skip") and not m.group("life")]
    return [token.removeprefix("r#") for token in found]


def end_of_group(code, at):
    """The position after the bracket that closes the one at `at`."""
    depth = 0
    while at < len(code):
        depth += code[at] in "([{"
        depth -= code[at] in ")]}"
        at += 1
        if depth == 0:
            return at
    return at


def without_tests(code):
    """Removes items under `#[cfg(test)]` and `#[test]`."""
    kept = []
    at = 0
    while at < len(code):
        if code[at : at + 2] == ["#", "["]:
            end = end_of_group(code, at + 1)
            attribute = code[at + 2 : end - 1]
            if attribute[:1] == ["test"] or attribute[:3] == ["cfg", "(", "test"]:
                at = end
                while code[at : at + 2] == ["#", "["]:
                    at = end_of_group(code, at + 1)
                # The item ends with its block or its semicolon.
                while at < len(code) and code[at] not in ("{", ";"):
                    at = end_of_group(code, at) if code[at] in "([" else at + 1
                is_use = "use" in kept[-2:]
                at = end_of_group(code, at) if at < len(code) and code[at] == "{" and not is_use else at + 1
            else:
                at = end
            continue
        kept.append(code[at])
        at += 1
    return kept


class Module:
    """A module of a crate, in its own file or within another's."""

    def __init__(self, name, file, parent):
        self.name = name
        self.file = file
        self.parent = parent
        self.children = {}
        self.items = set()
        # Names that `use` binds here, by the paths they stand for; and whether each is a re-export alone.
        self.uses = {}
        self.reexports = set()
        self.globs = []
        self.code = []

    def root(self):
        return self if self.parent is None else self.parent.root()


def use_tree(code, at, prefix, found):
    """Reads what follows `use` up to its end, as pairs of a path and the name that it binds."""
    path = list(prefix)
    while at < len(code):
        token = code[at]
        if token == "::":
            at += 1
        elif token == "{":
            at += 1
            while code[at] != "}":
                at = use_tree(code, at, path, found)
                at += code[at] == ","
            return at + 1
        elif token == "*":
            found.append((path, "*"))
            return at + 1
        elif token == "as":
            found.append((path, code[at + 1]))
            return at + 2
        elif token in (",", "}", ";"):
            break
        else:
            path.append(token)
            at += 1
            if at < len(code) and code[at] in (",", "}", ";"):
                break
    if path[-1:] == ["self"] and len(path) > 1:
        path = path[:-1]
    found.append((path, path[-1]))
    return at


def read_module(module, code, folder):
    """Fills a module from its tokens, and those within it."""
    at = 0
    depth = 0
    while at < len(code):
        token = code[at]
        before = code[at - 1] if at else ""
        if token in "([{":
            depth += 1
        elif token in ")]}":
            depth -= 1
        elif token == "use" and code[at + 1 : at + 2] != ["<"]:
            is_public = before in ("pub", ")")
            found = []
            at = use_tree(code, at + 1, [], found)
            for path, name in found:
                if name == "*":
                    module.globs.append((path, is_public))
                elif depth == 0 or name not in module.uses:
                    module.uses[name] = path
                    if is_public:
                        module.reexports.add(name)
            continue
        elif token == "mod" and depth == 0 and at + 2 < len(code):
            name = code[at + 1]
            if code[at + 2] == ";":
                file = next((f for f in (folder / f"{name}.rs", folder / name / "mod.rs") if f.exists()), None)
                if file:
                    child = Module(name, file, module)
                    module.children[name] = child
                    read_module(child, without_tests(tokens(file.read_text())), folder / name)
                at += 3
                continue
            if code[at + 2] == "{":
                end = end_of_group(code, at + 2)
                child = Module(name, module.file, module)
                module.children[name] = child
                read_module(child, code[at + 3 : end - 1], folder / name)
                at = end
                continue
        elif token in ITEM and depth == 0 and at + 1 < len(code):
            name = code[at + 2] if code[at + 1] == "!" else code[at + 1]
            module.items.add(name)
        module.code.append(token)
        at += 1


def resolve(module, path, seen=()):
    """The file that defines what a path means in a module; None if it is of another crate."""
    here = module
    at = 0
    while at < len(path) and path[at] in PATH_ROOTS:
        if path[at] == "crate":
            here = module.root()
        elif path[at] == "super":
            here = here.parent or here
        at += 1
    is_rooted = at > 0
    while at < len(path):
        name = path[at]
        if name in here.children:
            here = here.children[name]
            at += 1
            is_rooted = True
            continue
        if name in here.items:
            return here.file
        key = (id(here), name)
        if key in seen:
            return None
        if name in here.uses:
            target = here.uses[name]
            if target[:1] == [name] and len(target) == 1:
                return None
            return resolve(here, target + path[at + 1 :], (*seen, key))
        for glob, _ in here.globs:
            found = resolve(here, glob + path[at:], (*seen, key))
            if found:
                return found
        # A macro, a generated item, or what another crate has.
        return here.file if is_rooted and at == len(path) - 1 and not seen else None
    return here.file if is_rooted else None


def imports(module, edges):
    """Adds the imports of a module and of those within it to `edges`: file → file → names."""

    def note(path):
        target = resolve(module, path)
        if target and target != module.file:
            edges[module.file][target].add("::".join(path))

    code = module.code
    words = set(code)
    for name, path in module.uses.items():
        if name in module.reexports and name not in words:
            continue
        is_module = points_at_module(module, path)
        if not is_module:
            note(path)
    for glob, is_public in module.globs:
        if not is_public:
            note(glob)
    for at, token in enumerate(code):
        if code[at + 1 : at + 2] != ["::"] or (at and code[at - 1] == "::"):
            continue
        if token not in PATH_ROOTS and token not in module.children and token not in module.uses:
            continue
        path = [token]
        next_at = at + 1
        while code[next_at : next_at + 1] == ["::"] and re.match(r"[A-Za-z_]", code[next_at + 1]):
            path.append(code[next_at + 1])
            next_at += 2
        note(path)
    for child in module.children.values():
        imports(child, edges)


def points_at_module(module, path):
    """Whether a path names a module of this crate, of which only what is used of it counts."""
    here = module
    for name in path:
        if name == "crate":
            here = module.root()
        elif name == "super":
            here = here.parent or here
        elif name == "self":
            continue
        elif name in here.children:
            here = here.children[name]
        else:
            return False
    return True


def components(edges):
    """Strongly connected components, by Tarjan's algorithm."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        for other in edges.get(node, {}):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on_stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            component = []
            while True:
                other = stack.pop()
                on_stack.remove(other)
                component.append(other)
                if other == node:
                    break
            found.append(component)

    for node in list(edges):
        if node not in index:
            visit(node)
    return found


def edges_of(source):
    edges = defaultdict(lambda: defaultdict(set))
    for file in [source / "lib.rs", source / "main.rs", *sorted((source / "bin").glob("*.rs"))]:
        if file.exists():
            root = Module("crate", file, None)
            read_module(root, without_tests(tokens(file.read_text())), source)
            imports(root, edges)
    return edges


def main():
    sys.setrecursionlimit(10_000)
    arguments = sys.argv[1:]
    wanted = [name for name in arguments if not name.startswith("--")]
    failed = False
    for folder in sorted((ROOT / "crates").iterdir()):
        source = folder / "src"
        if not source.is_dir() or wanted and folder.name.removeprefix("hoplake-") not in wanted and folder.name not in wanted:
            continue
        edges = edges_of(source)
        for component in sorted(components(edges), key=len, reverse=True):
            if len(component) <= FILES_MAX:
                continue
            failed |= "--check" in arguments
            names = sorted(str(file.relative_to(source)) for file in component)
            print(f"{folder.name}: a cycle of {len(component)} files: {', '.join(names)}")
            if "--edges" in arguments:
                for file in sorted(component):
                    for other in sorted(set(edges[file]) & set(component)):
                        what = ", ".join(sorted(edges[file][other]))
                        print(f"    {file.relative_to(source)} → {other.relative_to(source)}: {what}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
