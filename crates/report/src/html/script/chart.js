// Half the width of the caps of an error bar, in pixels.
const ERROR_CAP = 4;
// Height of a line of labels above the plot, and room for the piece of a line before them.
const GUIDE_LINE = 16;
const GUIDE_KEY = 28;

// The interactive chart of a figure with its buttons and its table.
class Chart {
  constructor(figure, data) {
    this.figure = figure;
    this.data = data;
    this.box = one(".plot", figure);
    this.isLog = data.y.scale === "log";
    this.visible = data.series.map(({ hidden }) => !hidden);
    this.zoomed = null;
    this.toPosition = data.x.scale === "percentile" ? nines : (x) => x;
    this.toValue = data.x.scale === "percentile" ? percentOf : (x) => x;
    this.box.classList.add("live");
    this.tip = makeReadable(this.box, "chart", data.title);
    this.listen();
    this.draw();
    new ResizeObserver(() => this.plot.setSize(this.size())).observe(this.box);
  }

  size() {
    return { width: Math.max(this.box.clientWidth, 120), height: this.box.clientHeight };
  }

  // uPlot joins series by position, so positions ascend and each occurs once.
  alignedSeries() {
    const tables = this.data.series.map((series) => {
      const order = series.x.map((_, i) => i).sort((a, b) => series.x[a] - series.x[b]);
      const xs = [];
      const ys = [];
      for (const i of order) {
        const isDrawable = !this.isLog || series.y[i] > 0 || series.right;
        let x = this.toPosition(series.x[i]);
        if (xs.length && x <= xs.at(-1)) x = xs.at(-1) + Math.abs(xs.at(-1)) * 1e-12 + 1e-12;
        xs.push(x);
        ys.push(isDrawable ? series.y[i] : null);
      }
      return [xs, ys];
    });
    return uPlot.join(tables);
  }

  draw() {
    if (this.plot) this.plot.destroy();
    this.table = this.alignedSeries();
    this.plot = new uPlot(this.options(), this.table, this.box);
    this.plot.over.append(this.tip);
    this.fullX = this.fullRange();
    const [min, max] = this.zoomed || this.fullX;
    this.plot.setScale("x", { min, max });
  }

  // The range of the horizontal axis without zoom. The first and the last bar need room.
  fullRange() {
    const { x, series } = this.data;
    const xs = this.table[0];
    const low = x.min == null ? xs[0] : this.toPosition(x.min);
    const high = x.max == null ? xs.at(-1) : this.toPosition(x.max);
    const hasBars = series.some(({ mark }) => mark === "bars");
    const room = hasBars ? (high - low) / Math.max(xs.length - 1, 1) / 2 : 0;
    if (x.scale === "log") return low < high ? [low, high] : [low / 2, high * 2];
    return low < high ? [low - room, high + room] : [low - 0.5, high + 0.5];
  }

  options() {
    const { data } = this;
    const unit = textScale();
    const axes = [
      this.axisOptions(data.x, { size: 34 * unit, ...this.xTicks() }),
      this.axisOptions(data.y, { size: 58 * unit, ...this.yTicks(data.y) }),
    ];
    const scales = {
      x: { time: false, ...(data.x.scale === "log" ? { distr: 3 } : {}) },
      y: this.yScale(data.y, this.isLog),
    };
    if (data.yRight) {
      const right = { scale: "right", side: 1, size: 58 * unit, grid: { show: false } };
      axes.push(this.axisOptions(data.yRight, { ...right, ...this.yTicks(data.yRight) }));
      scales.right = this.yScale(data.yRight, data.yRight.scale === "log");
    }
    return {
      ...this.size(),
      axes,
      scales,
      legend: { show: false },
      padding: [12 + this.guideRoom(), data.yRight ? 0 : 28 * unit, 0, 0],
      series: [{}, ...data.series.map((series, i) => this.seriesOptions(series, i))],
      cursor: {
        y: false,
        drag: { x: true, y: false },
        dataIdx: (u, series, index) => this.nearestPoint(series, index),
        points: { size: 9 },
      },
      hooks: {
        drawSeries: [(u, series) => this.drawDots(u, series - 1)],
        draw: [(u) => this.drawErrors(u), (u) => this.drawGuides(u)],
        setCursor: [(u) => this.showTip(u)],
        setSelect: [(u) => this.onSelect(u)],
      },
    };
  }

  axisOptions(axis, own) {
    const unit = textScale();
    return {
      stroke: () => colour("quiet"),
      grid: { stroke: () => colour("faint-line"), width: 1 },
      ticks: { stroke: () => colour("line"), width: 1 },
      font: font(12 * unit),
      labelFont: font(12 * unit),
      label: axisHeading(axis),
      labelSize: 20 * unit,
      labelGap: 2,
      values: (_, splits) => splits.map((v) => (v === null ? "" : number(v))),
      ...own,
    };
  }

