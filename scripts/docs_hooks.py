"""What mkdocs asks while it builds: pages that are made from the code or lie outside of docs/.

Pages are written so that their links work in the repository, too: `../CONTRIBUTING.md` is a page
of the site here.
"""

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))
from docs_reference import PAGES

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that are no files of docs/."""
    for path, make in PAGES.items():
        files.append(File.generated(config, path, content=make()))
    for path, name in OUTSIDE.items():
        text = (ROOT / name).read_text().replace("](docs/", "](")
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Leads links out of docs/ to the pages that these files are on the site."""
    for path, name in OUTSIDE.items():
        up = "../" * page.file.src_uri.count("/")
        markdown = re.sub(rf"\]\((?:\.\./)+{name}", f"]({up}{path}", markdown)
    return markdown
