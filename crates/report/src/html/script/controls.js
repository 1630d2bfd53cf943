// Makes a box focusable, names it for screen readers and returns the tip that shows values in it.
function makeReadable(box, kind, title) {
  box.tabIndex = 0;
  box.setAttribute("role", "group");
  box.setAttribute("aria-roledescription", kind);
  box.setAttribute("aria-label", title);
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  box.append(tip);
  return tip;
}

function onKeys(box, keys) {
  box.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
}

function fillWhenOpened(values, data) {
  values.addEventListener("toggle", () => {
    const box = one(".wide", values);
    if (!values.open || box.firstChild) return;
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", `Values: ${data.title}`);
    box.append(tableOf(data));
  });
}

// More rows slow a browser down; the CSV file has all of them.
const ROWS_MAX = 5000;

function tableOf(data) {
  const table = document.createElement("table");
  addRow(table.createTHead(), "th", ["series", axisHeading(data.x), "value", "± 95 %"]);
  const body = table.createTBody();
  let left = ROWS_MAX;
  for (const series of data.series) {
    const axis = series.right ? data.yRight : data.y;
    series.x.slice(0, left).forEach((x, i) => {
      const value = `${series.y[i]} ${axis.unit}`;
      addRow(body, "td", [series.name, x, value, series.half[i] || ""]);
    });
    left -= Math.min(left, series.x.length);
  }
  if (left === 0) addRow(body, "td", [`first ${ROWS_MAX} rows; the CSV has all`]);
  return table;
}

function addRow(section, kind, texts) {
  const row = section.insertRow();
  for (const text of texts) {
    const cell = document.createElement(kind);
    if (kind === "th") cell.scope = "col";
    else cell.className = "number";
    cell.textContent = text;
    row.append(cell);
  }
}

// A quoted field. The apostrophe keeps a spreadsheet from running a name as a formula.
function csvText(text) {
  const harmless = /^[=+\-@\t\r]/.test(text) ? "'" + text : text;
  return `"${harmless.replaceAll('"', '""')}"`;
}

// One row per point.
function csv(charts) {
  const lines = ["chart,series,x,x_quantity,x_unit,y,y_quantity,y_unit,half_width_95"];
  for (const { id, series, x: xAxis, y: yAxis, yRight } of charts) {
    for (const own of series) {
      const axis = own.right ? yRight : yAxis;
      const names = [csvText(id), csvText(own.name)];
      const xUnit = [csvText(xAxis.label), csvText(xAxis.unit)];
      const yUnit = [csvText(axis.label), csvText(axis.unit)];
      own.x.forEach((x, i) => {
        lines.push([...names, x, ...xUnit, own.y[i], ...yUnit, own.half[i] || ""].join(","));
      });
    }
  }
  return lines.join("\r\n") + "\r\n";
}

const fileName = document.body.dataset.fileName || "diskproof";

function save(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: type + ";charset=utf-8" }));
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  announce("Saved " + name);
}

function saveCsv(name, charts) {
  save(`${fileName}-${name}.csv`, "text/csv", csv(charts));
}

async function copy(button) {
  const code = one("code", button.parentElement);
  let done = true;
  try {
    await navigator.clipboard.writeText(code.textContent);
  } catch {
    // An old browser or a page in a mail has no clipboard: select the text and copy the selection.
    getSelection().selectAllChildren(code);
    done = document.execCommand("copy");
  }
  button.textContent = done ? "Copied" : "Selected";
  announce(done ? "Copied" : "Selected; press Ctrl C to copy");
  setTimeout(() => {
    button.textContent = "Copy";
  }, 2000);
}