  xTicks() {
    const { x } = this.data;
    if (x.scale === "percentile") {
      return {
        splits: (u, _, min, max) => percentileTicks(min, max, u.bbox.width / pixelRatio()),
        values: (_, splits) => splits.map((v) => +percentOf(v).toFixed(7) + "\u2009%"),
        label: x.label,
      };
    }
    if (!x.ticks?.length) return {};
    return { splits: () => x.ticks, filter: (_, splits) => splits };
  }

  yTicks(axis) {
    const isLog = axis === this.data.y && this.isLog;
    if (!axis.whole || axis.scale !== "linear" || isLog) return {};
    return {
      splits: (u, index, min, max, step) =>
        this.showsFullRange(axis) ? axis.whole.ticks : ticksBetween(min, max, step),
    };
  }

  // Without zoom and with the series that are drawn at first, an axis has the range of the picture:
  // its ends are round, and the grid lines of both sides coincide.
  showsFullRange(axis) {
    const { series } = this.data;
    const asAtFirst = this.visible.every((isVisible, i) => isVisible !== series[i].hidden);
    if (!axis.whole || this.zoomed || !asAtFirst) return false;
    return axis !== this.data.y || (axis.scale === "log") === this.isLog;
  }

  yScale(axis, isLog) {
    const fitted = (u, low, high) =>
      isLog ? this.logRange(low, high) : this.linearRange(u, axis, low, high);
    return {
      ...(isLog ? { distr: 3 } : {}),
      range: (u, low, high) =>
        this.showsFullRange(axis) ? [axis.whole.low, axis.whole.high] : fitted(u, low, high),
    };
  }

  logRange(low, high) {
    return low > 0 ? [roundBelow(low / 1.3), high * 1.3] : [0.1, 1];
  }

  linearRange(u, axis, low, high) {
    if (low === null) return [0, 1];
    const top = Math.max(high, this.highestError(u, axis));
    const room = (top - low || Math.abs(top) || 1) * 0.08;
    return [axis.min ?? low - room, axis.max ?? top + room];
  }

  // The upper end of the highest error bar in view.
  highestError(u, axis) {
    const min = u.scales.x.min ?? -Infinity;
    const max = u.scales.x.max ?? Infinity;
    const isRight = axis === this.data.yRight;
    let highest = -Infinity;
    this.data.series.forEach((series, i) => {
      if (!this.visible[i] || series.right !== isRight) return;
      series.half.forEach((half, k) => {
        const x = this.toPosition(series.x[k]);
        if (!(x < min || x > max)) highest = Math.max(highest, series.y[k] + half);
      });
    });
    return highest;
  }

  seriesOptions(series, index) {
    const stroke = () => seriesColour(index);
    const common = {
      label: series.name,
      scale: series.right ? "right" : "y",
      stroke,
      spanGaps: true,
      show: this.visible[index],
    };
    if (series.mark === "dots") return { ...common, paths: () => null, points: { show: false } };
    if (series.mark === "bars") {
      const paths = uPlot.paths.bars({ size: [0.7, 60] });
      return { ...common, fill: () => stroke() + "40", width: 1.6, paths, points: { show: false } };
    }
    // A single line is tinted down to the axis.
    const lines = this.data.series.filter((other) => other.mark === "line").length;
    const hasPoints = series.x.length <= 40 && this.data.x.scale !== "percentile";
    return {
      ...common,
      ...(lines === 1 ? { fill: () => stroke() + "1a" } : {}),
      width: 1.8,
      dash: series.dash,
      points: { show: hasPoints, size: 5, width: 0, fill: stroke },
    };
  }

  // Every series shows its own point nearest to the cursor. Beyond its ends it has none: the last
  // known percentile is no percentile further out.
  nearestPoint(series, index) {
    if (series === 0) return index;
    const values = this.table[series];
    const isKnown = (value) => value != null;
    const isWithin = values.findIndex(isKnown) <= index && index <= values.findLastIndex(isKnown);
    if (!isWithin) return index;
    for (let step = 0; step < values.length; step++) {
      if (values[index - step] != null) return index - step;
      if (values[index + step] != null) return index + step;
    }
    return index;
  }

  // Colour and shape tell the series apart, as in the picture.
  drawDots(u, index) {
    const own = this.data.series[index];
    if (!own || own.mark !== "dots" || !this.visible[index]) return;
    const { ctx, bbox } = u;
    const radius = 2.5 * textScale() * pixelRatio();
    const shape = SHAPES[index % SHAPES.length];
    ctx.save();
    ctx.beginPath();
    // Room for the whole of a dot on the edge.
    const room = 2 * radius;
    ctx.rect(bbox.left - room, bbox.top - room, bbox.width + 2 * room, bbox.height + 2 * room);
    ctx.clip();
    ctx.fillStyle = seriesColour(index);
    ctx.beginPath();
    const xs = this.table[0];
    const ys = this.table[index + 1];
    const scale = own.right ? "right" : "y";
    const { min, max } = u.scales.x;
    for (let i = 0; i < xs.length; i++) {
      if (ys[i] == null || xs[i] < min || xs[i] > max) continue;
      shape(ctx, u.valToPos(xs[i], "x", true), u.valToPos(ys[i], scale, true), radius);
    }
    ctx.fill();
    ctx.restore();
  }

