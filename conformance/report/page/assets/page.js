"use strict";
(function () {
  var root = document.documentElement;
  var byId = function (id) { return document.getElementById(id); };

  // Theme: the system's, until the button says otherwise.
  var theme = byId("theme");
  var dark = function () {
    var set = root.getAttribute("data-theme");
    return set ? set === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };
  var label = function () { theme.textContent = dark() ? "Light theme" : "Dark theme"; };
  var kept = null;
  try { kept = localStorage.getItem("plumbline-theme"); } catch (e) { /* a page without storage */ }
  if (kept === "dark" || kept === "light") { root.setAttribute("data-theme", kept); }
  theme.hidden = false;
  label();
  theme.addEventListener("click", function () {
    var next = dark() ? "light" : "dark";
    root.setAttribute("data-theme", next);
    try { localStorage.setItem("plumbline-theme", next); } catch (e) { /* as above */ }
    label();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);

  // Copy the command.
  var copy = byId("copy");
  if (copy) {
    var said = byId("copied");
    var selected = function () {
      var range = document.createRange();
      range.selectNodeContents(byId("repro"));
      var s = getSelection();
      s.removeAllRanges();
      s.addRange(range);
      said.textContent = document.execCommand("copy") ? "copied" : "selected: copy it by hand";
    };
    copy.hidden = false;
    copy.addEventListener("click", function () {
      var text = byId("repro").textContent;
      if (navigator.clipboard && window.isSecureContext) {
        navigator.clipboard.writeText(text).then(function () { said.textContent = "copied"; }, selected);
      } else {
        selected();
      }
    });
  }

  // Sorting: by the number in data-k, else by a number at the start, else by text.
  var collator = new Intl.Collator("en", { numeric: true });
  var key = function (row, column) {
    var cell = row.cells[column];
    var k = cell.getAttribute("data-k");
    return k !== null ? k : cell.textContent.trim();
  };
  var sort = function (table, column, ascending) {
    var body = table.tBodies[0];
    var rows = Array.prototype.map.call(body.rows, function (r) { return { row: r, key: key(r, column) }; });
    var numeric = rows.every(function (r) { return r.key !== "" && !isNaN(Number(r.key)); });
    rows.sort(function (a, b) {
      var d;
      if (numeric) {
        var x = Number(a.key), y = Number(b.key);
        d = x < y ? -1 : x > y ? 1 : 0;
      } else {
        d = collator.compare(a.key, b.key);
      }
      return ascending ? d : -d;
    });
    var all = document.createDocumentFragment();
    rows.forEach(function (r) { all.appendChild(r.row); });
    body.appendChild(all);
  };
  Array.prototype.forEach.call(document.querySelectorAll("table.sortable"), function (table) {
    var heads = table.tHead.rows[0].cells;
    Array.prototype.forEach.call(heads, function (th, column) {
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = th.textContent;
      th.textContent = "";
      th.appendChild(button);
      th.setAttribute("aria-sort", "none");
      button.addEventListener("click", function () {
        var ascending = th.getAttribute("aria-sort") !== "ascending";
        Array.prototype.forEach.call(heads, function (h) { h.setAttribute("aria-sort", "none"); });
        th.setAttribute("aria-sort", ascending ? "ascending" : "descending");
        sort(table, column, ascending);
      });
    });
  });

  // Filter: a row is shown if it has every word.
  var filter = byId("filter");
  if (filter) {
    var rows = Array.prototype.map.call(byId("finding-table").tBodies[0].rows, function (r) {
      return { row: r, text: null };
    });
    var shown = byId("shown");
    var apply = function () {
      var words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      var n = 0;
      rows.forEach(function (r) {
        if (r.text === null) { r.text = r.row.textContent.toLowerCase(); }
        var fits = words.every(function (w) { return r.text.indexOf(w) >= 0; });
        r.row.hidden = !fits;
        if (fits) { n++; }
      });
      shown.textContent = n.toLocaleString("en") + " of " + rows.length.toLocaleString("en") + " shown";
    };
    var waiting = 0;
    filter.addEventListener("input", function () {
      clearTimeout(waiting);
      waiting = setTimeout(apply, 80);
    });
    filter.closest(".filter").hidden = false;
  }

  // A link to a check opens it.
  var open = function () {
    var at = location.hash ? byId(location.hash.slice(1)) : null;
    if (at && at.tagName === "DETAILS") { at.open = true; }
  };
  addEventListener("hashchange", open);
  open();
})();
