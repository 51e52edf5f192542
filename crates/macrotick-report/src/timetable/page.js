(() => {
  const view = document.querySelector(".timetable .scroll");
  const picture = view.querySelector("svg");
  const length = Number(picture.dataset.length);
  const bottom = Number(picture.dataset.bottom);
  const bars = [...picture.querySelectorAll("[data-name]")];
  const search = document.querySelector(".controls input[type=search]");
  const found = document.querySelector(".controls output");
  // Browsers draw nothing in elements of more than some million pixels.
  const WIDEST = 4e6;
  let zoom = 1;

  // Zooms, and keeps the instant that is `at` pixels from the left edge in its place.
  const zoomTo = (next, at) => {
    const most = Math.max(1, WIDEST / view.clientWidth);
    const instant = (view.scrollLeft + at) / picture.clientWidth;
    zoom = Math.min(Math.max(next, 1), most);
    picture.style.width = `${100 * zoom}%`;
    view.scrollLeft = instant * picture.clientWidth - at;
    grid();
    names();
  };

  // Hides the names of bars that are narrower than their names.
  const LETTER = 7;
  const shares = bars.map(bar => parseFloat(bar.firstChild.getAttribute("width")) / 100);
  const least = bars.map(bar => 6 + LETTER * bar.dataset.name.length);
  const names = () => {
    const width = picture.clientWidth;
    bars.forEach((bar, index) => bar.classList.toggle("narrow", shares[index] * width < least[index]));
  };

  const label = (ns, step) => {
    if (ns === 0) return "0";
    const unit = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]].find(([size]) => ns >= size) || [1, "ns"];
    const decimals = Math.max(0, Math.ceil(Math.log10(unit[0] / step) - 1e-9));
    return `${(ns / unit[0]).toFixed(Math.min(decimals, 9))} ${unit[1]}`;
  };

  // Draws the grid of the part in view.
  const grid = () => {
    const each = length / picture.clientWidth;
    const [from, to] = [view.scrollLeft * each, (view.scrollLeft + view.clientWidth) * each];
    const rough = (to - from) / Math.max(2, view.clientWidth / 110);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = Math.max(1, [1, 2, 5, 10].map(digit => digit * power).find(size => size >= rough * 0.999));
    const ticks = picture.querySelector(".ticks");
    ticks.textContent = "";
    const add = (name, attributes, text) => {
      const element = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
      if (text) element.textContent = text;
      ticks.append(element);
    };
    for (let at = Math.floor(from / step) * step; at <= Math.min(to, length); at += step) {
      const x = `${100 * at / length}%`;
      add("line", {class: "grid", x1: x, x2: x, y1: 8, y2: bottom + 4});
      add("text", {class: "tick", x, y: bottom + 17, "text-anchor": at === 0 ? "start" : "middle"}, label(at, step));
    }
  };

  const find = text => {
    search.value = text;
    const wanted = text.trim().toLowerCase();
    const hits = bars.filter(bar => bar.dataset.name.toLowerCase().includes(wanted));
    bars.forEach(bar => bar.classList.remove("dim"));
    if (!wanted) return void (found.textContent = "");
    bars.forEach(bar => bar.classList.add("dim"));
    hits.forEach(bar => bar.classList.remove("dim"));
    const names = new Set(hits.map(bar => bar.dataset.name));
    found.textContent = `${hits.length} windows of ${names.size} tasks or groups`;
    next = 0;
    return hits;
  };

  // The next window that was found, from the left.
  let next = 0;
  const jump = () => {
    const hits = bars.filter(bar => !bar.classList.contains("dim"));
    if (!search.value.trim() || !hits.length) return;
    const rect = hits[next++ % hits.length].querySelector("rect");
    const at = parseFloat(rect.getAttribute("x")) / 100 * picture.clientWidth;
    view.scrollLeft = at - view.clientWidth / 3;
  };

  const middle = () => view.clientWidth / 2;
  const act = {"+": () => zoomTo(zoom * 2, middle()), "-": () => zoomTo(zoom / 2, middle()), "0": () => zoomTo(1, 0)};
  document.querySelectorAll(".controls button").forEach(button => {
    button.onclick = act[button.dataset.key];
  });
  view.addEventListener("wheel", event => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoomTo(zoom * (event.deltaY < 0 ? 1.25 : 0.8), event.clientX - view.getBoundingClientRect().left);
  }, {passive: false});
  document.addEventListener("keydown", event => {
    const typing = event.target === search || event.ctrlKey || event.metaKey || event.altKey;
    if (!typing && act[event.key]) act[event.key]();
  });
  search.addEventListener("input", () => find(search.value));
  search.addEventListener("keydown", event => event.key === "Enter" && jump());
  const toggle = name => find(search.value === name ? "" : name);
  bars.forEach(bar => bar.addEventListener("click", () => toggle(bar.dataset.name)));
  document.querySelectorAll("#tasks tbody tr").forEach(row => {
    row.onclick = () => toggle(row.cells[0].textContent);
  });
  document.querySelectorAll(".controls [data-chain]").forEach(box => {
    const arrows = picture.querySelectorAll(`.arrow[data-chain="${box.dataset.chain}"]`);
    box.onchange = () => arrows.forEach(arrow => arrow.classList.toggle("off", !box.checked));
    box.onchange();
  });
  let drawing = 0;
  const redraw = () => {
    cancelAnimationFrame(drawing);
    drawing = requestAnimationFrame(grid);
  };
  view.addEventListener("scroll", redraw);
  addEventListener("resize", () => { redraw(); names(); });
  document.querySelector(".controls").hidden = false;
  grid();
  names();
})();
