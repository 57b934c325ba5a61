// Follows a run: reads what the server tells, at most four times a second, and draws it.
"use strict";
(function () {
  var root = document.getElementById("live");
  if (!root) return;
  var most = 600, points = [], counts = [], marks = [], measuring = false, from = 0, ns = "http://www.w3.org/2000/svg";
  var warmup = Number(root.getAttribute("data-warmup")), length = Number(root.getAttribute("data-length"));
  var goes = "The run is in progress. This page follows it.", state = document.getElementById("state"), events = document.getElementById("events");
  function say(id, text) { document.getElementById(id).textContent = text; }
  function rate(v) { return v === undefined ? "-" : Math.round(v).toLocaleString("en-US") + "/s"; }
  function time(v) {
    if (v === undefined) return "-";
    if (v >= 1e9) return (v / 1e9).toPrecision(3) + " s";
    if (v >= 1e6) return (v / 1e6).toPrecision(3) + " ms";
    if (v >= 1e3) return (v / 1e3).toPrecision(3) + " µs";
    return v + " ns";
  }
  // Instants count from the end of the warm-up, as soon as it has ended.
  function instant(t, digits) { var s = (t - from).toFixed(digits); return (Number(s) === 0 ? (0).toFixed(digits) : s) + " s"; }
  function short(v) {
    if (v >= 1e9) return v / 1e9 + " s";
    if (v >= 1e6) return v / 1e6 + " ms";
    if (v >= 1e3) return v / 1e3 + " µs";
    return v + " ns";
  }
  function element(parent, name, attributes, text) {
    var e = document.createElementNS(ns, name);
    Object.keys(attributes).forEach(function (k) { e.setAttribute(k, attributes[k]); });
    if (text !== undefined) e.textContent = text;
    parent.appendChild(e);
    return e;
  }
  function draw(id, keys, write, log) {
    var svg = document.getElementById(id), W = 720, H = svg.viewBox.baseVal.height, left = 76, right = 34, top = 14, bottom = 34, whole = write === count;
    while (svg.lastChild && svg.lastChild.tagName !== "title") svg.removeChild(svg.lastChild);
    var t0 = Infinity, t1 = -Infinity, hi = -Infinity, lo = Infinity;
    [points, counts].forEach(function (all) { all.forEach(function (p) { t0 = Math.min(t0, p.t); t1 = Math.max(t1, p.t); }); });
    keys.forEach(function (k) { k.of.forEach(function (p) { var v = p[k.name]; if (v !== undefined) { hi = Math.max(hi, v); lo = Math.min(lo, v); } }); });
    if (hi === -Infinity || t1 <= t0) return;
    if (log) { lo = Math.pow(10, Math.floor(Math.log10(Math.max(1, lo)))); hi = Math.pow(10, Math.ceil(Math.log10(Math.max(lo * 10, hi)))); } else {
      lo = 0;
      var ten = Math.pow(10, Math.floor(Math.log10((hi || 1) / 4)));
      var step = [1, 2, 5, 10].map(function (n) { return n * ten; }).find(function (s) { return s * 5 >= (hi || 1) && (s >= 1 || !whole); });
      hi = Math.ceil((hi || 1) / step) * step;
    }
    function x(t) { return left + (W - left - right) * (t - t0) / (t1 - t0); }
    function y(v) { var part = log ? Math.log(Math.max(v, lo) / lo) / Math.log(hi / lo) : v / hi; return H - bottom - (H - top - bottom) * part; }
    // Names of faults stand above the chart, each in the first line in which it has room.
    var ends = [], shown = marks.filter(function (m) { return m.t >= t0 && m.t <= t1; });
    shown.forEach(function (m) {
      if (!m.name) return;
      var wide = 7 * m.name.length;
      m.at = Math.min(x(m.t), W - wide);
      m.row = 0;
      while (m.row < 3 && ends[m.row] > m.at) m.row++;
      ends[m.row] = m.at + wide + 8;
    });
    top += 14 * ends.length;
    var ticks = [];
    if (log) { for (var d = lo; d <= hi * 1.001; d *= 10) ticks.push(d); } else { for (var i = 0; i * step <= hi * 1.001; i++) ticks.push(i * step); }
    ticks.forEach(function (v) {
      element(svg, "line", { "class": "grid", x1: left, x2: W - right, y1: y(v), y2: y(v) });
      element(svg, "text", { "class": "end", x: left - 8, y: y(v) + 4 }, write(v));
    });
    [0, 0.5, 1].forEach(function (part) {
      var t = t0 + (t1 - t0) * part;
      element(svg, "text", { "class": part === 0 ? "" : part === 1 ? "end" : "mid", x: x(t), y: H - 12 }, instant(t, t1 - t0 < 10 ? 1 : 0));
    });
    shown.forEach(function (m) { // the end of the warm-up, and faults
      if (m.name) element(svg, "text", { "class": "name " + m.kind, x: m.at, y: top - 4 - 14 * m.row }, m.name);
      var line = element(svg, "line", { "class": "mark " + m.kind, x1: x(m.t), x2: x(m.t), y1: top, y2: H - bottom });
      element(line, "title", {}, m.text);
    });
    var last = []; // the end of each line, where its number stands
    keys.forEach(function (k, i) {
      var d = "", pen = false, t = 0, end = null;
      k.of.forEach(function (p) {
        var v = p[k.name];
        if (v === undefined) { pen = false; return; }
        d += (pen && p.t - t < 2.5 ? "L" : "M") + x(p.t).toFixed(1) + " " + y(v).toFixed(1); // no line over seconds without a value
        pen = true;
        t = p.t;
        end = { n: i + 1, x: x(p.t), y: y(v) };
      });
      element(svg, "path", { "class": "line " + k.paint, d: d });
      if (end) last.push(end);
    });
    var lowest = -Infinity, aside = 0; // those that would lie on each other stand in two columns
    last.sort(function (a, b) { return a.y - b.y || a.n - b.n; }).forEach(function (e) {
      aside = e.y < lowest + 24 ? 14 - aside : 0;
      lowest = Math.max(e.y, lowest + 12);
      element(svg, "text", { "class": "number", x: e.x + 6 + aside, y: lowest + 4 }, e.n);
    });
  }
  function show() {
    var rates = counts.length ? counts : points; // which lack the seconds in which nothing was confirmed
    draw("rates", [{ name: "offered", of: counts, paint: "s3 thin" }, { name: "sent", of: rates, paint: "s1 broad" }, { name: "received", of: rates, paint: "s2" }], rate, false);
    draw("latencies", [{ name: "p50", of: points, paint: "s1 broad" }, { name: "p99", of: points, paint: "s2" }], short, true);
    draw("backlogs", [{ name: "backlog", of: counts, paint: "s1 broad" }, { name: "waiting", of: counts, paint: "s2" }], count, false);
    var p = points[points.length - 1], c = counts[counts.length - 1];
    if (c) {
      say("offered", rate(c.offered));
      say("backlog", count(c.backlog));
      bad("waiting", c.waiting >= Math.max(1, c.offered), count(c.waiting)); // a second's worth
      bad("failed", c.failed, count(c.failed) + (c.dropped ? ", and " + count(c.dropped) + " dropped" : ""));
      bad("lost", c.lost, c.lost ? count(c.lost) : "none known");
    }
    if (!p) return;
    var now = Math.max(p.t, c ? c.t : 0), phase = measuring ? (length > 0 && now - from >= length ? "drain" : "measured window") : "warm-up";
    say("at", instant(now, 0) + ", " + phase);
    var rest = Math.ceil((measuring ? from : warmup) + length - now);
    say("left", length > 0 ? (rest > 0 ? rest + " s" : "drains") : "-");
    say("sent", rate((c || p).sent));
    say("received", rate((c || p).received));
    say("p50", time(p.p50));
    say("p99", time(p.p99) + (p.of ? " (" + p.of + ")" : ""));
  }
  function count(v) { return Math.round(v).toLocaleString("en-US"); }
  function bad(id, wrong, text) {
    say(id, text);
    document.getElementById(id).className = wrong ? "bad" : "";
  }
  function promised(all) {
    var items = document.querySelectorAll("#objectives li");
    all.forEach(function (o) {
      Array.prototype.forEach.call(items, function (li) {
        if (li.firstChild.textContent !== o.text) return;
        li.lastChild.textContent = time(o.ns) + " so far, of completed messages, " + (o.kept ? "within" : "above") + " the limit";
        li.lastChild.className = o.kept ? "good" : "bad";
      });
    });
  }
  function write(li) { li.textContent = instant(Math.max(0, li.told.t), 1) + "  " + li.told.text + (li.told.n > 1 ? " (" + li.told.n + " times)" : ""); }
  function news(n) {
    if (n.from !== undefined) {
      from = n.from;
      measuring = true;
      marks.push({ t: from, kind: "phase", name: "end of the warm-up", text: "end of the warm-up" });
      Array.prototype.forEach.call(events.children, write);
    }
    (n.points || []).forEach(function (p) {
      var last = points[points.length - 1];
      if (last && p.t <= last.t) return;
      points.push(p);
    });
    if (points.length > most) points = points.slice(points.length - most);
    (n.counts || []).forEach(function (c) {
      var last = counts[counts.length - 1];
      if (last && c.t <= last.t) return;
      c.waiting = Math.max(0, c.offered - c.sent - c.failed - c.dropped);
      c.sums = {}; // since the start; the others become rates
      ["offered", "sent", "received"].forEach(function (k) {
        c.sums[k] = c[k];
        var dt = last ? c.t - last.t : c.t < 2 ? c.t : 0;
        c[k] = dt >= 0.1 ? (c[k] - (last ? last.sums[k] : 0)) / dt : undefined; // the moment after the drain has no rate
      });
      counts.push(c);
    });
    if (counts.length > most) counts = counts.slice(counts.length - most);
    promised(n.objectives || []);
    (n.events || []).forEach(function (e) {
      var li = document.createElement("li"), before = events.firstChild;
      while (before && before.told.t > e.t) before = before.nextSibling;
      if (before && e.kind === "hiccup" && before.told.kind === e.kind) { // of many in a row the last one
        e.n += before.told.n;
        before = before.nextSibling;
        events.removeChild(before ? before.previousSibling : events.lastChild);
      }
      li.told = e;
      var injected = e.kind === "injected";
      if ((injected || e.kind === "fault") && marks.length < 100) {
        marks.push({ t: e.t, kind: injected ? "fault" : "lost", name: e.name || "fault", text: instant(e.t, 1) + "  " + e.text });
        marks.sort(function (a, b) { return a.t - b.t; });
      }
      write(li);
      events.insertBefore(li, before);
      while (events.childNodes.length > 50) events.removeChild(events.lastChild);
    });
    if (n.host) say("busy", Math.round(n.host.busy * 100) + " %");
    show();
    if (n.quiet) state.textContent = "Nothing has changed in the run's folder for " + Math.round(n.quiet) + " s: it waits, or was killed.";
    else if (!n.ended) state.textContent = goes;
    if (n.ended) {
      state.textContent = "The run has ended.";
      say("left", "-");
      var stop = document.getElementById("stop");
      if (stop) stop.hidden = true;
      document.getElementById("report").hidden = false;
      source.close();
    }
  }
  var source = new EventSource(root.getAttribute("data-follow"));
  source.addEventListener("begin", function () {
    points = [];
    counts = [];
    marks = [];
    measuring = false;
    from = 0;
    events.textContent = "";
    state.textContent = goes;
    root.hidden = false;
  });
  source.onmessage = function (m) { news(JSON.parse(m.data)); };
  source.onerror = function () { if (source.readyState !== 2) state.textContent = "The server does not answer. The page tries again."; else state.textContent = "The server does not let this page follow the run. Load it again."; };
})();
