"""The live view in a notebook, in a kernel that really runs."""

import re
from html import unescape
from pathlib import Path
from typing import Any, Final

from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from tests.commands.processes import PATIENCE_S
from tests.stores.servers import credentials, loopback

RUN: Final = """
import sys
import serverless_bench as sbench
from serverless_bench.job.target import Target

def write(folder):
    job = sbench.JobSpec(
        workload="write", target=Target(bucket="b", endpoint_url={url!r}), executor="inline",
        number=1, concurrency=1, objects=1, size=4096, duration=6.0,
    )
    return sbench.run_job(job, f"{{folder}}/run", progress=True)
"""


class Watching(NotebookClient):
    """Keeps the outputs of cells, and their replacements."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.seen: list[tuple[int, str, str]] = []

    def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:
        kind, content = msg["msg_type"], msg["content"]
        if kind in {"display_data", "update_display_data"}:
            self.seen.append((cell_index, kind, content["data"]["text/html"]))
        return super().process_message(msg, cell, cell_index)


def plain(html: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", html))


def test_a_notebook_shows_a_run_and_runs_without_a_display_too(tmp_path: Path) -> None:
    cells = [
        f"len(write({str(tmp_path / 'shown')!r}).operations['kind']) > 0",
        "sys.modules['IPython.display'] = None",
        f"len(write({str(tmp_path / 'unseen')!r}).operations['kind']) > 0",
    ]
    with loopback("--latency", "fixed:20ms", log=tmp_path / "log") as server:
        first = RUN.format(url=server.endpoint_url)
        notebook = new_notebook(cells=[new_code_cell(text) for text in (first, *cells)])  # type: ignore[no-untyped-call]
        client = Watching(notebook, timeout=round(PATIENCE_S), kernel_name="python3")
        with credentials(server.environment):
            client.execute()
    shown = [html for cell, _, html in client.seen if cell == 1]
    assert [kind for cell, kind, _ in client.seen if cell == 1] == [
        "display_data",
        *["update_display_data"] * (len(shown) - 1),
    ]
    assert "functions  1 waiting, 0 done of 1" in plain(shown[0])
    middle = [plain(html) for html in shown[1:-1]]
    assert any(re.search(r"^put +\d", text, re.MULTILINE) for text in middle), middle
    assert any("1 running" in text for text in middle), middle
    # The view is removed at the end, and widgets are not needed.
    assert shown[-1] == ""
    assert not [cell for cell, *_ in client.seen if cell == 3]
    outputs = [cell.outputs for cell in notebook.cells]
    assert [[out.output_type for out in each] for each in outputs] == [
        [],
        ["display_data", "execute_result"],
        [],
        ["execute_result"],
    ], outputs
    assert outputs[1][0]["data"]["text/html"] == ""