  drawErrors(u) {
    const { ctx } = u;
    const ratio = pixelRatio();
    ctx.save();
    ctx.beginPath();
    ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    ctx.clip();
    ctx.lineWidth = 1.2 * ratio;
    this.data.series.forEach((series, i) => {
      if (!this.visible[i] || !series.half.length) return;
      ctx.strokeStyle = series.mark === "bars" ? colour("ink") : seriesColour(i);
      ctx.beginPath();
      this.addErrorBars(u, series, ERROR_CAP * ratio);
      ctx.stroke();
    });
    ctx.restore();
  }

  addErrorBars(u, series, cap) {
    const scale = series.right ? "right" : "y";
    series.x.forEach((x, k) => {
      const half = series.half[k];
      if (!half) return;
      let low = series.y[k] - half;
      if (this.isLog && !series.right) low = Math.max(low, u.scales.y.min);
      const left = u.valToPos(this.toPosition(x), "x", true);
      const bottom = u.valToPos(low, scale, true);
      const top = u.valToPos(series.y[k] + half, scale, true);
      addLine(u.ctx, left, bottom, left, top);
      addLine(u.ctx, left - cap, top, left + cap, top);
      addLine(u.ctx, left - cap, bottom, left + cap, bottom);
    });
  }

  // Labels of guides stand in lines above the plot, so that they cover no data.
  guideRoom() {
    const lines = new Set((this.data.guides || []).map(({ axis }) => axis === "x"));
    return lines.size * GUIDE_LINE * textScale();
  }

  drawGuides(u) {
    const { ctx, bbox } = u;
    const ratio = pixelRatio();
    const right = bbox.left + bbox.width;
    const bottom = bbox.top + bbox.height;
    ctx.save();
    ctx.fillStyle = colour("quiet");
    ctx.font = font(11 * textScale() * ratio);
    const line = GUIDE_LINE * textScale() * ratio;
    const gap = 5 * ratio;
    const labels = [];
    const hasVertical = (this.data.guides || []).some(({ axis }) => axis === "x");
    for (const guide of this.data.guides || []) {
      const isVertical = guide.axis === "x";
      const value = isVertical ? this.toPosition(guide.value) : guide.value;
      const scale = isVertical ? "x" : guide.axis === "right" ? "right" : "y";
      const at = Math.round(u.valToPos(value, scale, true));
      const [start, end] = isVertical ? [bbox.left, right] : [bbox.top, bottom];
      if (!(at >= start && at <= end)) continue;
      ctx.setLineDash([5 * ratio, 4 * ratio]);
      ctx.strokeStyle = colour("quiet");
      ctx.lineWidth = ratio;
      ctx.beginPath();
      if (isVertical) addLine(ctx, at, bbox.top, at, bottom);
      else addLine(ctx, bbox.left, at, right, at);
      ctx.stroke();
      ctx.setLineDash([]);
      if (!isVertical) {
        labels.push(guide.label);
        continue;
      }
      const width = ctx.measureText(guide.label).width;
      ctx.fillText(guide.label, Math.max(Math.min(at, right - width), bbox.left), bbox.top - gap);
    }
    this.drawGuideKey(u, labels.join(" · "), hasVertical ? line + gap : gap);
    ctx.restore();
  }

  // What the level lines are: a piece of one, then their names.
  drawGuideKey(u, text, above) {
    if (!text) return;
    const { ctx, bbox } = u;
    const ratio = pixelRatio();
    const y = bbox.top - above;
    const start = Math.max(
      bbox.left + bbox.width - ctx.measureText(text).width,
      bbox.left + GUIDE_KEY * ratio,
    );
    ctx.setLineDash([5 * ratio, 4 * ratio]);
    ctx.strokeStyle = colour("quiet");
    ctx.lineWidth = ratio;
    ctx.beginPath();
    addLine(ctx, start - GUIDE_KEY * ratio, y - 4 * ratio, start - 5 * ratio, y - 4 * ratio);
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.fillText(text, start, y);
  }

