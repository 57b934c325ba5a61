// Filters the rows of a published list by words and by what its columns say.
"use strict";
(function () {
  var form = document.getElementById("filter");
  if (!form) return;
  var rows = Array.prototype.slice.call(document.querySelectorAll("#runs tbody tr"));
  var texts = rows.map(function (r) { return r.textContent.toLowerCase(); });
  var shown = document.getElementById("shown");
  function choices(id, key) {
    var values = {};
    rows.forEach(function (r) { var v = r.getAttribute(key); if (v) values[v] = (values[v] || 0) + 1; });
    var select = document.getElementById(id);
    Object.keys(values).sort().forEach(function (v) {
      var o = document.createElement("option");
      o.value = v;
      o.textContent = v + " (" + values[v] + ")";
      select.appendChild(o);
    });
    return select;
  }
  var system = choices("system", "data-system"), scenario = choices("scenario", "data-scenario"), words = document.getElementById("q");
  function filter() {
    var wanted = words.value.toLowerCase().split(/\s+/), n = 0;
    rows.forEach(function (r, i) {
      var hit = (!system.value || r.getAttribute("data-system") === system.value) &&
        (!scenario.value || r.getAttribute("data-scenario") === scenario.value) &&
        wanted.every(function (w) { return texts[i].indexOf(w) >= 0; });
      r.hidden = !hit;
      if (hit) n++;
    });
    shown.textContent = n + " of " + rows.length + " runs. Times are UTC.";
  }
  form.addEventListener("input", filter);
  form.addEventListener("submit", function (e) { e.preventDefault(); });
  form.hidden = false;
})();
