// The page's moving parts: charts to read, zoom and save; the switch for dark; buttons that copy. The page is complete without it.
// Loads nothing, stores nothing. Inserts text by textContent only.
"use strict";
(() => {
  const root = document.documentElement;
  const one = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  // Data blocks are zlib in base64, which keeps the page small enough to mail.
  async function textOf(block) {
    const bytes = Uint8Array.from(atob(block.textContent.trim()), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
  }
  const dataOf = async (id) => { const block = document.getElementById(id); return block ? JSON.parse(await textOf(block)) : null; };
  const colour = (name) => getComputedStyle(root).getPropertyValue("--" + name).trim();
  const say = (text) => { one("#spoken").textContent = text; };
  const fileName = document.body.dataset.fileName || "diskproof";

  // Numbers have at most four digits.
  const number = (value) => {
    const size = Math.abs(value);
    if (value === 0) return "0";
    if (size >= 1e6) return +(value / 1e6).toPrecision(4) + "M";
    return size >= 1000 ? Math.round(value).toLocaleString("en").replaceAll(",", "\u202f") : String(+value.toPrecision(4));
  };
  const quantity = (value, axis) => (axis.scale === "percentile" ? +value.toFixed(6) : number(value)) + (axis.unit ? " " + axis.unit : "");
  const heading = (axis) => axis.unit && axis.unit !== axis.label ? `${axis.label} (${axis.unit})` : axis.label;

  // uPlot counts the ticks of a logarithmic axis from its lower end: they are round only if that is.
  const roundBelow = (value) => { const power = 10 ** Math.floor(Math.log10(value)); return Math.floor(value / power) * power; };

  // Multiples of a step, as uPlot chose it.
  const marksBetween = (min, max, step) => { const marks = []; for (let k = Math.ceil(min / step - 1e-9); k * step <= max + step * 1e-9; k++) marks.push(+(k * step).toPrecision(12)); return marks; };

  // Percentiles lie by 1/(1−p), as HdrHistogram plots them: the position is the number of nines.
  const nines = (percent) => -Math.log10(Math.max(1 - percent / 100, 1e-12));
  const percentOf = (position) => 100 * (1 - 10 ** -position);

  const COLOURS = 8;
  // Letters in charts scale with those of the page.
  const letter = () => parseFloat(getComputedStyle(root).fontSize) / 16;
  const ERROR_CAP = 4;
  const polygon = (corners) => (ctx, x, y, r) => {
    corners.forEach(([dx, dy], i) => ctx[i ? "lineTo" : "moveTo"](x + dx * r, y + dy * r));
    ctx.closePath();
  };
  const disc = (ctx, x, y, r) => { ctx.moveTo(x + r, y); ctx.arc(x, y, r, 0, 2 * Math.PI); };
  // Circle, square, triangle, diamond, upside-down triangle.
  const SHAPES = [disc, polygon([[-0.88, -0.88], [0.88, -0.88], [0.88, 0.88], [-0.88, 0.88]]), polygon([[0, -1.3], [1.2, 0.85], [-1.2, 0.85]]),
    polygon([[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]]), polygon([[0, 1.3], [1.2, -0.85], [-1.2, -0.85]])];

  // One chart: its plot, its buttons, its table.
  class Chart {
    constructor(figure, data) {
      this.figure = figure;
      this.data = data;
      this.box = one(".plot", figure);
      this.isLog = data.y.scale === "log";
      this.shown = data.series.map(() => true);
      this.limits = null;
      this.place = data.x.scale === "percentile" ? nines : (x) => x;
      this.value = data.x.scale === "percentile" ? percentOf : (x) => x;
      this.tip = document.createElement("div");
      this.tip.className = "tip";
      this.tip.hidden = true;
      this.box.classList.add("live");
      this.box.append(this.tip);
      this.box.tabIndex = 0;
      this.box.setAttribute("role", "group");
      this.box.setAttribute("aria-roledescription", "chart");
      this.box.setAttribute("aria-label", data.title);
      this.listen();
      this.draw();
      new ResizeObserver(() => this.plot.setSize(this.size())).observe(this.box);
    }

    size() {
      return { width: Math.max(this.box.clientWidth, 120), height: this.box.clientHeight };
    }

    // Positions ascending and each used once, because uPlot joins series by position.
    columns() {
      const tables = this.data.series.map((series) => {
        const order = series.x.map((_, i) => i).sort((a, b) => series.x[a] - series.x[b]);
        const xs = [], ys = [];
        for (const i of order) {
          const usable = !this.isLog || series.y[i] > 0 || series.right;
          let x = this.place(series.x[i]);
          if (xs.length && x <= xs.at(-1)) x = xs.at(-1) + Math.abs(xs.at(-1)) * 1e-12 + 1e-12;
          xs.push(x);
          ys.push(usable ? series.y[i] : null);
        }
        return [xs, ys];
      });
      return uPlot.join(tables);
    }

    draw() {
      if (this.plot) this.plot.destroy();
      this.table = this.columns();
      this.plot = new uPlot(this.options(), this.table, this.box);
      this.plot.over.append(this.tip);
      this.whole = this.extent();
      const [min, max] = this.limits || this.whole;
      this.plot.setScale("x", { min, max });
    }

    // The horizontal axis when all is shown. Bars need room beside the first and the last one.
    extent() {
      const { x, series } = this.data, xs = this.table[0];
      let [low, high] = [x.min == null ? xs[0] : this.place(x.min), x.max == null ? xs.at(-1) : this.place(x.max)];
      const room = series.some(({ mark }) => mark === "bars") ? (high - low) / Math.max(xs.length - 1, 1) / 2 : 0;
      if (x.scale === "log") return low < high ? [low, high] : [low / 2, high * 2];
      return low < high ? [low - room, high + room] : [low - 0.5, high + 0.5];
    }

    options() {
      const { data } = this, unit = letter();
      const axis = (of, extra) => ({ stroke: () => colour("quiet"), grid: { stroke: () => colour("faint-line"), width: 1 }, ticks: { stroke: () => colour("line"), width: 1 },
        font: this.font(), labelFont: this.font(), label: heading(of), labelSize: 20 * unit, labelGap: 2, values: (_, splits) => splits.map((v) => v === null ? "" : number(v)), ...extra });
      const axes = [axis(data.x, { size: 34 * unit, ...this.horizontal() }), axis(data.y, { size: 58 * unit, ...this.vertical(data.y) })];
      if (data.yRight) axes.push(axis(data.yRight, { scale: "right", side: 1, size: 58 * unit, grid: { show: false }, ...this.vertical(data.yRight) }));
      const scales = { x: { time: false, ...this.spread(data.x) }, y: this.upright(data.y, this.isLog) };
      if (data.yRight) scales.right = this.upright(data.yRight, data.yRight.scale === "log");
      return {
        ...this.size(), axes, scales, legend: { show: false }, padding: [12, data.yRight ? 0 : 28 * unit, 0, 0],
        series: [{}, ...data.series.map((series, i) => this.line(series, i))],
        cursor: { y: false, drag: { x: true, y: false }, dataIdx: (u, series, index) => this.nearest(series, index), points: { size: 9 } },
        hooks: { drawSeries: [(u, series) => this.drawDots(u, series - 1)], draw: [(u) => this.drawErrors(u), (u) => this.drawGuides(u)], setCursor: [(u) => this.point(u)], setSelect: [(u) => this.selected(u)] },
      };
    }

    font() {
      return `${12 * letter()}px ${getComputedStyle(document.body).fontFamily}`;
    }

    horizontal() {
      const { x } = this.data;
      if (x.scale === "percentile") {
        const marks = [0, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99, 99.999, 99.9999, 99.99999];
        // The ends and whole nines first, then as many others as have room.
        const weight = (p) => p === 0 || (p > 0 && Number.isInteger(+nines(p).toFixed(9))) ? 0 : p === 50 ? 1 : 2;
        const order = [...marks].sort((a, b) => weight(a) - weight(b) || a - b);
        return {
          splits: (u, _, min, max) => {
            const apart = 52 * letter() * (max - min) / (u.bbox.width / (devicePixelRatio || 1)), kept = [];
            for (const v of order.map(nines)) if (v >= min - 1e-9 && v <= max + 1e-9 && kept.every((other) => Math.abs(other - v) >= apart)) kept.push(v);
            return kept.sort((a, b) => a - b);
          },
          values: (_, splits) => splits.map((v) => +percentOf(v).toFixed(7) + "\u2009%"), label: x.label,
        };
      }
      return x.ticks && x.ticks.length ? { splits: () => x.ticks, filter: (_, splits) => splits } : {};
    }

    vertical(axis) {
      return axis.whole && axis.scale === "linear" && !(axis === this.data.y && this.isLog) ? { splits: (u, index, min, max, step) => this.isWhole(axis) ? axis.whole.ticks : marksBetween(min, max, step) } : {};
    }

    spread(axis) {
      return axis.scale === "log" ? { distr: 3 } : {};
    }

    // While all is shown, an axis is that of the picture: its ends are round, and the lines of both sides are the same.
    isWhole(axis) {
      return axis.whole && !this.limits && this.shown.every(Boolean) && (axis.scale === "log") === (axis === this.data.y ? this.isLog : axis.scale === "log");
    }

    upright(axis, isLog) {
      const { range, ...scale } = this.loose(axis, isLog);
      return { ...scale, range: (u, low, high) => this.isWhole(axis) ? [axis.whole.low, axis.whole.high] : range(u, low, high) };
    }

    // Around what is in view.
    loose(axis, isLog) {
      if (isLog) return { distr: 3, range: (_, low, high) => low > 0 ? [roundBelow(low / 1.3), high * 1.3] : [0.1, 1] };
      return { range: (u, low, high) => {
        if (low === null) return [0, 1];
        high = Math.max(high, this.highestError(u, axis));
        const room = (high - low || Math.abs(high) || 1) * 0.08;
        return [axis.min ?? low - room, axis.max ?? high + room];
      } };
    }

    // The upper end of the highest error bar in view.
    highestError(u, axis) {
      const min = u.scales.x.min ?? -Infinity, max = u.scales.x.max ?? Infinity, isRight = axis === this.data.yRight;
      let highest = -Infinity;
      this.data.series.forEach((series, i) => {
        if (!this.shown[i] || series.right !== isRight) return;
        series.half.forEach((half, k) => { const x = this.place(series.x[k]); if (!(x < min || x > max)) highest = Math.max(highest, series.y[k] + half); });
      });
      return highest;
    }

    line(series, index) {
      const paint = () => colour("s" + (index % COLOURS));
      const common = { label: series.name, scale: series.right ? "right" : "y", stroke: paint, spanGaps: true, show: this.shown[index] };
      if (series.mark === "dots") return { ...common, paths: () => null, points: { show: false } };
      if (series.mark === "bars") return { ...common, fill: () => paint() + "40", width: 1.6, paths: uPlot.paths.bars({ size: [0.7, 60] }), points: { show: false } };
      // The only line is what the chart is about.
      const tint = this.data.series.filter((other) => other.mark === "line").length === 1 ? { fill: () => paint() + "1a" } : {};
      return { ...common, ...tint, width: 1.8, dash: series.dash, points: { show: series.x.length <= 40 && this.data.x.scale !== "percentile", size: 5, width: 0, fill: paint } };
    }

    // Each series shows its own point next to the cursor.
    nearest(series, index) {
      if (series === 0) return index;
      const values = this.table[series];
      for (let step = 0; step < values.length; step++) {
        if (values[index - step] != null) return index - step;
        if (values[index + step] != null) return index + step;
      }
      return index;
    }

    // Each series has a shape of its own as well as a colour, the same as in the picture.
    drawDots(u, index) {
      const own = this.data.series[index];
      if (!own || own.mark !== "dots" || !this.shown[index]) return;
      const { ctx, bbox } = u, radius = 2.5 * letter() * (devicePixelRatio || 1), shape = SHAPES[index % SHAPES.length];
      ctx.save();
      ctx.beginPath();
      // A dot on the edge is drawn whole.
      ctx.rect(bbox.left - 2 * radius, bbox.top - 2 * radius, bbox.width + 4 * radius, bbox.height + 4 * radius);
      ctx.clip();
      ctx.fillStyle = colour("s" + (index % COLOURS));
      ctx.beginPath();
      const xs = this.table[0], ys = this.table[index + 1], { min, max } = u.scales.x;
      for (let i = 0; i < xs.length; i++) if (ys[i] != null && xs[i] >= min && xs[i] <= max) shape(ctx, u.valToPos(xs[i], "x", true), u.valToPos(ys[i], own.right ? "right" : "y", true), radius);
      ctx.fill();
      ctx.restore();
    }

    drawErrors(u) {
      const { ctx } = u, ratio = devicePixelRatio || 1;
      ctx.save();
      ctx.beginPath();
      ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
      ctx.clip();
      this.data.series.forEach((series, i) => {
        if (!this.shown[i] || !series.half.length) return;
        const scale = series.right ? "right" : "y", cap = ERROR_CAP * ratio;
        ctx.strokeStyle = colour(series.mark === "bars" ? "ink" : "s" + (i % COLOURS));
        ctx.lineWidth = 1.2 * ratio;
        ctx.beginPath();
        series.x.forEach((x, k) => {
          const half = series.half[k];
          if (!half) return;
          const left = u.valToPos(this.place(x), "x", true);
          const low = this.isLog && !series.right ? Math.max(series.y[k] - half, u.scales.y.min) : series.y[k] - half;
          const [bottom, top] = [u.valToPos(low, scale, true), u.valToPos(series.y[k] + half, scale, true)];
          for (const [fx, fy, tx, ty] of [[left, bottom, left, top], [left - cap, top, left + cap, top], [left - cap, bottom, left + cap, bottom]]) { ctx.moveTo(fx, fy); ctx.lineTo(tx, ty); }
        });
        ctx.stroke();
      });
      ctx.restore();
    }

    drawGuides(u) {
      const { ctx, bbox } = u, ratio = devicePixelRatio || 1;
      ctx.save();
      ctx.strokeStyle = ctx.fillStyle = colour("quiet");
      ctx.lineWidth = ratio;
      ctx.font = `${11 * letter() * ratio}px ${getComputedStyle(document.body).fontFamily}`;
      for (const guide of this.data.guides || []) {
        const isUpright = guide.axis === "x";
        const at = Math.round(isUpright ? u.valToPos(this.place(guide.at), "x", true) : u.valToPos(guide.at, guide.axis === "right" ? "right" : "y", true));
        const [start, end] = isUpright ? [bbox.left, bbox.left + bbox.width] : [bbox.top, bbox.top + bbox.height];
        if (!(at >= start && at <= end)) continue;
        ctx.setLineDash([5 * ratio, 4 * ratio]);
        ctx.beginPath();
        if (isUpright) { ctx.moveTo(at, bbox.top); ctx.lineTo(at, bbox.top + bbox.height); } else { ctx.moveTo(bbox.left, at); ctx.lineTo(bbox.left + bbox.width, at); }
        ctx.stroke();
        const width = ctx.measureText(guide.label).width;
        const x = isUpright ? Math.min(at + 5 * ratio, bbox.left + bbox.width - width) : bbox.left + bbox.width - width - 5 * ratio;
        const y = isUpright ? bbox.top + 11 * ratio : at - 5 * ratio;
        // A rim of paper keeps the words readable across lines.
        ctx.setLineDash([]);
        ctx.lineWidth = 4 * ratio;
        ctx.strokeStyle = colour("paper");
        ctx.strokeText(guide.label, Math.max(x, bbox.left), y);
        ctx.strokeStyle = colour("quiet");
        ctx.lineWidth = ratio;
        ctx.fillText(guide.label, Math.max(x, bbox.left), y);
      }
      ctx.restore();
    }

    // The values under the cursor, in words.
    reading(u) {
      const { idx, idxs } = u.cursor;
      if (idx == null || !idxs) return "";
      const lines = [];
      let at = this.table[0][idx];
      this.data.series.forEach((series, i) => {
        const index = idxs[i + 1], y = index == null ? null : this.table[i + 1][index];
        if (!this.shown[i] || y == null) return;
        const axis = series.right ? this.data.yRight : this.data.y;
        const own = series.x.findIndex((x) => Math.abs(this.place(x) - this.table[0][index]) <= 1e-9 * Math.max(1, Math.abs(this.table[0][index])));
        const half = own >= 0 && series.half[own] ? ` ± ${number(series.half[own])}` : "";
        if (this.data.series.length === 1) at = this.table[0][index];
        lines.push(`${series.name}: ${number(y)}${half} ${axis.unit}`);
      });
      return [`${this.data.x.label}: ${quantity(this.value(at), this.data.x)}`, ...lines].join("\n");
    }

    point(u) {
      const { left, top } = u.cursor;
      const text = left >= 0 ? this.reading(u) : "";
      this.tip.hidden = !text;
      if (!text) return;
      this.tip.textContent = text;
      const { clientWidth, clientHeight } = u.over;
      const x = left + 14 + this.tip.offsetWidth > clientWidth ? left - 14 - this.tip.offsetWidth : left + 14;
      const y = Math.min(Math.max(top - 20, 0), clientHeight - this.tip.offsetHeight);
      this.tip.style.transform = `translate(${Math.max(x, 0)}px, ${Math.max(y, 0)}px)`;
    }

    selected(u) {
      if (u.select.width > 3) this.remember(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
    }

    remember(min, max) {
      const isWhole = min <= this.whole[0] && max >= this.whole[1];
      this.limits = isWhole ? null : [min, max];
      one(".zoom-out", this.figure).disabled = isWhole;
    }

    zoom(min, max) {
      const [low, high] = [Math.max(min, this.whole[0]), Math.min(max, this.whole[1])];
      if (!(high > low)) return;
      this.remember(low, high);
      this.plot.setScale("x", { min: low, max: high });
    }

    magnify(factor) {
      const { min, max } = this.plot.scales.x;
      const middle = this.plot.cursor.idx == null ? (min + max) / 2 : this.table[0][this.plot.cursor.idx];
      this.zoom(middle - (middle - min) / factor, middle + (max - middle) / factor);
    }

    showAll() {
      this.zoom(this.whole[0], this.whole[1]);
    }

    // Moves the cursor to a neighbouring position that is in view.
    step(by) {
      const { min, max } = this.plot.scales.x, xs = this.table[0];
      const first = xs.findIndex((x) => x >= min), last = xs.findLastIndex((x) => x <= max);
      const from = this.plot.cursor.idx;
      const to = from == null || this.plot.cursor.left < 0 ? (by > 0 ? first : last) : Math.min(Math.max(from + by, first), last);
      if (to < 0) return;
      this.plot.setCursor({ left: this.plot.valToPos(xs[to], "x"), top: this.plot.over.clientHeight / 3 });
      say(this.reading(this.plot).replaceAll("\n", "; "));
    }

    listen() {
      const keys = { ArrowRight: () => this.step(1), ArrowLeft: () => this.step(-1), PageDown: () => this.step(20), PageUp: () => this.step(-20), "+": () => this.magnify(2), "=": () => this.magnify(2),
        "-": () => this.magnify(0.5), "0": () => this.showAll(), Escape: () => this.plot.setCursor({ left: -10, top: -10 }) };
      onKeys(this.box, keys);
      this.box.addEventListener("dblclick", () => this.showAll());
      one(".zoom-out", this.figure).addEventListener("click", () => this.showAll());
      one(".csv", this.figure).addEventListener("click", () => save(`${fileName}-${this.data.id}.csv`, "text/csv", csv([this.data])));
      const scale = one(".scale", this.figure);
      if (scale) scale.addEventListener("click", () => {
        this.isLog = !this.isLog;
        scale.setAttribute("aria-pressed", this.isLog);
        this.draw();
      });
      for (const button of all("[data-series]", this.figure)) button.addEventListener("click", () => {
        const index = +button.dataset.series;
        this.shown[index] = !this.shown[index];
        button.setAttribute("aria-pressed", this.shown[index]);
        this.plot.setSeries(index + 1, { show: this.shown[index] });
      });
      fillWhenOpened(one("details.values", this.figure), this.data);
    }
  }

  // The map of a scan: cells that are read with the mouse or with the keys.
  class ScanMap {
    constructor(figure, { chart, perRow, side, cells, notable }) {
      Object.assign(this, { data: chart, perRow, side, cells, notable, chosen: null });
      this.box = one(".field", figure);
      this.svg = one("svg", this.box);
      this.frame = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      for (const [name, value] of Object.entries({ class: "chosen", width: side + 1, height: side + 1, visibility: "hidden" })) this.frame.setAttribute(name, value);
      this.svg.append(this.frame);
      this.tip = document.createElement("div");
      this.tip.className = "tip";
      this.tip.hidden = true;
      this.box.append(this.tip);
      this.box.tabIndex = 0;
      this.box.setAttribute("role", "group");
      this.box.setAttribute("aria-roledescription", "map");
      this.box.setAttribute("aria-label", chart.title);
      this.listen();
      one(".csv", figure).addEventListener("click", () => save(`${fileName}-${chart.id}.csv`, "text/csv", csv([chart])));
      fillWhenOpened(one("details.values", figure), chart);
    }

    reading(index) {
      const { x, y, yRight, series } = this.data, at = this.cells[index];
      const lines = series.map((own) => [own, own.x.indexOf(at)]).filter(([, k]) => k >= 0).map(([own, k]) => `${own.name}: ${quantity(own.y[k], own.right ? yRight : y)}`);
      return [`${x.label}: ${quantity(at, x)}`, ...(lines.length ? lines : ["not read"])].join("\n");
    }

    show(index) {
      this.chosen = index;
      this.tip.hidden = index === null;
      this.frame.setAttribute("visibility", index === null ? "hidden" : "visible");
      if (index === null) return;
      const [left, top] = [index % this.perRow * this.side - 1, Math.floor(index / this.perRow) * this.side - 1];
      this.frame.setAttribute("x", left);
      this.frame.setAttribute("y", top);
      this.tip.textContent = this.reading(index);
      const own = this.frame.getBoundingClientRect(), box = this.box.getBoundingClientRect();
      const { offsetWidth: width, offsetHeight: height } = this.tip;
      const x = own.right + 8 + width > box.right ? own.left - 8 - width : own.right + 8;
      const y = Math.min(own.top, box.bottom - height);
      this.tip.style.transform = `translate(${Math.max(x - box.left, 0)}px, ${Math.max(y - box.top, 0)}px)`;
    }

    cellAt(event) {
      const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
      const [column, row] = [Math.floor(x / this.side), Math.floor(y / this.side)];
      const index = row * this.perRow + column;
      return column >= 0 && column < this.perRow && row >= 0 && index < this.cells.length ? index : null;
    }

    step(by) {
      const last = this.cells.length - 1;
      this.go(this.chosen === null ? (by > 0 ? 0 : last) : Math.min(Math.max(this.chosen + by, 0), last));
    }

    // The next place that is slow or unreadable.
    seek(by) {
      const from = this.chosen ?? (by > 0 ? -1 : this.cells.length);
      for (let index = from + by; index >= 0 && index < this.cells.length; index += by) if (this.notable[index]) return this.go(index);
      say(by > 0 ? "No slow place after this one" : "No slow place before this one");
    }

    go(index) {
      this.show(index);
      say(this.reading(index).replaceAll("\n", "; "));
    }

    listen() {
      const keys = { ArrowRight: () => this.step(1), ArrowLeft: () => this.step(-1), ArrowDown: () => this.step(this.perRow), ArrowUp: () => this.step(-this.perRow),
        Home: () => this.go(0), End: () => this.go(this.cells.length - 1), PageDown: () => this.seek(1), PageUp: () => this.seek(-1), Escape: () => this.show(null) };
      onKeys(this.box, keys);
      for (const moved of ["pointermove", "pointerdown"]) this.box.addEventListener(moved, (event) => this.show(this.cellAt(event)));
      this.box.addEventListener("pointerleave", () => this.show(null));
      this.box.addEventListener("blur", () => this.show(null));
    }
  }

  function onKeys(box, keys) {
    box.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
  }

  function fillWhenOpened(values, data) {
    values.addEventListener("toggle", () => { if (values.open && !one("table", values)) one(".wide", values).append(tableOf(data)); });
  }

  // More rows make a browser slow; the CSV has them all.
  const ROWS_MAX = 5000;

  function tableOf(data) {
    const table = document.createElement("table");
    const row = (parent, kind, cells) => {
      const line = parent.insertRow();
      for (const text of cells) {
        const cell = document.createElement(kind);
        if (kind === "th") cell.scope = "col"; else cell.className = "number";
        cell.textContent = text;
        line.append(cell);
      }
    };
    row(table.createTHead(), "th", ["series", heading(data.x), "value", "± 95 %"]);
    const body = table.createTBody();
    let left = ROWS_MAX;
    for (const series of data.series) {
      const axis = series.right ? data.yRight : data.y;
      series.x.slice(0, left).forEach((x, i) => row(body, "td", [series.name, x, `${series.y[i]} ${axis.unit}`, series.half[i] ? series.half[i] : ""]));
      left -= Math.min(left, series.x.length);
    }
    if (left === 0) row(body, "td", [`first ${ROWS_MAX} rows; the CSV has all`]);
    return table;
  }

  // One row per point. An apostrophe keeps a name from being run as a formula.
  function csv(charts) {
    const cell = (text) => `"${(/^[=+\-@\t\r]/.test(text) ? "'" + text : text).replaceAll('"', '""')}"`;
    const lines = ["chart,series,x,x_quantity,x_unit,y,y_quantity,y_unit,half_width_95"];
    for (const data of charts) for (const series of data.series) {
      const axis = series.right ? data.yRight : data.y;
      series.x.forEach((x, i) => lines.push([cell(data.id), cell(series.name), x, cell(data.x.label), cell(data.x.unit), series.y[i], cell(axis.label), cell(axis.unit), series.half[i] ? series.half[i] : ""].join(",")));
    }
    return lines.join("\r\n") + "\r\n";
  }

  function save(name, type, text) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: type + ";charset=utf-8" }));
    link.download = name;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    say("Saved " + name);
  }

  async function copy(button) {
    const code = one("code", button.parentElement);
    let done = true;
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      // Without a clipboard (an old browser, a page in a mail): select the text and use the older way.
      getSelection().selectAllChildren(code);
      done = document.execCommand("copy");
    }
    button.textContent = done ? "Copied" : "Selected";
    say(done ? "Copied" : "Selected; press Ctrl C to copy");
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  }

  const charts = [];
  async function drawCharts() {
    const [data, map] = await Promise.all([dataOf("chart-data"), dataOf("map-data")]);
    for (const figure of all("figure[data-chart]")) {
      const own = (data || []).find((chart) => chart.id === figure.dataset.chart);
      if (own) charts.push(new Chart(figure, own));
    }
    if (map) new ScanMap(one("figure.map"), map);
    const everything = one("#save-charts");
    if (everything) everything.addEventListener("click", () => save(fileName + "-charts.csv", "text/csv", csv([...(data || []), ...(map ? [map.chart] : [])])));
  }

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const theme = one("#theme");
  const isDark = () => (root.dataset.theme || (dark.matches ? "dark" : "light")) === "dark";
  const repaint = () => { theme.setAttribute("aria-pressed", isDark()); for (const chart of charts) chart.draw(); };
  theme.setAttribute("aria-pressed", isDark());
  theme.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; repaint(); });
  dark.addEventListener("change", repaint);

  for (const button of all(".copy")) button.addEventListener("click", () => copy(button));
  const record = one("#save-record");
  if (record) record.addEventListener("click", async () => save(fileName + ".json", "application/json", await textOf(one("script#record, script#comparison")) + "\n"));

  // Paper has no summary to click on.
  let closed = [];
  addEventListener("beforeprint", () => { closed = all("details:not(.values):not([open])"); for (const details of closed) details.open = true; });
  addEventListener("afterprint", () => { for (const details of closed) details.open = false; });

  // Browsers from before 2023 cannot unpack data: charts stay pictures, without controls.
  const withoutData = () => { for (const part of all("#charts .scripted, #save-record, #save-charts")) part.remove(); for (const button of all("[data-series]")) button.disabled = true; };
  drawCharts().catch(withoutData).then(() => root.classList.add("has-script"));
})();
