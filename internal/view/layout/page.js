"use strict";
// The script of weir's pages. It reads only the page itself. What it writes, it writes as text.
(() => {
  const data = JSON.parse(document.getElementById("weir-data").textContent);
  const frame = data.frame;
  const svgNS = "http" + "://www.w3.org/2000/svg";

  const make = (name, className, text) => {
    const e = document.createElement(name);
    if (className) e.className = className;
    if (text !== undefined) e.textContent = text;
    return e;
  };
  const draw = (name, attributes, text) => {
    const e = document.createElementNS(svgNS, name);
    for (const a in attributes) e.setAttribute(a, attributes[a]);
    if (text !== undefined) e.textContent = text;
    return e;
  };
  const put = (e, attributes) => { for (const a in attributes) e.setAttribute(a, attributes[a]); };
  const place = (v) => String(Math.round(v * 10) / 10);
  // bubble holds the values under the cursor, which a screen reader reads out.
  const bubble = (figure) => {
    const tip = make("div", "tip");
    tip.hidden = true;
    tip.setAttribute("role", "status");
    figure.append(tip);
    return tip;
  };

  // Values in words, as the rest of the page has them.
  const commas = (s) => {
    const [whole, fraction] = s.split(".");
    return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (fraction ? "." + fraction : "");
  };
  const significant = (v, whole) => {
    const a = Math.abs(v);
    if (whole || a >= 99.95 || a === 0) return commas(v.toFixed(0));
    return v.toFixed(a >= 9.995 ? 1 : a >= 0.9995 ? 2 : 3);
  };
  const time = (ns) => {
    for (const [unit, size] of [["min", 6e10], ["s", 1e9], ["ms", 1e6], ["µs", 1e3]]) {
      if (ns >= size * 0.9995 && (unit !== "min" || ns >= 999.5e9)) return significant(ns / size) + " " + unit;
    }
    return significant(ns, true) + " ns";
  };
  const size = (v) => {
    for (const [unit, n] of [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]) {
      if (v >= n * 0.9995) return significant(v / n) + " " + unit;
    }
    return significant(v, true) + " B";
  };
  const count = (v) => commas(Math.max(0, v).toFixed(0));
  const words = { time, bytes: size, count, rate: (v) => significant(v) + "/s", cores: (v) => v.toFixed(2) };
  const short = (s) => s.replace(".00 ", " ").replace(".0 ", " ");
  const instant = (s) => (s <= -0.05 ? "-" : "") + commas(Math.abs(s).toFixed(1)) + " s";
  const clock = (s) => {
    const r = Math.round(s * 1000) / 1000;
    if (r === 0) return "0";
    if (r <= -60) return "-" + clock(-r);
    if (Math.abs(r) < 60) return r + " s";
    const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
    const first = parts.findIndex(([n]) => r >= n);
    let rest = r;
    const said = [];
    for (const [n, unit] of parts.slice(first, first + 2)) {
      const k = n === 1 ? Math.round(rest * 1000) / 1000 : Math.floor(rest / n);
      rest -= k * n;
      if (k > 0) said.push(k + " " + unit);
    }
    return said.join(" ");
  };

  // Axes, as internal/plot makes them.
  const stepped = (low, high, step) => {
    const ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9 && ticks.length < 100; i++) ticks.push(i * step);
    return ticks;
  };
  const timeTicks = (low, high) => {
    const steps = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800];
    const step = steps.find((s) => (high - low) / s <= 12) || steps[steps.length - 1];
    return stepped(low, high, step);
  };
  const linear = (most, unit) => {
    const high = 1.15 * (most || 1);
    let step = 10 ** Math.floor(Math.log10(high / 4));
    step = [1, 2, 5, 10].map((n) => n * step).find((s) => s >= high / 4 * (1 - 1e-9));
    if (unit === "bytes") step = 2 ** Math.ceil(Math.log2(high / 4));
    return { min: 0, max: high, ticks: stepped(0, high, step) };
  };
  const logarithmic = (low, high) => {
    const steps = [];
    low = Math.max(1, low);
    high = Math.max(low, high);
    for (let ten = 10 ** Math.floor(Math.log10(low)); ten <= high * 10; ten *= 10) steps.push(ten, 2 * ten, 5 * ten);
    let first = 0, last = steps.length - 1;
    while (steps[first + 1] <= low * (1 + 1e-9)) first++;
    while (last > first + 1 && steps[last - 1] >= high * (1 - 1e-9)) last--;
    const kept = steps.slice(first, last + 1);
    const tens = (v) => Math.round(v / 10 ** Math.floor(Math.log10(v) + 1e-9)) === 1;
    return { min: kept[0], max: kept[kept.length - 1], log: true, ticks: kept.length <= 7 ? kept : kept.filter(tens) };
  };
  const part = (axis, v) => {
    const f = axis.log ? (n) => Math.log10(Math.max(n, axis.min)) : (n) => n;
    return (f(v) - f(axis.min)) / (f(axis.max) - f(axis.min));
  };

  // Latencies over time: of each part of the time how many measured messages took how long,
  // and how many that were due in it never completed, by their age at the end.
  const uncompleted = { send: "never confirmed", rtt: "never answered", e2e: "never came" };
  const unpacked = (text, parts) => {
    const bytes = atob(text);
    let at = 0;
    const varint = () => {
      let v = 0, unit = 1;
      for (;;) {
        const b = bytes.charCodeAt(at++);
        v += (b & 127) * unit;
        unit *= 128;
        if (!(b & 128)) return v;
      }
    };
    return Array.from({ length: parts }, () => {
      const counts = [];
      let tile = 0;
      for (let n = varint(); n > 0; n--) {
        tile += varint();
        counts.push([tile, varint()]);
      }
      return counts;
    });
  };
  const mosaics = {};
  for (const of of ["rtt", "e2e", "send"]) {
    const packed = (data.data || {})[of];
    if (!packed) continue;
    const counts = unpacked(packed.counts, packed.from.length), never = unpacked(packed.never, packed.from.length);
    mosaics[of] = {
      half: packed.half,
      older: packed.older ? unpacked(packed.older, 1)[0] : [],
      parts: packed.from.map((from, i) => ({ from, to: packed.to[i], counts: counts[i], never: never[i] })),
    };
  }
  const happened = (data.data || {}).events || [];
  const total = (counts) => counts.reduce((n, [, k]) => n + k, 0);
  const lowest = (m, tile) => {
    if (tile < 2 * m.half) return tile;
    const shift = Math.floor(tile / m.half) - 1;
    return (tile - shift * m.half) * 2 ** shift;
  };
  // within adds up the parts with their middle in a time; all without one. From the least age
  // of a message that never completed on, values are lower bounds.
  const within = (m, range) => {
    const sums = new Map();
    let n = 0, never = 0, bound = Infinity, from = Infinity, to = -Infinity;
    const add = (tile, k) => {
      sums.set(tile, (sums.get(tile) || 0) + k);
      n += k;
    };
    const miss = ([tile, k]) => {
      add(tile, k);
      never += k;
      bound = Math.min(bound, tile);
    };
    for (const p of m.parts) {
      const middle = (p.from + p.to) / 2;
      if (range && (middle < range[0] || middle > range[1])) continue;
      from = Math.min(from, p.from);
      to = Math.max(to, p.to);
      for (const [tile, k] of p.counts) add(tile, k);
      p.never.forEach(miss);
    }
    if (!range) m.older.forEach(miss);
    return { n, never, bound, from, to, tiles: [...sums].sort((a, b) => a[0] - b[0]) };
  };
  // ranked is the percentile of a sum: the highest latency of its bucket, or the lowest that it
  // can be.
  const ranked = (m, sum, p) => {
    const rank = Math.min(sum.n, Math.max(1, Math.ceil(p * sum.n / 100 - 1e-9)));
    let seen = 0;
    for (const [tile, k] of sum.tiles) {
      seen += k;
      if (seen >= rank) return tile < sum.bound ? { ns: lowest(m, tile + 1) - 1, atLeast: false } : { ns: lowest(m, tile), atLeast: true };
    }
    return { ns: 0, atLeast: false };
  };
  const bounded = (v) => (v.atLeast ? ">= " : "") + time(v.ns);
  const supported = (n, p) => n * (100 - p) / 100 >= 5 - 1e-9;

  // Names in legends hide what they name.
  const hidden = new WeakMap(); // by figure: a set of numbers
  const views = [];
  const legend = (figure) => {
    hidden.set(figure, new Set());
    figure.querySelectorAll(".legend li").forEach((li, i) => {
      const button = make("button");
      button.type = "button";
      button.append(...li.childNodes);
      button.setAttribute("aria-pressed", "true");
      li.append(button);
      button.addEventListener("click", () => {
        const off = hidden.get(figure);
        if (!off.delete(i + 1)) off.add(i + 1);
        button.setAttribute("aria-pressed", String(!off.has(i + 1)));
        for (const e of figure.querySelectorAll('[data-n="' + (i + 1) + '"]')) e.classList.toggle("off", off.has(i + 1));
        views.filter((v) => v.figure === figure).forEach(show);
      });
      const near = (is) => { for (const e of figure.querySelectorAll('.band[data-n="' + (i + 1) + '"]')) e.classList.toggle("near", is); };
      for (const on of ["pointerenter", "focus"]) button.addEventListener(on, () => near(true));
      for (const on of ["pointerleave", "blur"]) button.addEventListener(on, () => near(false));
    });
  };

  // Charts over time share what is shown of the time, and what is selected of it.
  let zoomed = null, selected = null;
  const base = (v) => v.chart.height - frame.bottom - (v.chart.strip ? frame.strip : 0);
  const wide = frame.width - frame.left - frame.right;
  const axisX = (v) => {
    const [min, max] = v.chart.x;
    const z = zoomed && [Math.max(min, zoomed[0]), Math.min(max, zoomed[1])];
    return z && z[1] > z[0] ? { min: z[0], max: z[1] } : { min, max };
  };
  const seen = (v, x) => v.lines.filter((l) => !hidden.get(v.figure).has(l.n)).flatMap((l) => l.y.filter((y, i) => y !== null && (l.to || l.x)[i] >= x.min && l.x[i] <= x.max));
  const axisY = (v, x) => {
    const c = v.chart;
    const whole = { min: c.y[0], max: c.y[1], log: c.log, ticks: v.ticks };
    if (c.heat || (!zoomed && hidden.get(v.figure).size === 0)) return whole;
    const values = seen(v, x).concat(v.rules.filter(([, , n]) => !hidden.get(v.figure).has(n)).map(([, at]) => at));
    if (!values.some((y) => y > 0)) return whole;
    const most = values.reduce((a, b) => Math.max(a, b), 0);
    return c.log ? logarithmic(values.reduce((a, b) => (b > 0 ? Math.min(a, b) : a), most), most) : linear(most, c.unit);
  };
  const toX = (x, v) => frame.left + (v - x.min) / (x.max - x.min) * wide;
  const toY = (v, y, value) => frame.top + (1 - Math.max(0, Math.min(1, part(y, value)))) * (base(v) - frame.top);

  const show = (v) => {
    const x = v.x = axisX(v), y = v.y = axisY(v, x), bottom = base(v), c = v.chart;
    const old = { min: c.x[0], max: c.x[1] };
    const scale = (old.max - old.min) / (x.max - x.min);
    const shift = toX(x, old.min) - frame.left * scale;
    for (const g of v.moved) g.setAttribute("transform", "translate(" + shift + " 0) scale(" + scale + " 1)");
    v.svg.classList.toggle("zoomed", zoomed !== null);
    const grid = [];
    let above = Infinity;
    for (const t of y.ticks) {
      const at = toY(v, y, t);
      grid.push(draw("path", { class: "grid", d: "M" + frame.left + " " + place(at) + "H" + (frame.width - frame.right) }));
      const crowded = above - at < 20;
      if (!crowded) above = at;
      grid.push(draw("text", { class: crowded ? "end n" : "end", x: frame.left - 7, y: place(at + 4) }, c.unit === "rate" ? count(t) : short(words[c.unit](t))));
    }
    const ticks = timeTicks(x.min, x.max);
    ticks.forEach((t, i) => {
      const at = place(toX(x, t));
      grid.push(draw("path", { class: "grid", d: "M" + at + " " + frame.top + "V" + bottom }));
      grid.push(draw("text", { class: ticks.length > 6 && i % 2 ? "mid n" : "mid", x: at, y: bottom + (c.strip ? frame.strip : 0) + 21 }, clock(t)));
    });
    if (zoomed || v.drawn || y.ticks !== v.ticks) {
      v.drawn = true;
      for (const e of [...v.grid.querySelectorAll(".grid, .mid, .end:not(.name)")]) e.remove();
      v.grid.prepend(...grid);
    }
    for (const l of v.lines) {
      let d = "", joined = false, lone = "";
      let k = 0;
      l.x.forEach((at, i) => {
        if (l.y[i] === null || at === null) {
          d += lone;
          joined = false;
          lone = "";
          return;
        }
        const px = place(toX(x, at)), py = place(toY(v, y, l.y[i]));
        if (l.dots) {
          const dot = l.marks[k++];
          if (!dot) return;
          dot.classList.toggle("off", at < x.min || at > x.max);
          put(dot, { x: px - 4, y: py - 4 });
          return;
        }
        d += (joined ? "L" : "M") + px + " " + py + (l.to ? "H" + place(toX(x, l.to[i])) : "");
        lone = joined || l.to ? "" : "h.1";
        joined = true;
      });
      if (!l.dots && l.path) l.path.setAttribute("d", d + lone);
    }
    // Numbers stand at the last shown value of their lines, and below each other.
    const ends = v.numbers.map((e) => {
      let last = null;
      for (const l of v.lines) {
        if (l.n !== Number(e.dataset.n)) continue;
        l.x.forEach((from, i) => {
          const at = Math.min((l.to || l.x)[i], x.max);
          if (l.y[i] !== null && from <= x.max && at >= x.min && (!last || at >= last[0])) last = [at, toY(v, y, l.y[i])];
        });
      }
      for (const [, value, n] of v.rules) if (n === Number(e.dataset.n)) last = [x.max, toY(v, y, value)];
      e.classList.toggle("off", !last || hidden.get(v.figure).has(Number(e.dataset.n)));
      return [e, last];
    }).filter(([, last]) => last).sort((a, b) => a[1][1] - b[1][1]);
    let lowest = -Infinity, aside = 0;
    for (const [e, [at, py]] of ends) {
      aside = py < lowest + 24 ? 14 - aside : 0;
      lowest = Math.max(py, lowest + 12);
      put(e, { x: place(toX(x, at) + 6 + aside), y: place(lowest + 4) });
    }
    for (const [path, value] of v.rules) path.setAttribute("d", "M" + frame.left + " " + place(toY(v, y, value)) + "H" + (frame.width - frame.right));
    band(v);
  };

  // band shades what is selected.
  const band = (v) => {
    const x = v.x;
    const from = selected ? Math.max(x.min, selected[0]) : 1, to = selected ? Math.min(x.max, selected[1]) : 0;
    v.band.classList.toggle("off", !(to > from) || (zoomed !== null && from === x.min && to === x.max));
    if (to > from) put(v.band, { x: toX(x, from), width: toX(x, to) - toX(x, from) });
  };

  const nearest = (xs, at) => {
    let low = 0, high = xs.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (xs[middle] < at) low = middle; else high = middle;
    }
    return Math.abs(xs[low] - at) <= Math.abs(xs[high] - at) ? low : high;
  };

  // step is the last of the steps that begin before an instant.
  const step = (xs, at) => {
    const i = nearest(xs, at);
    return xs[i] > at && i > 0 ? i - 1 : i;
  };

  // point shows the values at an instant.
  const point = (v, at) => {
    for (const other of views) {
      if (other === v) continue;
      rest(other);
      if (at < other.x.min || at > other.x.max) continue;
      put(other.cursor, { d: "M" + place(toX(other.x, at)) + " " + frame.top + "V" + base(other) });
      other.cursor.classList.remove("off");
    }
    const c = v.chart, off = hidden.get(v.figure);
    v.at = Math.max(v.x.min, Math.min(v.x.max, at));
    const rows = [], byName = new Map();
    const gap = (l) => (l.x.length > 2 ? l.x[1] - l.x[0] : 0);
    let exact = instant(v.at), limited = false;
    for (const l of v.lines) {
      if (off.has(l.n) || l.x.length === 0) continue;
      const i = (l.to ? step : nearest)(l.x, v.at);
      if (l.dots) {
        limited = limited || Math.abs(l.x[i] - v.at) < 0.5 && l.y[i] !== null;
        continue;
      }
      if (l.to) exact = instant(l.x[i]) + " to " + instant(l.to[i]);
      else if (l.x.length > 2) exact = instant(l.x[i]);
      if (!byName.has(l.n)) byName.set(l.n, [l.path && l.path.getAttribute("class").replace("line", "key"), []]);
      if (l.y[i] !== null && v.at >= l.x[0] - gap(l) && v.at <= (l.to || l.x)[l.x.length - 1] + gap(l)) byName.get(l.n)[1].push(l.y[i]);
    }
    for (const [n, [key, values]] of byName) { // several lines of a name are several runs
      const text = [...new Set([Math.min(...values), Math.max(...values)].map(words[c.unit]))].join(" to ");
      rows.push([key, c.names[n - 1] || "", values.length ? text : "-"]);
    }
    const m = mosaics[c.of];
    const tile = m && m.parts.find((p) => p.from <= v.at && v.at < p.to);
    if (tile && tile.counts.length) rows.push([null, "messages", count(total(tile.counts))]);
    if (tile && tile.never.length) rows.push([null, "due, and " + uncompleted[c.of], count(total(tile.never))]);
    const close = (v.x.max - v.x.min) / 200;
    for (const e of happened.filter((e) => e.at <= v.at + close && e.to >= v.at - close).slice(0, 4)) rows.push([null, instant(e.at) + " " + e.text, ""]);
    if (limited) rows.push([null, "host-limited", ""]);
    v.tip.replaceChildren(make("b", "", exact), ...rows.map(([key, name, value]) => {
      const row = make("div");
      if (key) row.append(make("span", key));
      row.append(name + " ", make("b", "", value));
      return row;
    }));
    const box = v.svg.getBoundingClientRect(), outer = v.figure.getBoundingClientRect();
    const px = toX(v.x, v.at);
    put(v.cursor, { d: "M" + place(px) + " " + frame.top + "V" + base(v) });
    v.cursor.classList.remove("off");
    v.tip.hidden = false;
    const left = px / frame.width * box.width + box.left - outer.left;
    v.tip.style.top = (box.top - outer.top + 8) + "px";
    v.tip.style.left = Math.max(0, left > outer.width / 2 ? left - v.tip.offsetWidth - 14 : left + 14) + "px";
  };
  const rest = (v) => {
    v.tip.hidden = true;
    v.cursor.classList.add("off");
  };
  const restAll = () => views.forEach(rest);

  // Selecting a time shows what was measured in it.
  const panel = make("section", "selection");
  panel.setAttribute("aria-live", "polite");
  const button = (text, does) => {
    const b = make("button", "", text);
    b.type = "button";
    b.addEventListener("click", does);
    return b;
  };
  const zoom = (range) => {
    zoomed = range;
    views.forEach(show);
    const place = range ? "#t=" + range.map((s) => Math.round(s * 1000) / 1000).join(",") : "#";
    if (range || location.hash.startsWith("#t=")) history.replaceState(null, "", place);
  };
  const select = (range, v) => {
    selected = range;
    views.forEach(band);
    if (!range) {
      panel.remove();
      return;
    }
    const list = v.chart.of ? [v.chart.of] : Object.keys(mosaics);
    const sums = list.map((of) => [of, mosaics[of], within(mosaics[of], range)]).filter(([, , s]) => s.n > 0);
    const exact = sums.length ? [Math.min(...sums.map(([, , s]) => s.from)), Math.max(...sums.map(([, , s]) => s.to))] : range;
    const head = make("p", "strong", instant(exact[0]) + " to " + instant(exact[1]));
    const events = make("ul", "note");
    for (const e of happened.filter((e) => e.at <= exact[1] && e.to >= exact[0]).slice(0, 20)) events.append(make("li", "", instant(e.at) + " " + e.text));
    const acts = make("p");
    acts.append(button("zoom in", () => zoom(range)), " ", button("whole run", () => zoom(null)), " ", button("clear", () => { select(null); zoom(null); }));
    panel.replaceChildren(head, acts, ...(events.children.length ? [events] : []));
    if (sums.length) {
      panel.append(table(sums), ...sums.map(curve));
      let says = "Of measured messages that completed in this time, and those due in it that never did. The warm-up is not counted. Buckets are at most a 64th wide: a value is at most 1.6 % too high. A dash: too few messages.";
      if (sums.some(([, , s]) => s.never)) says += " >= at least: of messages that never completed only their age at the end of the run is known. The arrow at the end of a line is such a lower bound.";
      const older = sums.reduce((n, [, m]) => Math.max(n, total(m.older)), 0);
      if (older) says += " " + count(older) + " were due more than an hour before the end of the run: they are in the whole run only.";
      panel.append(make("p", "dim", says));
    } else if (Object.keys(mosaics).length) {
      panel.append(make("p", "dim", "No measured message completed in this time. The warm-up is not counted."));
    }
    v.svg.after(panel);
  };
  const table = (sums) => {
    const t = make("table"), head = t.createTHead().insertRow(), body = t.createTBody();
    const columns = sums.flatMap(([of, m, sum]) => [[of + ", this time", m, sum], [of + ", whole run", m, within(m)]]);
    const row = (name, value) => {
      const r = body.insertRow();
      r.append(make("th", "left", name), ...columns.map((c) => make("td", "", value(c))));
    };
    for (const h of ["", ...columns.map(([name]) => name)]) head.append(make("th", "", h));
    row("messages", ([, , s]) => count(s.n));
    if (columns.some(([, , s]) => s.never)) row([...new Set(sums.map(([of]) => uncompleted[of]))].join(", "), ([, , s]) => count(s.never));
    for (const p of [50, 90, 99, 99.9, 99.99]) row("p" + p, ([, m, s]) => (supported(s.n, p) ? bounded(ranked(m, s, p)) : "-"));
    row("max", ([, m, s]) => bounded(ranked(m, s, 100)));
    const scroll = make("div", columns.length > 2 ? "scroll sideways" : "scroll");
    scroll.append(t);
    return scroll;
  };
  // curve draws the percentiles of a time beside those of the whole run, on an axis of nines.
  const curve = ([of, m, sum]) => {
    const all = within(m), nines = (f) => -Math.log10(1 - f);
    const points = (s) => {
      const out = [];
      let cum = 0;
      for (const [tile, k] of s.tiles) {
        cum += k;
        const f = Math.min(cum, s.n - 1) / s.n;
        if (f >= 0.5) out.push([nines(f), tile < s.bound ? lowest(m, tile + 1) - 1 : lowest(m, tile), tile >= s.bound]);
      }
      const half = ranked(m, s, 50);
      if (out.length && half.ns !== out[0][1]) out.unshift([nines(0.5), half.ns, half.atLeast]);
      return out;
    };
    // Beyond the first lower bound nothing more is known: an arrow ends the line.
    const lines = [["s5", points(all)], ["s2", points(sum)]].map(([s, ps]) => {
      const known = ps.findIndex((p) => p[2]);
      return [s, known < 0 ? ps : ps.slice(0, known + 1)];
    }).filter(([, ps]) => ps.length > 0);
    const values = lines.flatMap(([, ps]) => ps.map((p) => p[1])), end = Math.max(1, ...lines.flatMap(([, ps]) => ps.map((p) => p[0])));
    const y = logarithmic(Math.min(...values), Math.max(...values)), height = 260, bottom = height - frame.bottom;
    const px = (n) => frame.left + (n - nines(0.5) + 0.05) / (end - nines(0.5) + 0.1) * wide;
    const py = (n) => frame.top + (1 - Math.max(0, Math.min(1, part(y, n)))) * (bottom - frame.top);
    const svg = draw("svg", { class: "chart", viewBox: "0 0 " + frame.width + " " + height, role: "img", "aria-label": of + " by percentile in the selected time, beside the whole run" });
    const grid = draw("g", { class: "ticks" });
    for (const t of y.ticks) {
      grid.append(draw("path", { class: "grid", d: "M" + frame.left + " " + place(py(t)) + "H" + (frame.width - frame.right) }), draw("text", { class: "end", x: frame.left - 7, y: place(py(t) + 4) }, short(time(t))));
    }
    for (const p of [50, 90, 99, 99.9, 99.99, 99.999, 99.9999]) {
      const at = nines(p / 100);
      if (at > end + 0.05) break;
      grid.append(draw("path", { class: "grid", d: "M" + place(px(at)) + " " + frame.top + "V" + bottom }), draw("text", { class: "mid", x: place(px(at)), y: bottom + 21 }, p + " %"));
    }
    grid.append(draw("path", { class: "axis", d: "M" + frame.left + " " + frame.top + "V" + bottom + "H" + (frame.width - frame.right) }));
    svg.append(grid);
    for (const [s, ps] of lines) {
      svg.append(draw("path", { class: "line " + s, d: ps.map((p, i) => (i ? "L" : "M") + place(px(p[0])) + " " + place(py(p[1]))).join("") }));
      const [x, ns, atLeast] = ps[ps.length - 1], g = draw("g", { class: s });
      if (atLeast) g.append(draw("path", { class: "hollow", d: "M" + place(px(x)) + " " + place(py(ns) - 5) + "l5 9h-10Z" }));
      svg.append(g);
    }
    const box = make("div"), legend = make("ul", "legend");
    for (const [s, name] of [["s2", of + ", this time"], ["s5", of + ", whole run"]]) {
      const li = make("li");
      li.append(make("span", "key " + s), name);
      legend.append(li);
    }
    box.append(legend, svg);
    return box;
  };

  const timed = new Map(data.charts.map((c) => [c.id, c]));
  const over = (chart, svg, figure, title) => {
    const v = { chart, svg, figure, x: null, y: null, at: chart.x[0], drawn: false };
    v.grid = svg.querySelector("g.ticks");
    v.ticks = [];
    title.remove(); // the browser would show it over the values
    svg.setAttribute("aria-label", title.textContent);
    svg.removeAttribute("aria-labelledby");
    for (const e of [...svg.querySelectorAll(".column")]) e.remove();
    const clip = draw("clipPath", { id: chart.id + "-clip" });
    clip.append(draw("rect", { x: frame.left, y: 0, width: wide, height: base(v) + frame.strip }));
    svg.prepend(clip);
    const clipped = (e) => {
      const g = draw("g", { "clip-path": "url(#" + chart.id + "-clip)" });
      e.replaceWith(g);
      g.append(e);
    };
    v.moved = [...svg.querySelectorAll("g.back, g.front")];
    let paths = [...svg.querySelectorAll("path.line")].filter((p) => !p.classList.contains("host"));
    const dots = [...svg.querySelectorAll("g.host")];
    let before = null;
    v.lines = chart.lines.map((l) => {
      before = l.x ? l : before;
      const line = { n: l.n, dots: l.dots, x: before.x, to: before.to, y: l.y, path: null, marks: [] };
      if (l.dots) line.marks = [...(dots.shift() || svg.cloneNode()).children];
      else line.path = paths.find((p) => p.dataset.n === String(l.n)) || null;
      if (line.path) paths = paths.filter((p) => p !== line.path);
      return line;
    });
    v.moved.forEach(clipped);
    v.lines.forEach((l) => l.path && clipped(l.path));
    v.numbers = [...svg.querySelectorAll("text.number:not(.sign)")];
    v.rules = [...svg.querySelectorAll("path.rule")].map((p, i) => [p, chart.rules[i], Number(p.dataset.n)]);
    v.band = draw("rect", { class: "chosen off", x: 0, y: frame.top, width: 0, height: base(v) - frame.top });
    v.cursor = draw("path", { class: "cursor off" });
    svg.append(v.band, v.cursor);
    v.tip = bubble(figure);
    svg.classList.add("live");
    svg.setAttribute("tabindex", "0");

    const at = (e) => {
      const box = svg.getBoundingClientRect();
      return v.x.min + ((e.clientX - box.left) / box.width * frame.width - frame.left) / wide * (v.x.max - v.x.min);
    };
    const bound = (s) => Math.max(v.x.min, Math.min(v.x.max, s));
    let began = null, dragged = false;
    svg.addEventListener("pointerdown", (e) => {
      if (e.button !== 0) return;
      began = { x: e.clientX, at: bound(at(e)) };
      dragged = false;
      svg.setPointerCapture(e.pointerId);
    });
    svg.addEventListener("pointermove", (e) => {
      point(v, at(e));
      if (began && Math.abs(e.clientX - began.x) > 4) dragged = true;
      if (began && dragged) {
        selected = [began.at, bound(at(e))].sort((a, b) => a - b);
        views.forEach(band);
      }
    });
    svg.addEventListener("pointerup", (e) => {
      if (!began) return;
      const from = began.at;
      began = null;
      const range = [from, bound(at(e))].sort((a, b) => a - b);
      select(dragged && range[1] > range[0] ? range : null, v);
    });
    svg.addEventListener("pointercancel", () => {
      began = null;
      select(null, v);
    });
    svg.addEventListener("pointerleave", () => { if (!began) restAll(); });
    svg.addEventListener("dblclick", () => zoom(null));
    svg.addEventListener("blur", restAll);
    svg.addEventListener("keydown", (e) => {
      const step = (v.x.max - v.x.min) / 100 * (e.key === "ArrowLeft" ? -1 : 1);
      if (e.key === "ArrowLeft" || e.key === "ArrowRight") {
        const from = v.at;
        point(v, v.at + step);
        if (e.shiftKey) select(selected ? (step > 0 ? [selected[0], Math.max(v.at, selected[0])] : [Math.min(v.at, selected[1]), selected[1]]) : [from, v.at].sort((a, b) => a - b), v);
      } else if (e.key === "e" || e.key === "E") {
        const next = e.key === "e" ? happened.find((x) => x.at > v.at + 1e-6) : happened.findLast((x) => x.at < v.at - 1e-6);
        if (next) point(v, next.at);
      } else if (e.key === "Escape") {
        select(null, v);
        zoom(null);
      } else if (e.key === "Enter" && selected) {
        zoom(selected);
      } else {
        return;
      }
      e.preventDefault();
    });
    views.push(v);
    const whole = chart.log ? logarithmic(chart.y[0], chart.y[1]) : linear(chart.y[1] / 1.15, chart.unit);
    v.ticks = whole.ticks;
    show(v);
  };

  // Other charts with dots say the values at the nearest place of the X axis.
  const crossed = [];
  const dotted = (svg, figure) => {
    const all = [...svg.querySelectorAll("g[data-n] > *")].map((e) => {
      const box = e.getBBox(), text = e.querySelector("title");
      if (text) text.remove(); // the browser would show it over the values
      return { n: Number(e.parentNode.dataset.n), x: box.x + box.width / 2, text: text ? text.textContent : "", v: (e.dataset.v || "").split(",") };
    }).filter((d) => d.text);
    figure.dots = all;
    if (!all.length) return;
    const places = [...new Set(all.map((d) => Math.round(d.x)))].sort((a, b) => a - b);
    const tip = bubble(figure), cursor = draw("path", { class: "cursor off" });
    svg.append(cursor);
    let at = 0;
    // cross shows a value of the X axis on this chart, and on the others that have it.
    const own = { heads: svg.dataset.heads, cross: (x) => {
      cursor.classList.toggle("off", x === undefined);
      if (x !== undefined) put(cursor, { d: "M" + place(x) + " " + frame.top + "V" + (svg.viewBox.baseVal.height - frame.bottom) });
    }, find: (v) => (all.find((d) => d.v[0] === v) || {}).x };
    const cross = (x, v) => { for (const c of crossed) if (c === own || c.heads && c.heads === own.heads) c.cross(c === own ? x : c.find(v)); };
    crossed.push(own);
    const leave = () => {
      tip.hidden = true;
      cross();
    };
    const say = (i) => {
      at = Math.max(0, Math.min(places.length - 1, i));
      const off = hidden.get(figure);
      const here = all.filter((d) => Math.abs(d.x - places[at]) <= 1 && !off.has(d.n));
      tip.replaceChildren(...here.map((d) => make("div", "", d.text)));
      cross(places[at], here.length ? here[0].v[0] : "");
      const box = svg.getBoundingClientRect(), outer = figure.getBoundingClientRect(), scale = box.width / frame.width;
      tip.hidden = false;
      const left = places[at] * scale + box.left - outer.left;
      tip.style.top = (box.top - outer.top + 8) + "px";
      tip.style.left = Math.max(0, left > outer.width / 2 ? left - tip.offsetWidth - 14 : left + 14) + "px";
    };
    svg.setAttribute("tabindex", "0");
    svg.addEventListener("pointermove", (e) => {
      const box = svg.getBoundingClientRect(), x = (e.clientX - box.left) / box.width * frame.width;
      say(places.reduce((best, p, i) => (Math.abs(p - x) < Math.abs(places[best] - x) ? i : best), 0));
    });
    svg.addEventListener("pointerleave", leave);
    svg.addEventListener("blur", leave);
    svg.addEventListener("keydown", (e) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
      if (e.key === "Escape") leave();
      if (!step) return;
      say(tip.hidden ? at : at + step);
      e.preventDefault();
    });
  };

  // Each chart can be saved: as a picture with the style of the page, and its values.
  const save = (name, type, content) => {
    const a = make("a"), url = URL.createObjectURL(new Blob([content], { type }));
    a.setAttribute("href", url);
    a.setAttribute("download", name);
    a.click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  };
  const picture = (svg) => {
    const copy = svg.cloneNode(true);
    // The heading and the names stand outside of the chart on the page, and in the picture.
    const figure = svg.closest("figure"), names = [...figure.querySelectorAll(".legend li")];
    const high = svg.viewBox.baseVal.height, all = high + 26 + 18 * names.length;
    put(copy, { width: "1440", height: 2 * all, viewBox: "0 -26 " + frame.width + " " + all });
    copy.append(draw("text", { class: "strong", x: 4, y: -10 }, figure.querySelector("h3").textContent));
    names.forEach((li, i) => {
      const y = high + 18 * i + 6, key = li.querySelector(".key").getAttribute("class").replace("key ", ""), g = draw("g", { class: key });
      if (/^(fault|stage)$/.test(key)) g.append(draw("rect", { class: "span " + key, x: frame.left, y: y - 8, width: 24, height: 8 }));
      else if (/round|box/.test(key)) g.append(draw("circle", { class: "dot", cx: frame.left + 12, cy: y - 4, r: 4 }));
      else g.append(draw("path", { class: "line " + key, d: "M" + frame.left + " " + (y - 4) + "h24" }));
      g.append(draw("text", { x: frame.left + 32, y }, (names.length > 1 ? i + 1 + " " : "") + li.textContent));
      copy.append(g);
    });
    copy.setAttribute("font-family", "system-ui, sans-serif");
    copy.prepend(draw("style", {}, document.querySelector("style").textContent), draw("rect", { y: -26, width: "100%", height: "100%", class: "paper" }));
    return new XMLSerializer().serializeToString(copy);
  };
  const cell = (v) => (/[",\n]/.test(v) ? '"' + v.replace(/"/g, '""') + '"' : String(v));
  const values = (figure, chart) => {
    const rows = [];
    if (chart) {
      rows.push(["series", "from_s", "to_s", { time: "ns", bytes: "bytes", rate: "per_s", cores: "cores", count: "number" }[chart.unit]]);
      let before = null;
      for (const l of chart.lines) {
        before = l.x ? l : before;
        if (!l.dots) l.y.forEach((y, i) => rows.push([chart.names[l.n - 1] || "", before.x[i], before.to ? before.to[i] : "", y === null ? "" : y]));
      }
    } else {
      const svg = figure.querySelector("svg"), names = [...figure.querySelectorAll(".legend li")].map((li) => li.textContent);
      const heads = svg.dataset.heads ? svg.dataset.heads.split(",") : [];
      rows.push(["series", ...heads, "says"], ...(figure.dots || []).map((d) => [names[d.n - 1] || "", ...(heads.length ? d.v : []), d.text]));
    }
    return rows.map((r) => r.map((v) => cell(String(v))).join(",") + "\n").join("");
  };
  const saving = (svg, figure, chart) => {
    const p = make("p", "save"), name = (chart ? chart.id : figure.querySelector("h3").textContent).replace(/[^A-Za-z0-9]+/g, "-");
    p.append("save ", button("SVG", () => save(name + ".svg", "image/svg+xml", picture(svg))), " ", button("PNG", () => {
      const image = new Image(), canvas = make("canvas");
      image.onload = () => {
        canvas.width = 1440;
        canvas.height = image.height;
        canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
        canvas.toBlob((b) => save(name + ".png", "image/png", b));
      };
      image.setAttribute("src", "data:image/svg+xml;charset=utf-8," + encodeURIComponent(picture(svg)));
    }));
    if (chart || (figure.dots || []).length) p.append(" ", button("CSV", () => save(name + ".csv", "text/csv", values(figure, chart))));
    figure.append(p);
  };

  const build = (figure) => {
    const svg = figure.querySelector("svg.chart"), title = svg.querySelector("title"), chart = timed.get(title.id.replace(/-t$/, ""));
    legend(figure);
    if (chart) {
      over(chart, svg, figure, title);
    } else {
      dotted(svg, figure);
    }
    saving(svg, figure, chart);
  };
  document.querySelectorAll("figure").forEach(build);
  // Charts in a fold are built when it is opened.
  const open = (details) => {
    for (const t of details.querySelectorAll("template")) {
      if (t.closest("details") !== details) continue;
      t.previousElementSibling.remove();
      const figure = t.content.firstElementChild;
      t.replaceWith(figure);
      build(figure);
    }
  };
  for (const details of document.querySelectorAll("details")) details.addEventListener("toggle", () => { if (details.open) open(details); });
  addEventListener("beforeprint", () => document.querySelectorAll("details[open]").forEach(open));
  const asked = location.hash.match(/^#t=(-?[\d.]+),(-?[\d.]+)$/);
  if (asked && Number(asked[1]) < Number(asked[2])) {
    zoomed = [Number(asked[1]), Number(asked[2])];
    views.forEach(show);
  }
  if (views.length) {
    const hint = make("p", "dim hint", "Point at a chart over time for its values, and drag over it to select a part of the time; by key, the arrows move, with Shift they select, e and E go to events. A click on a name hides its line.");
    const first = document.querySelector("nav") || document.querySelector("h1");
    first.after(hint);
  }
})();
