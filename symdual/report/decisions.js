"use strict";
// Draws the decisions of an episode from the data in the page. Names are only ever set as text, never as markup or code.

const data = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 460, HEIGHT = 190, LEFT = 52, RIGHT = 10, TOP = 8, BOTTOM = 26;
const slider = document.getElementById("step");
const play = document.getElementById("play");
let timer = null;

function add(parent, name, attributes = {}, text = null, space = null) {
  const node = space ? document.createElementNS(space, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== null) node.textContent = text;
  parent.appendChild(node);
  return node;
}

function short(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e5 || size < 1e-3)) return value.toExponential(1).replace("-", "−");
  return String(Number(value.toPrecision(4))).replace("-", "−");
}

function ticks(low, high, count, whole = false) {
  const raw = Math.max((high - low) / count, whole ? 1 : 0);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
  const found = [];
  for (let i = Math.ceil(low / step); i * step <= high + 1e-9 * step; i++) found.push(i * step);
  return found;
}

function range(values) {
  const known = values.filter((v) => v !== null && Number.isFinite(v));
  if (!known.length) return [-1, 1];
  let low = known.reduce((a, b) => Math.min(a, b)), high = known.reduce((a, b) => Math.max(a, b));
  const margin = 0.06 * (high - low) || Math.max(1e-9, 0.1 * Math.abs(high)) || 1;
  return [low - margin, high + margin];
}

