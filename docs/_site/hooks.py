"""What mkdocs does beside its own: pages that are made from the code or lie outside `docs/`, and links that leave it.

Links in the pages are relative to the repository, so that they work in an editor and on a forge. On the site a link to
another page stays one, and a link to code becomes the code's path.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from ablations.cli.reference import commands_page
from ablations.study.reference import sweep_reference
from scalerl.recipe.reference import settings_page

ROOT = Path(__file__).parents[2]
FROM_CODE = {"commands.md": commands_page, "sweep_file.md": sweep_reference, "recipes.md": settings_page}
"""Pages that are made whenever the site is: every command, every key of a sweep file, every setting."""
OUTSIDE = {"changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md"}
"""Pages of the site that stand at the top of the repository."""
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from the code and from outside."""
    for name, page in FROM_CODE.items():
        files.append(File.generated(config, name, content=page()))
    for name, path in OUTSIDE.items():
        files.append(File.generated(config, name, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn the links of one page."""
    pages = {file.abs_src_path or str(ROOT / "docs" / file.src_uri): file.src_uri for file in files}
    source = Path(page.file.abs_src_path or ROOT / "docs" / page.file.src_uri)

    def turned(link: re.Match[str]) -> str:
        text, target, anchor = link.group(1), link.group(2), link.group(3) or ""
        path = (source.parent / target).resolve()
        if "://" in target or not path.is_relative_to(ROOT):
            return link.group()
        if str(path) in pages:
            return (
                f"[{text}]({posixpath.relpath(pages[str(path)], posixpath.dirname(page.file.src_uri) or '.')}{anchor})"
            )
        if not path.exists():
            return link.group()  # mkdocs says what is missing
        name = path.relative_to(ROOT).as_posix()
        return f"`{name}`" if text.strip("`").rstrip("/") == name else f"{text} (`{name}`)"

    return LINK.sub(turned, markdown)
