"use strict";
// The page is whole without this: it draws the pictures again, so that they can be zoomed and
// asked, and sorts tables. All charts with a time axis show the same stretch of it.
(() => {
  const timed = [];
  let shown = null;

  const show = (from, to) => {
    const end = timed[0].end;
    const width = Math.min(end, Math.max(end / 1000, to - from));
    const start = Math.min(Math.max(0, from), end - width);
    shown = [start, start + width];
    for (const { view } of timed) view.signal("t0", shown[0]).signal("t1", shown[1]).runAsync();
  };
  const zoom = (factor, at = (shown[0] + shown[1]) / 2) =>
    show(at - (at - shown[0]) * factor, at + (shown[1] - at) * factor);
  const move = (share) => {
    const by = (shown[1] - shown[0]) * share;
    show(shown[0] + by, shown[1] + by);
  };
  const actions = {
    "+": ["+", "Zoom in", () => zoom(0.5)],
    "-": ["−", "Zoom out", () => zoom(2)],
    ArrowLeft: ["←", "Earlier", () => move(-0.25)],
    ArrowRight: ["→", "Later", () => move(0.25)],
    0: ["Whole run", "Show the whole run", () => show(0, timed[0].end)],
  };

  const secondsAt = (event, picture, view) => {
    const left = picture.getBoundingClientRect().left + view.origin()[0];
    return view.scale("x").invert(event.clientX - left);
  };

  const control = (figure, picture, view) => {
    const controls = document.createElement("div");
    controls.className = "controls";
    for (const [text, name, act] of Object.values(actions)) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = text;
      button.ariaLabel = button.title = name;
      button.addEventListener("click", act);
      controls.append(button);
    }
    figure.prepend(controls);
    figure.addEventListener("keydown", (event) => {
      const action = actions[event.key === "=" ? "+" : event.key];
      if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      action[2]();
    });
    picture.addEventListener("dblclick", (event) => zoom(0.5, secondsAt(event, picture, view)));
    picture.addEventListener("wheel", (event) => {
      // The plain wheel scrolls the page.
      if (!event.ctrlKey && !event.shiftKey) return;
      event.preventDefault();
      const turned = event.deltaY || event.deltaX;
      zoom(turned > 0 ? 1.25 : 0.8, secondsAt(event, picture, view));
    }, { passive: false });
    picture.addEventListener("pointerdown", (event) => {
      const began = secondsAt(event, picture, view), [from, to] = shown;
      const perPixel = (to - from) / view.width(), x = event.clientX;
      const drag = (moved) => show(from - (moved.clientX - x) * perPixel, to - (moved.clientX - x) * perPixel);
      if (began < from || to - from >= timed[0].end) return;
      picture.setPointerCapture(event.pointerId);
      picture.addEventListener("pointermove", drag);
      picture.addEventListener("pointerup", () => picture.removeEventListener("pointermove", drag), { once: true });
    });
  };

  const draw = async (figure) => {
    const picture = figure.querySelector(".picture");
    const spec = JSON.parse(figure.querySelector("script").textContent);
    const host = document.createElement("div");
    host.style.width = "100%";
    const still = [...picture.childNodes];
    picture.append(host);
    const options = { mode: "vega-lite", ast: true, renderer: "svg", actions: false };
    const { view } = await vegaEmbed(host, spec, options);
    for (const node of still) node.remove();
    const end = Number(figure.dataset.end);
    if (!figure.dataset.end) return;
    timed.push({ view, end });
    shown ??= [0, end];
    control(figure, picture, view);
  };

  const units = {
    B: 1, kB: 1e3, MB: 1e6, GB: 1e9, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40,
    ms: 1e-3, s: 1,
  };
  const keyOf = (row, column) => {
    const cell = row.cells[column];
    const value = cell.querySelector("data")?.value ?? cell.textContent.trim();
    const found = /^([-+]?[\d.,]+(?:e[-+]?\d+)?)(?: ?([a-zA-Z]+))?/.exec(value);
    return found ? Number.parseFloat(found[1].replace(/,/g, "")) * (units[found[2]] ?? 1) : value;
  };
  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number" ? a - b
      : typeof a === typeof b ? a.localeCompare(b) : typeof a === "number" ? -1 : 1;
  const sortable = (table) => {
    const body = table.tBodies[0];
    if (body.rows.length < 2) return;
    [...table.tHead.rows[0].cells].forEach((header, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      header.append(button);
      button.addEventListener("click", () => {
        const up = header.ariaSort !== "ascending";
        for (const other of table.tHead.rows[0].cells) other.ariaSort = null;
        header.ariaSort = up ? "ascending" : "descending";
        const rows = [...body.rows].map((row) => [keyOf(row, column), row]);
        rows.sort(([a], [b]) => (up ? compare(a, b) : compare(b, a)));
        body.append(...rows.map(([, row]) => row));
      });
    });
  };

  addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
  document.querySelectorAll("table.sortable").forEach(sortable);
  Promise.all([...document.querySelectorAll("figure.chart")].map(draw)).then(
    () => { document.documentElement.dataset.ready = "true"; });
})();