class Chart {
  constructor(cell, title, x, y, name) {
    this.x = x; this.y = y;
    this.svg = add(cell, "svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title }, null, SVG);
    const clip = `clip-${Chart.count = (Chart.count || 0) + 1}`;
    const frame = { x: LEFT, y: TOP, width: WIDTH - LEFT - RIGHT, height: HEIGHT - TOP - BOTTOM };
    add(add(add(this.svg, "defs", {}, null, SVG), "clipPath", { id: clip }, null, SVG), "rect", frame, null, SVG);
    this.axes(name);
    this.drawing = add(this.svg, "g", { "clip-path": `url(#${clip})`, class: "drawing" }, null, SVG);
  }
  px(v) { return LEFT + (v - this.x[0]) / (this.x[1] - this.x[0]) * (WIDTH - LEFT - RIGHT); }
  py(v) { return HEIGHT - BOTTOM - (v - this.y[0]) / (this.y[1] - this.y[0]) * (HEIGHT - TOP - BOTTOM); }
  axes(name) {
    for (const v of ticks(...this.y, 4)) {
      add(this.svg, "line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: this.py(v), y2: this.py(v) }, null, SVG);
      add(this.svg, "text", { x: LEFT - 6, y: this.py(v) + 4, "text-anchor": "end" }, short(v), SVG);
    }
    const room = WIDTH - RIGHT - 7 * name.length - 12;  // for the name of the axis
    for (const v of ticks(...this.x, 6, name === "step").filter((v) => this.px(v) < room)) {
      add(this.svg, "text", { x: this.px(v), y: HEIGHT - 9, "text-anchor": "middle" }, short(v), SVG);
    }
    add(this.svg, "text", { x: WIDTH - RIGHT, y: HEIGHT - 9, "text-anchor": "end", class: "axis" }, name, SVG);
  }
  clear() { this.drawing.replaceChildren(); }
  line(part, xs, ys, stairs = false) {
    let path = "", pen = false;
    xs.forEach((x, i) => {
      if (ys[i] === null || ys[i] === undefined) { pen = false; return; }
      const px = this.px(x).toFixed(1), py = this.py(ys[i]).toFixed(1);
      path += !pen ? `M${px} ${py}` : stairs ? `H${px}V${py}` : `L${px} ${py}`;
      pen = true;
    });
    if (stairs && pen) path += `H${this.px(xs.at(-1) + 1).toFixed(1)}`;  // an input holds until the next step
    add(this.drawing, "path", { class: `line ${part}`, d: path }, null, SVG);
  }
  band(part, xs, middle, half) {
    this.between(part, xs, middle.map((m, i) => m - 2 * half[i]), middle.map((m, i) => m + 2 * half[i]));
  }
  between(part, xs, lower, upper) {
    const kept = xs.map((x, i) => [x, lower[i], upper[i]]).filter(([, l, u]) => Number.isFinite(l) && Number.isFinite(u));
    if (!kept.length) return;
    const up = kept.map(([x, , u]) => `${this.px(x).toFixed(1)} ${this.py(u).toFixed(1)}`);
    const down = kept.map(([x, l]) => `${this.px(x).toFixed(1)} ${this.py(l).toFixed(1)}`).reverse();
    add(this.drawing, "path", { class: `band ${part}`, d: `M${[...up, ...down].join("L")}Z` }, null, SVG);
  }
  vertical(part, x) {
    if (Number.isFinite(x)) {
      const at = this.px(x).toFixed(1);
      add(this.drawing, "line", { class: `mark ${part}`, x1: at, x2: at, y1: TOP, y2: HEIGHT - BOTTOM }, null, SVG);
    }
  }
  dot(part, x, y) {
    if (Number.isFinite(x) && Number.isFinite(y)) {
      add(this.drawing, "circle", { class: `dot ${part}`, cx: this.px(x).toFixed(1), cy: this.py(y).toFixed(1), r: 4 }, null, SVG);
    }
  }
}

const upTo = (k, values) => values.slice(0, k + 1);
const count = (n, start = 0) => Array.from({ length: n }, (_, i) => start + i);

// A row of charts, one for each controller, with the same axes; `values` gives what must be in view.
function row(section, title, x, name, values, draw) {
  const box = add(section, "div", { class: "row" });
  add(box, "h3", {}, title);
  const cells = add(box, "div", { class: "cells" });
  const y = range(data.controllers.flatMap(values));
  return data.controllers.map((c) => {
    const cell = add(cells, "figure", { class: `of-${c.kind}` });
    add(cell, "figcaption", {}, c.name);
    const chart = new Chart(cell, `${title}, ${c.name}`, x, y, name);
    return (k) => { chart.clear(); draw(chart, c, k); };
  });
}

const spread = (mean, half) => mean.flatMap((m, i) => [m - 2 * (half[i] || 0), m + 2 * (half[i] || 0)]);
const shownAt = (c, k) => c.decisions[Math.min(k, c.decisions.length - 1)];

function trajectory(section, i) {
  const values = (c) => [...c.states[i], ...spread(c.mean[i], c.deviation[i]), ...c.decisions.flatMap((d) => d.plan[i])];
  return row(section, data.states[i], [0, data.steps], "step", values, (chart, c, k) => {
    const d = shownAt(c, k), ahead = count(d.plan[i].length, d.k);
    chart.band("wide", ahead, d.plan[i], d.wide[i]);
    chart.band("narrow", ahead, d.plan[i], d.narrow[i]);
    chart.band("belief", count(k + 1), upTo(k, c.mean[i]), upTo(k, c.deviation[i]));
    chart.line("later", count(c.states[i].length), c.states[i]);
    chart.line("truth", count(k + 1), upTo(k, c.states[i]));
    chart.line("mean", count(k + 1), upTo(k, c.mean[i]));
    chart.line("plan", ahead, d.plan[i]);
    if (data.reference.length) chart.line("reference", count(data.steps + 1), data.reference[i]);
    chart.vertical("now", k);
  });
}

function driver(section, a) {
  const values = (c) => [...c.inputs[a], ...c.decisions.flatMap((d) => d.inputs[a])];
  return row(section, data.inputs[a], [0, data.steps], "step", values, (chart, c, k) => {
    const d = shownAt(c, k);
    chart.line("later", count(c.inputs[a].length), c.inputs[a], true);
    chart.line("mean", count(Math.min(k + 1, c.inputs[a].length)), upTo(k, c.inputs[a]), true);
    chart.line("plan", count(d.inputs[a].length, d.k), d.inputs[a], true);
    chart.dot("chosen", d.k, d.u[a]);
    chart.vertical("now", k);
  });
}

function unknown(section, j) {
  const values = (c) => [...(c.unknowns[j]?.lower || []), ...(c.unknowns[j]?.upper || []), ...(c.unknowns[j]?.truth || [])];
  return row(section, data.unknowns[j], [0, data.steps], "step", values, (chart, c, k) => {
    const own = c.unknowns[j], d = shownAt(c, k);
    if (!own) return;
    const later = d.learned[j];
    if (later) chart.between("narrow", count(later.lower.length, d.k), later.lower, later.upper);
    chart.between("belief", count(k + 1), upTo(k, own.lower), upTo(k, own.upper));
    if (own.truth) chart.line("reference", count(own.truth.length), own.truth);
    chart.line("mean", count(k + 1), upTo(k, own.mean));
    chart.vertical("now", k);
  });
}

function hidden(section, f) {
  const about = data.functions[f];
  const values = (c) => [...(about.truth || []), ...c.functions[f].flatMap((b) => spread(b.mean, b.deviation))];
  return row(section, about.title, [about.points[0], about.points.at(-1)], about.argument, values, (chart, c, k) => {
    const b = c.functions[f][Math.min(k, c.functions[f].length - 1)];
    chart.band("belief", about.points, b.mean, b.deviation);
    if (about.truth) chart.line("reference", about.points, about.truth);
    chart.line("mean", about.points, b.mean);
    chart.vertical("now", b.at);
  });
}

function cost(section, a) {
  const curves = data.controllers.flatMap((c) => c.decisions.map((d) => d.curves[a])).filter(Boolean);
  if (!curves.length) return [];
  const xs = curves.flatMap((c) => [c.values[0], c.values.at(-1)]);
  const x = [Math.min(...xs), Math.max(...xs)];
  const box = add(section, "div", { class: "row cost" });
  add(box, "h3", {}, `cost over ${data.inputs[a]}`);
  const cells = add(box, "div", { class: "cells" });
  return data.controllers.map((c) => {
    const cell = add(cells, "figure", { class: `of-${c.kind}` });
    add(cell, "figcaption", {}, c.name);
    const place = add(cell, "div");
    return (k) => {  // costs differ much from step to step: each has axes of its own
      const d = shownAt(c, k), curve = d.curves[a];
      place.replaceChildren();
      const parts = [curve.certain, curve.caution, curve.probing, curve.total];
      const chart = new Chart(place, `cost over ${data.inputs[a]}, ${c.name}`, x, range(parts.flat()), data.inputs[a]);
      chart.line("certain", curve.values, curve.certain);
      chart.line("caution", curve.values, curve.caution);
      chart.line("probing", curve.values, curve.probing);
      chart.line("total", curve.values, curve.total);
      chart.vertical("chosen", d.u[a]);
    };
  });
}

function words(section) {
  const box = add(section, "div", { class: "cells" });
  return data.controllers.map((c) => {
    const card = add(box, "div", { class: `card of-${c.kind}` });
    add(card, "h3", {}, c.name);
    const list = add(card, "dl");
    const failure = add(card, "p", { class: "bad" });
    return (k) => {
      const d = shownAt(c, k), p = d.parts;
      list.replaceChildren();
      const facts = [["input", d.u.map((u, a) => `${data.inputs[a]} = ${short(u)}`).join(", ")],
        ["cost to go", short(p[0] + p[1] + p[2] + p[3])], ["certainty-equivalent", short(p[0])],
        ["caution", short(p[1])], ["probing", short(p[2])]];
      if (p[3]) facts.push(["bonus", short(p[3])]);
      for (const [key, value] of facts) { const item = add(list, "div"); add(item, "dt", {}, key); add(item, "dd", {}, value); }
      failure.textContent = c.failure && k >= c.decisions.length - 1 ? c.failure : "";
    };
  });
}

const place = (id) => document.getElementById(id);
const draws = [
  ...words(place("decision")),
  ...data.inputs.flatMap((_, a) => cost(place("costs"), a)),
  ...data.states.flatMap((_, i) => trajectory(place("states"), i)),
  ...data.inputs.flatMap((_, a) => driver(place("inputs"), a)),
  ...data.unknowns.flatMap((_, j) => unknown(place("unknowns"), j)),
  ...data.functions.flatMap((_, f) => hidden(place("unknowns"), f)),
];

function show(k) {
  const at = Math.max(0, Math.min(data.steps, k));
  slider.value = at;
  place("now").textContent = `step ${at} of ${data.steps}`;
  document.documentElement.dataset.step = at;
  for (const draw of draws) draw(at);
}

function stop() { clearInterval(timer); timer = null; play.textContent = "Play"; }

function toggle() {
  if (timer) { stop(); return; }
  if (Number(slider.value) >= data.steps) show(0);
  play.textContent = "Pause";
  timer = setInterval(() => { if (Number(slider.value) >= data.steps) stop(); else show(Number(slider.value) + 1); }, 400);
}

slider.addEventListener("input", () => { stop(); show(Number(slider.value)); });
play.addEventListener("click", toggle);
document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("button")) return;
  const now = Number(slider.value);
  const to = { ArrowRight: now + 1, ArrowLeft: now - 1, PageDown: now + 5, PageUp: now - 5, Home: 0, End: data.steps }[event.key];
  if (to !== undefined) { event.preventDefault(); stop(); show(to); }
  if (event.key === " ") { event.preventDefault(); toggle(); }
});

const scheme = document.getElementById("scheme");
scheme.addEventListener("click", () => {
  const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = root.dataset.scheme || (dark ? "dark" : "light");
  root.dataset.scheme = now === "dark" ? "light" : "dark";
  scheme.textContent = now === "dark" ? "Dark" : "Light";
});
if (matchMedia("(prefers-color-scheme: dark)").matches) scheme.textContent = "Light";
show(0);
