// Searches and sorts the rows of a published list, by the words, conditions and orders that weir serve knows (package
// index).
"use strict";
(function () {
  var form = document.getElementById("filter");
  if (!form) return;
  var data = JSON.parse(document.getElementById("rows").textContent);
  var body = document.querySelector("#runs tbody"), rows = Array.prototype.slice.call(body.rows);
  var shown = document.getElementById("shown"), words = document.getElementById("q"), order = document.getElementById("sort");
  var texts = data.rows.map(function (r) {
    var t = r.texts;
    return [t.folder, t.name, t.scenario, t.driver, t.server, t.guarantee, r.status, r.slo].join("\n").toLowerCase();
  });
  function choices(id, key) {
    var values = {}, select = document.getElementById(id);
    data.rows.forEach(function (r) { var v = r.texts[key]; if (v) values[v] = (values[v] || 0) + 1; });
    Object.keys(values).sort().forEach(function (v) {
      var o = document.createElement("option");
      o.value = v;
      o.textContent = v + " (" + values[v] + ")";
      select.appendChild(o);
    });
    return select;
  }
  var system = choices("system", "driver"), scenario = choices("scenario", "scenario");

  // Quantities, in lower case, as the package quantity reads them.
  var number = /^([0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?|[0-9]+(_[0-9]+)*(\.[0-9]+)?|\.[0-9]+)(e[+-]?[0-9]{1,2})?/;
  var component = /^([0-9][0-9_,]*\.?[0-9]*|\.[0-9]+)([a-zµμ]+)/;
  var units = [[1, "ns"], [1e3, "us µs μs"], [1e6, "ms msec msecs millisecond milliseconds"], [1e9, "s sec secs second seconds"],
    [60e9, "m min mins minute minutes"], [3600e9, "h hr hrs hour hours"], [86400e9, "d day days"]];
  function decimal(text) {
    var m = number.exec(text);
    if (!m) return NaN;
    var scale = {"": 1, k: 1e3, m: 1e6, g: 1e9}[text.slice(m[0].length)];
    return Number(m[0].replace(/[,_]/g, "")) * (scale || NaN);
  }
  function time(text) {
    if (text === "0") return 0;
    var sum = text === "" ? NaN : 0;
    while (text !== "") {
      var m = component.exec(text);
      var unit = m && units.filter(function (u) { return u[1].split(" ").indexOf(m[2]) >= 0; })[0];
      if (!unit) return NaN;
      sum += decimal(m[1].replace(/\.$/, "")) * unit[0];
      text = text.slice(m[0].length);
    }
    return sum;
  }
  function valueOf(kind, text) {
    if (kind === "time") return time(text);
    if (kind === "rate") return decimal(text.replace(/\/s$/, ""));
    var n = decimal(text), list = /,/.test(text) && !/,0/.test(text) && !/[kmg]$/.test(text);
    return list || n % 1 !== 0 ? NaN : n;
  }

  // Conditions.
  function has(row, status) {
    if (status === "fail") return row.slo === "fail";
    if (status === "open") return row.open;
    return status === "interrupted" ? row.status.indexOf(status) === 0 : row.status === status;
  }
  function condition(key, rest) { // throws what is allowed
    var text = rest.slice(1), kind = data.kinds[key];
    if (rest[0] === ":" && key === "verdict") {
      if (data.statuses.indexOf(text) < 0) throw data.allowed.verdict;
      return function (r) { return has(r, text); };
    }
    if (rest[0] === ":" && text !== "" && data.rows[0].texts.hasOwnProperty(key)) {
      return function (r) { return r.texts[key].toLowerCase().indexOf(text) >= 0; };
    }
    if (rest[0] === ":" || !kind) throw data.allowed.key;
    var op = /^([<>]=?|=)/.exec(rest)[0], limit = valueOf(kind, rest.slice(op.length));
    if (isNaN(limit)) throw data.allowed[kind];
    return function (r) {
      var v = r.figures[key];
      if (v === undefined) return false;
      var bound = typeof v === "object", x = bound ? v.at_least : v;
      if (op === ">") return x > limit;
      if (op === ">=") return x >= limit;
      return !bound && (op === "<" ? x < limit : op === "<=" ? x <= limit : x === limit);
    };
  }
  function parse(search) {
    var all = [];
    search.toLowerCase().replace(/\s*([<>]=?|=)\s*/g, "$1").split(/\s+/).filter(Boolean).slice(0, data.most).forEach(function (w) {
      var plain = w.replace(/^"+|"+$/g, ""), at = w.search(/[<>=:]/);
      if (at <= 0 || plain !== w || w[0] < "a" || w[0] > "z") {
        all.push(function (r, i) { return texts[i].indexOf(plain) >= 0; });
        return;
      }
      try {
        all.push(condition(w.slice(0, at), w.slice(at)));
      } catch (allowed) {
        throw JSON.stringify(w) + " is not a filter (" + allowed + ")";
      }
    });
    return all;
  }
  function filter() {
    var all, n = 0;
    try {
      all = parse(words.value);
    } catch (wrong) { // the rows stay
      shown.textContent = wrong;
      return;
    }
    rows.forEach(function (row, i) {
      var r = data.rows[i];
      row.hidden = !((!system.value || r.texts.driver === system.value) && (!scenario.value || r.texts.scenario === scenario.value) &&
        all.every(function (f) { return f(r, i); }));
      if (!row.hidden) n++;
    });
    shown.textContent = n + " of " + rows.length + " runs. Times are UTC.";
  }
  form.addEventListener("input", filter);
  order.addEventListener("input", function () { data.orders[order.value].forEach(function (i) { body.appendChild(rows[i]); }); });
  form.addEventListener("submit", function (e) { e.preventDefault(); });
  form.hidden = false;
})();
