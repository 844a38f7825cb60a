"""Move the fragments of `changelog.d` into CHANGELOG.md: `python distribution/changelog.py [VERSION]`.

A fragment is one change as a user notices it, in a file NAME.KIND.md, such as `changelog.d/standby.added.md`. Without a
version the fragments join "Unreleased"; with one, "Unreleased" becomes that version, dated today, and a new one begins.
"""

import datetime
import re
import sys
from pathlib import Path

KINDS = ("added", "changed", "removed", "fixed")
MOST_WORDS = 60
NAME = re.compile(rf"[a-z0-9-]+\.({'|'.join(KINDS)})\.md")
RELEASED = re.compile(r"^## \[(?!Unreleased\])", re.MULTILINE)


def fragments(folder: Path) -> dict[str, list[str]]:
    """Texts of the fragments of a folder by kind; refuse a name or a length that breaks the rules."""
    found: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for path in sorted(folder.glob("*.md")):
        if path.name == "README.md":
            continue
        if not (name := NAME.fullmatch(path.name)):
            raise SystemExit(f"{path.name}: call it NAME.KIND.md, where KIND is one of {', '.join(KINDS)}")
        text = path.read_text().strip()
        if not 0 < len(text.split()) <= MOST_WORDS:
            raise SystemExit(f"{path.name}: write 1 to {MOST_WORDS} words, not {len(text.split())}")
        if re.search(r"^#", text, re.MULTILINE):
            raise SystemExit(f"{path.name}: leave headings out; the name of the file says where it goes")
        found[name[1]].append(text)
    return found


def assembled(changelog: str, found: dict[str, list[str]]) -> str:
    """The changelog with the fragments at the ends of their headings under "Unreleased"."""
    start = changelog.index("## [Unreleased]\n")
    end = next((match.start() for match in RELEASED.finditer(changelog)), len(changelog))
    parts = re.split(r"^### (\w+)\n", changelog[start:end], flags=re.MULTILINE)
    sections = {heading.lower(): text.strip() for heading, text in zip(parts[1::2], parts[2::2], strict=True)}
    for kind, texts in found.items():
        items = ["- " + text.replace("\n", "\n  ") for text in texts]
        sections[kind] = "\n".join(filter(None, [sections.get(kind, ""), *items]))
    written = [f"### {kind.capitalize()}\n\n{text}\n" for kind, text in sections.items() if text]
    return changelog[:start] + "\n".join([parts[0].strip() + "\n", *written, changelog[end:]])


def released(changelog: str, version: str, today: datetime.date) -> str:
    """The changelog in which "Unreleased" has become a version, under an empty one."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version) or f"## [{version}]" in changelog:
        raise SystemExit(f"the version {version} is there, or is not written as 0.2.0: choose another")
    return changelog.replace("## [Unreleased]", f"## [Unreleased]\n\n## [{version}] - {today}", 1)


def main(root: Path, versions: list[str]) -> None:
    """Assemble, release where a version is given, and delete the fragments."""
    found, file = fragments(root / "changelog.d"), root / "CHANGELOG.md"
    text = assembled(file.read_text(), found)
    for version in versions:
        text = released(text, version, datetime.date.today())
    file.write_text(text)
    for path in (root / "changelog.d").glob("*.*.md"):
        path.unlink()


if __name__ == "__main__":
    main(Path(__file__).parents[1], sys.argv[1:])
