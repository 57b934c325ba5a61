// Follows a run: reads what the server tells, at most four times a second, and draws it.
"use strict";
(function () {
  var root = document.getElementById("live");
  if (!root) return;
  var most = 600, points = [], marks = [], measuring = false, from = 0, length = Number(root.getAttribute("data-length")), ns = "http://www.w3.org/2000/svg";
  var state = document.getElementById("state"), events = document.getElementById("events");
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
    var svg = document.getElementById(id), W = 720, H = 240, left = 76, right = 16, top = 14, bottom = 34;
    while (svg.lastChild && svg.lastChild.tagName !== "title") svg.removeChild(svg.lastChild);
    if (points.length < 2) return;
    var t0 = points[0].t, t1 = points[points.length - 1].t, hi = -Infinity, lo = Infinity;
    points.forEach(function (p) { keys.forEach(function (k) { var v = p[k.name]; if (v !== undefined) { hi = Math.max(hi, v); lo = Math.min(lo, v); } }); });
    if (hi === -Infinity || t1 <= t0) return;
    if (log) { lo = Math.pow(10, Math.floor(Math.log10(Math.max(1, lo)))); hi = Math.pow(10, Math.ceil(Math.log10(Math.max(lo * 10, hi)))); } else {
      lo = 0;
      var ten = Math.pow(10, Math.floor(Math.log10((hi || 1) / 4)));
      var step = [1, 2, 5, 10].map(function (n) { return n * ten; }).find(function (s) { return s * 5 >= (hi || 1); });
      hi = Math.ceil((hi || 1) / step) * step;
    }
    function x(t) { return left + (W - left - right) * (t - t0) / (t1 - t0); }
    function y(v) { var part = log ? Math.log(Math.max(v, lo) / lo) / Math.log(hi / lo) : v / hi; return H - bottom - (H - top - bottom) * part; }
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
    // The end of the warm-up, and faults.
    marks.forEach(function (m) {
      if (m.t < t0 || m.t > t1) return;
      var line = element(svg, "line", { "class": "mark " + m.kind, x1: x(m.t), x2: x(m.t), y1: top, y2: H - bottom });
      element(line, "title", {}, m.text);
    });
    keys.forEach(function (k) {
      var d = "", pen = false;
      points.forEach(function (p) { var v = p[k.name]; if (v === undefined) { pen = false; return; } d += (pen ? "L" : "M") + x(p.t).toFixed(1) + " " + y(v).toFixed(1); pen = true; });
      element(svg, "path", { "class": "line " + k.paint, d: d });
    });
  }
  function show() {
    draw("rates", [{ name: "sent", paint: "s1 broad" }, { name: "received", paint: "s2" }], rate, false);
    draw("latencies", [{ name: "p50", paint: "s1 broad" }, { name: "p99", paint: "s2" }], short, true);
    var p = points[points.length - 1];
    if (!p) return;
    say("at", instant(p.t, 0) + ", " + (p.phase === "warmup" ? "warm-up" : "measured window"));
    var rest = Math.ceil(length - (p.t - from));
    say("left", length > 0 && measuring ? (rest > 0 ? rest + " s" : "ends") : "-");
    say("sent", rate(p.sent));
    say("received", rate(p.received));
    say("p50", time(p.p50));
    say("p99", time(p.p99) + (p.of ? " (" + p.of + ")" : ""));
  }
  function write(li) { li.textContent = instant(Math.max(0, li.told.t), 1) + "  " + li.told.kind + (li.told.text ? ": " + li.told.text : ""); }
  function news(n) {
    if (n.from !== undefined) {
      from = n.from;
      measuring = true;
      marks.push({ t: from, kind: "phase", text: "end of the warm-up" });
      Array.prototype.forEach.call(events.children, write);
    }
    (n.points || []).forEach(function (p) {
      var last = points[points.length - 1];
      if (last && p.t <= last.t) return;
      points.push(p);
    });
    if (points.length > most) points = points.slice(points.length - most);
    (n.events || []).forEach(function (e) {
      var li = document.createElement("li");
      li.told = e;
      if (e.kind === "fault" && marks.length < 100) marks.push({ t: e.t, kind: "fault", text: instant(e.t, 1) + "  " + e.text });
      write(li);
      events.insertBefore(li, events.firstChild);
      while (events.childNodes.length > 50) events.removeChild(events.lastChild);
    });
    if (n.host) say("busy", Math.round(n.host.busy * 100) + " %");
    show();
    if (n.ended) {
      state.textContent = "The run has ended.";
      document.getElementById("report").hidden = false;
      source.close();
    }
  }
  var source = new EventSource(root.getAttribute("data-follow"));
  source.addEventListener("begin", function () {
    points = [];
    marks = [];
    measuring = false;
    from = 0;
    events.textContent = "";
    state.textContent = "The run goes on. This page follows it.";
    root.hidden = false;
  });
  source.onmessage = function (m) { news(JSON.parse(m.data)); };
  source.onerror = function () { if (source.readyState !== 2) state.textContent = "The server does not answer. The page tries again."; else state.textContent = "The server does not let this page follow the run. Load it again."; };
})();
