const root = document.documentElement;
const one = (selector, from = document) => from.querySelector(selector);
const all = (selector, from = document) => [...from.querySelectorAll(selector)];

// Data blocks are zlib in base64, which keeps the page small enough to mail.
async function textOf(block) {
  const bytes = Uint8Array.from(atob(block.textContent.trim()), (letter) => letter.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(unpacked).text();
}

async function dataOf(id) {
  const block = document.getElementById(id);
  return block ? JSON.parse(await textOf(block)) : null;
}

// Tells a screen reader what changed.
function announce(text) {
  one("#spoken").textContent = text;
}

// At most four digits.
function number(value) {
  const size = Math.abs(value);
  if (value === 0) return "0";
  if (size >= 1e6) return +(value / 1e6).toPrecision(4) + "M";
  if (size >= 1000) return Math.round(value).toLocaleString("en").replaceAll(",", "\u202f");
  return String(+value.toPrecision(4));
}

function quantity(value, axis) {
  const digits = axis.scale === "percentile" ? +value.toFixed(6) : number(value);
  return digits + (axis.unit ? " " + axis.unit : "");
}

function axisHeading(axis) {
  return axis.unit && axis.unit !== axis.label ? `${axis.label} (${axis.unit})` : axis.label;
}

// uPlot counts the ticks of a logarithmic axis from its lower end, so they are round only if that
// end is.
function roundBelow(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return Math.floor(value / power) * power;
}

// The multiples of the step that uPlot chose.
function ticksBetween(min, max, step) {
  const ticks = [];
  for (let k = Math.ceil(min / step - 1e-9); k * step <= max + step * 1e-9; k++) {
    ticks.push(+(k * step).toPrecision(12));
  }
  return ticks;
}

// A percentile is drawn at its number of nines, log10(1/(1−p)), as HdrHistogram plots it.
const nines = (percent) => -Math.log10(Math.max(1 - percent / 100, 1e-12));
const percentOf = (position) => 100 * (1 - 10 ** -position);

// Ticks at least 52 pixels apart: zero and whole nines first, then the median, then the others.
function percentileTicks(min, max, width) {
  const percents = [0, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99, 99.999, 99.9999, 99.99999];
  const rank = (p) => {
    if (p === 0 || Number.isInteger(+nines(p).toFixed(9))) return 0;
    return p === 50 ? 1 : 2;
  };
  const apart = (52 * textScale() * (max - min)) / width;
  const kept = [];
  for (const v of percents.sort((a, b) => rank(a) - rank(b) || a - b).map(nines)) {
    const isInside = v >= min - 1e-9 && v <= max + 1e-9;
    if (isInside && kept.every((other) => Math.abs(other - v) >= apart)) kept.push(v);
  }
  return kept.sort((a, b) => a - b);
}

// The colours of the style sheet.
const COLOURS = 8;
const colour = (name) => getComputedStyle(root).getPropertyValue("--" + name).trim();
const seriesColour = (index) => colour("s" + (index % COLOURS));

// Text in charts scales with the text of the page.
const textScale = () => parseFloat(getComputedStyle(root).fontSize) / 16;
const pixelRatio = () => devicePixelRatio || 1;
const font = (pixels) => `${pixels}px ${getComputedStyle(document.body).fontFamily}`;

function addLine(ctx, fromX, fromY, toX, toY) {
  ctx.moveTo(fromX, fromY);
  ctx.lineTo(toX, toY);
}

// The shapes of dots, around a position and with a radius.
const polygon = (corners) => (ctx, x, y, r) => {
  corners.forEach(([dx, dy], i) => ctx[i ? "lineTo" : "moveTo"](x + dx * r, y + dy * r));
  ctx.closePath();
};
const disc = (ctx, x, y, r) => {
  ctx.moveTo(x + r, y);
  ctx.arc(x, y, r, 0, 2 * Math.PI);
};
const square = polygon([[-0.88, -0.88], [0.88, -0.88], [0.88, 0.88], [-0.88, 0.88]]);
const triangle = polygon([[0, -1.3], [1.2, 0.85], [-1.2, 0.85]]);
const diamond = polygon([[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]]);
const invertedTriangle = polygon([[0, 1.3], [1.2, -0.85], [-1.2, -0.85]]);
const SHAPES = [disc, square, triangle, diamond, invertedTriangle];
