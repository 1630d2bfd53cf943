const charts = [];
async function drawCharts() {
  const data = await dataOf("chart-data");
  const map = await dataOf("map-data");
  if (data?.length || map) {
    const code = document.createElement("script");
    code.textContent = await textOf(one("#drawing"));
    document.body.append(code);
  }
  for (const figure of all("figure[data-chart]")) {
    const own = (data || []).find((chart) => chart.id === figure.dataset.chart);
    if (own) charts.push(new Chart(figure, own));
  }
  if (map) new ScanMap(one("figure.map"), map);
  const everyChart = [...(data || []), ...(map ? [map.chart] : [])];
  one("#save-charts")?.addEventListener("click", () => saveCsv("charts", everyChart));
}

const dark = matchMedia("(prefers-color-scheme: dark)");
const theme = one("#theme");
const isDark = () => (root.dataset.theme || (dark.matches ? "dark" : "light")) === "dark";
function repaint() {
  theme.setAttribute("aria-pressed", isDark());
  for (const chart of charts) chart.draw();
}
repaint();
theme.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  repaint();
});
dark.addEventListener("change", repaint);

for (const button of all(".copy")) {
  const command = one("pre", button.parentElement).getAttribute("aria-label");
  button.setAttribute("aria-label", `Copy: ${command}`);
  button.addEventListener("click", () => copy(button));
}

async function saveRecord() {
  const json = await textOf(one("script#record, script#comparison, script#fleet"));
  save(fileName + ".json", "application/json", json + "\n");
}
one("#save-record")?.addEventListener("click", saveRecord);

// Paper cannot be clicked, so printing opens every summary.
let closed = [];
addEventListener("beforeprint", () => {
  closed = all("details:not(.values):not([open])");
  for (const details of closed) details.open = true;
});
addEventListener("afterprint", () => {
  for (const details of closed) details.open = false;
});

// Browsers from before 2023 cannot unpack the data: charts stay pictures without controls.
function withoutData() {
  for (const part of all("#charts .scripted, #save-record, #save-charts")) part.remove();
  for (const button of all("[data-series]")) button.disabled = true;
}
drawCharts()
  .catch(withoutData)
  .then(() => root.classList.add("has-script"));