  // The values at the cursor, a line for each series.
  reading(u) {
    const { idx, idxs } = u.cursor;
    if (idx == null || !idxs) return "";
    const lines = [];
    let at = this.table[0][idx];
    this.data.series.forEach((series, i) => {
      const index = idxs[i + 1];
      const y = index == null ? null : this.table[i + 1][index];
      if (!this.visible[i] || y == null) return;
      const axis = series.right ? this.data.yRight : this.data.y;
      const position = this.table[0][index];
      const tolerance = 1e-9 * Math.max(1, Math.abs(position));
      const own = series.x.findIndex((x) => Math.abs(this.toPosition(x) - position) <= tolerance);
      const half = own >= 0 && series.half[own] ? ` ± ${number(series.half[own])}` : "";
      if (this.data.series.length === 1) at = position;
      lines.push(`${series.name}: ${number(y)}${half} ${axis.unit}`);
    });
    const { x } = this.data;
    return [`${x.label}: ${quantity(this.toValue(at), x)}`, ...lines].join("\n");
  }

  showTip(u) {
    const { left, top } = u.cursor;
    const text = left >= 0 ? this.reading(u) : "";
    this.tip.hidden = !text;
    if (!text) return;
    this.tip.textContent = text;
    const { clientWidth, clientHeight } = u.over;
    const { offsetWidth: width, offsetHeight: height } = this.tip;
    const x = left + 14 + width > clientWidth ? left - 14 - width : left + 14;
    const y = Math.min(Math.max(top - 20, 0), clientHeight - height);
    this.tip.style.transform = `translate(${Math.max(x, 0)}px, ${Math.max(y, 0)}px)`;
  }

  onSelect(u) {
    const { left, width } = u.select;
    if (width > 3) this.setZoom(u.posToVal(left, "x"), u.posToVal(left + width, "x"));
  }

  setZoom(min, max) {
    const isFull = min <= this.fullX[0] && max >= this.fullX[1];
    this.zoomed = isFull ? null : [min, max];
    one(".zoom-out", this.figure).disabled = isFull;
  }

  zoom(min, max) {
    const low = Math.max(min, this.fullX[0]);
    const high = Math.min(max, this.fullX[1]);
    if (!(high > low)) return;
    this.setZoom(low, high);
    this.plot.setScale("x", { min: low, max: high });
  }

  magnify(factor) {
    const { min, max } = this.plot.scales.x;
    const { idx } = this.plot.cursor;
    const middle = idx == null ? (min + max) / 2 : this.table[0][idx];
    this.zoom(middle - (middle - min) / factor, middle + (max - middle) / factor);
  }

  showAll() {
    this.zoom(this.fullX[0], this.fullX[1]);
  }

  // Moves the cursor to a neighbouring position that is in view.
  step(by) {
    const { min, max } = this.plot.scales.x;
    const xs = this.table[0];
    const first = xs.findIndex((x) => x >= min);
    const last = xs.findLastIndex((x) => x <= max);
    const from = this.plot.cursor.idx;
    const hasCursor = from != null && this.plot.cursor.left >= 0;
    const start = by > 0 ? first : last;
    const to = hasCursor ? Math.min(Math.max(from + by, first), last) : start;
    if (to < 0) return;
    const top = this.plot.over.clientHeight / 3;
    this.plot.setCursor({ left: this.plot.valToPos(xs[to], "x"), top });
    announce(this.reading(this.plot).replaceAll("\n", "; "));
  }

  listen() {
    onKeys(this.box, {
      ArrowRight: () => this.step(1),
      ArrowLeft: () => this.step(-1),
      PageDown: () => this.step(20),
      PageUp: () => this.step(-20),
      "+": () => this.magnify(2),
      "=": () => this.magnify(2),
      "-": () => this.magnify(0.5),
      "0": () => this.showAll(),
      Escape: () => this.plot.setCursor({ left: -10, top: -10 }),
    });
    this.box.addEventListener("dblclick", () => this.showAll());
    this.onClick(".zoom-out", "Show all again,", () => this.showAll());
    this.onClick(".csv", "CSV: save the values of", () => saveCsv(this.data.id, [this.data]));
    const scale = this.onClick(".scale", "Log: logarithmic scale,", () => {
      this.isLog = !this.isLog;
      scale.setAttribute("aria-pressed", this.isLog);
      this.draw();
    });
    scale.setAttribute("aria-pressed", this.isLog);
    for (const button of all("[data-series]", this.figure)) {
      button.addEventListener("click", () => this.toggle(button));
    }
    fillWhenOpened(one("details.values", this.figure), this.data);
  }

  onClick(selector, label, act) {
    const button = one(selector, this.figure);
    button.setAttribute("aria-label", `${label} ${this.data.title}`);
    button.addEventListener("click", act);
    return button;
  }

  toggle(button) {
    const index = +button.dataset.series;
    this.visible[index] = !this.visible[index];
    button.setAttribute("aria-pressed", this.visible[index]);
    this.plot.setSeries(index + 1, { show: this.visible[index] });
  }
}
