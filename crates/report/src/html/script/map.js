// The map of a scan: mouse and keyboard read its cells.
class ScanMap {
  constructor(figure, { chart, perRow, side, cells, notable }) {
    Object.assign(this, { data: chart, perRow, side, cells, notable, chosen: null });
    this.box = one(".field", figure);
    this.svg = one("svg", this.box);
    this.frame = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    this.frame.setAttribute("class", "chosen");
    this.frame.setAttribute("width", side + 1);
    this.frame.setAttribute("height", side + 1);
    this.frame.setAttribute("visibility", "hidden");
    this.svg.append(this.frame);
    this.tip = makeReadable(this.box, "map", chart.title);
    this.listen();
    one(".csv", figure).addEventListener("click", () => saveCsv(chart.id, [chart]));
    fillWhenOpened(one("details.values", figure), chart);
  }

  reading(index) {
    const { x, y, yRight, series } = this.data;
    const at = this.cells[index];
    const lines = [];
    for (const own of series) {
      const k = own.x.indexOf(at);
      if (k >= 0) lines.push(`${own.name}: ${quantity(own.y[k], own.right ? yRight : y)}`);
    }
    return [`${x.label}: ${quantity(at, x)}`, ...(lines.length ? lines : ["not read"])].join("\n");
  }

  show(index) {
    this.chosen = index;
    this.tip.hidden = index === null;
    this.frame.setAttribute("visibility", index === null ? "hidden" : "visible");
    if (index === null) return;
    this.frame.setAttribute("x", (index % this.perRow) * this.side - 1);
    this.frame.setAttribute("y", Math.floor(index / this.perRow) * this.side - 1);
    this.tip.textContent = this.reading(index);
    const cell = this.frame.getBoundingClientRect();
    const box = this.box.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = this.tip;
    const fitsRight = cell.right + 8 + width <= box.right;
    const x = fitsRight ? cell.right + 8 : cell.left - 8 - width;
    const y = Math.min(cell.top, box.bottom - height);
    const [left, top] = [Math.max(x - box.left, 0), Math.max(y - box.top, 0)];
    this.tip.style.transform = `translate(${left}px, ${top}px)`;
  }

  cellAt(event) {
    const toMap = this.svg.getScreenCTM().inverse();
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(toMap);
    const column = Math.floor(x / this.side);
    const row = Math.floor(y / this.side);
    const index = row * this.perRow + column;
    const isCell = column >= 0 && column < this.perRow && row >= 0 && index < this.cells.length;
    return isCell ? index : null;
  }

  step(by) {
    const last = this.cells.length - 1;
    const start = by > 0 ? 0 : last;
    this.go(this.chosen === null ? start : Math.min(Math.max(this.chosen + by, 0), last));
  }

  // Goes to the next slow or unreadable cell.
  seek(by) {
    const from = this.chosen ?? (by > 0 ? -1 : this.cells.length);
    for (let index = from + by; index >= 0 && index < this.cells.length; index += by) {
      if (this.notable[index]) return this.go(index);
    }
    announce(by > 0 ? "No slow place after this one" : "No slow place before this one");
  }

  go(index) {
    this.show(index);
    announce(this.reading(index).replaceAll("\n", "; "));
  }

  listen() {
    onKeys(this.box, {
      ArrowRight: () => this.step(1),
      ArrowLeft: () => this.step(-1),
      ArrowDown: () => this.step(this.perRow),
      ArrowUp: () => this.step(-this.perRow),
      Home: () => this.go(0),
      End: () => this.go(this.cells.length - 1),
      PageDown: () => this.seek(1),
      PageUp: () => this.seek(-1),
      Escape: () => this.show(null),
    });
    for (const kind of ["pointermove", "pointerdown"]) {
      this.box.addEventListener(kind, (event) => this.show(this.cellAt(event)));
    }
    this.box.addEventListener("pointerleave", () => this.show(null));
    this.box.addEventListener("blur", () => this.show(null));
  }
}
