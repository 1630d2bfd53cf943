// Each page in Chromium: errors, requests, charts, hover, zoom, scales, colours, CSV files,
// accessibility, phones, paper, no script. Needs Debian's chromium, which ./test installs.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { inflateSync } from "node:zlib";
import { chromium } from "playwright-core";
import { hostile, pages, place, write } from "./pages.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const executablePath = process.env.CHROMIUM || "/usr/bin/chromium";
// A4 less the margins of the style sheet, in CSS pixels.
const PAPER_WIDTH = Math.floor(((210 - 24) / 25.4) * 96);
const PAPER_HEIGHT = Math.floor(((297 - 28) / 25.4) * 96);
// Mail servers accept a page of this size.
const BYTES_MAX = 400_000;

let browser;
before(async () => {
  const flags = ["--disable-background-networking", "--disable-component-update", "--disable-gpu"];
  if (process.getuid() === 0) flags.push("--no-sandbox");
  browser = await chromium.launch({ executablePath, args: flags });
});
after(() => browser?.close());

/** Opens a page in a fresh profile and records its messages and requests. */
async function open(address, options = {}) {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 900 },
    acceptDownloads: true,
    ...options,
  });
  const page = await context.newPage();
  const seen = { messages: [], requests: [] };
  // The tests themselves cause the readbacks.
  page.on("console", (message) => {
    if (!message.text().startsWith("Canvas2D: Multiple readback"))
      seen.messages.push(`${message.type()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => seen.messages.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (request.url().split("#")[0] !== address && !request.url().startsWith("data:"))
      seen.requests.push(request.url().slice(0, 200));
  });
  await page.goto(address);
  // The script draws the charts once it has unpacked the data.
  if (options.javaScriptEnabled !== false) await page.waitForSelector("html.has-script");
  return { page, seen, close: () => context.close() };
}

/** Pixels of a chart's canvas that have the colour of each of its series. */
const colouredPixels = (figure) =>
  figure.evaluate((element) => {
    const canvas = element.querySelector("canvas");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const style = getComputedStyle(document.documentElement);
    return [...element.querySelectorAll("[data-series]")].map((button) => {
      const colour = style.getPropertyValue("--s" + (button.dataset.series % 8)).trim();
      const [r, g, b] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
      let count = 0;
      for (let i = 0; i < data.length; i += 4) {
        const distance =
          Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) + Math.abs(data[i + 2] - b);
        if (data[i + 3] > 200 && distance < 60) count++;
      }
      return count;
    });
  });

/** The content of a data block, unpacked independently of the page's script. */
const contentOf = async (page, selector) =>
  inflateSync(Buffer.from(await page.locator(selector).textContent(), "base64")).toString();

/** Waits until a condition holds: a chart is drawn a moment after its settings change. */
async function becomes(read, holds, what) {
  const end = Date.now() + 30_000;
  while (!holds(await read())) assert.ok(Date.now() < end, what);
}

const chartData = async (page) => JSON.parse(await contentOf(page, "script#chart-data"));
const overflow = (page) =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

async function violations(page) {
  await page.evaluate(axe);
  const found = await page.evaluate(() =>
    globalThis.axe.run(document, { resultTypes: ["violations"] }),
  );
  const severe = found.violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
  return severe.map(({ id, nodes }) => {
    const places = nodes.slice(0, 3).map((node) => node.html.slice(0, 160));
    return `${id}: ${places.join(" | ")}`;
  });
}

/** Moves the mouse to a position in the chart, given as shares of its width and height. */
async function pointAt(page, figure, x, y) {
  const over = figure.locator(".u-over");
  await over.scrollIntoViewIfNeeded();
  const box = await over.boundingBox();
  await page.mouse.move(box.x + box.width * x, box.y + box.height * y);
  return box;
}

for (const made of pages)
  describe(made.name, () => {
    let address, bytes;
    before(() => {
      ({ address, bytes } = write(made));
    });

    test("opens without errors or requests", async () => {
      const { page, seen, close } = await open(address);
      assert.deepEqual(seen, { messages: [], requests: [] });
      assert.notEqual(await page.title(), "owned");
      assert.equal(await page.locator("h1").count(), 1);
      assert.equal(await page.locator("img").count(), 0);
      if (!made.name.includes("hostile")) assert.ok(bytes < BYTES_MAX, `${bytes} bytes`);
      await close();
    });

    test("layout does not shift while loading", async () => {
      const { page, close } = await open(address);
      const shift = await page.evaluate(
        () =>
          new Promise((done) => {
            let sum = 0;
            const count = (entries) => {
              for (const entry of entries) sum += entry.value;
            };
            const observer = new PerformanceObserver((list) => count(list.getEntries()));
            observer.observe({ type: "layout-shift", buffered: true });
            // Two frames later the changes of the script are laid out and painted.
            requestAnimationFrame(() =>
              requestAnimationFrame(() => {
                count(observer.takeRecords());
                done(sum);
              }),
            );
          }),
      );
      assert.ok(shift < 0.01, `cumulative layout shift ${shift}`);
      await close();
    });

    test("is accessible", async () => {
      for (const colorScheme of made.dark ? ["light", "dark"] : ["light"]) {
        const { page, close } = await open(address, { colorScheme });
        await page.evaluate(() => {
          for (const details of document.querySelectorAll("details")) details.open = true;
        });
        assert.deepEqual(await violations(page), [], colorScheme);
        await close();
      }
    });

    test("fits every width, with screenshots for review", async () => {
      for (const [width, height] of [
        [360, 740],
        [1280, 900],
        [3840, 2160],
      ]) {
        const { page, close } = await open(address, { viewport: { width, height } });
        assert.equal(await overflow(page), 0, `${width} px`);
        // A page of hostile texts is far too long; a wall display shows most of a page at once.
        const fullPage = width < 3840 && !made.name.includes("hostile");
        await page.screenshot({
          path: fileURLToPath(new URL(`${made.name}-${width}.png`, place)),
          fullPage,
        });
        await close();
      }
    });

    test("first screen of a phone has the answer", async () => {
      if (made.name.includes("hostile")) return;
      const viewport = { width: 390, height: 844 };
      const { page, close } = await open(address, { viewport });
      const answer = await page.locator("h1").boundingBox();
      assert.ok(answer.y + answer.height <= viewport.height, JSON.stringify(answer));
      if (made.name === "compare") {
        const table = page.locator(".overview table").first();
        assert.equal(await table.locator("thead th").nth(1).textContent(), "Verdict");
        const verdict = await table.locator("tbody td").first().boundingBox();
        assert.ok(verdict.x + verdict.width <= viewport.width, JSON.stringify(verdict));
        assert.ok(verdict.y + verdict.height <= viewport.height, JSON.stringify(verdict));
      }
      await close();
    });

    test("shows which tables scroll", async () => {
      const { page, close } = await open(address, { viewport: { width: 360, height: 740 } });
      const frames = page.locator(".wide:visible");
      const seen = await frames.evaluateAll((all) =>
        all
          .filter((frame) => frame.scrollWidth > frame.clientWidth + 1)
          .map((frame) => [
            getComputedStyle(frame).backgroundImage.includes("gradient"),
            !frame.querySelector(".figures") ||
              getComputedStyle(frame, "::before").content.includes("Scroll"),
          ]),
      );
      assert.ok(seen.flat().every(Boolean), JSON.stringify(seen));
      await close();
    });

    test("findings stand beside the charts, figures fit one screen", async () => {
      const { page, close } = await open(address, { viewport: { width: 1400, height: 900 } });
      const box = (selector) => page.locator(selector).first().boundingBox();
      if (await page.locator(".split #charts").count()) {
        const [findings, charts] = [await box("#findings h2"), await box("#charts h2")];
        assert.ok(findings.x >= charts.x + charts.width, "side by side");
        assert.ok(Math.abs(findings.y - charts.y) < 5, "at the same height");
      }
      for (const settings of await page.locator(".wide:has(> table.entries)").all()) {
        const hidden = await settings.evaluate((frame) => frame.scrollWidth - frame.clientWidth);
        assert.ok(hidden <= 1, `${hidden} px of the settings are cut off`);
      }
      const tiles = page.locator(".tiles.workloads");
      if ((await tiles.count()) && !made.name.includes("hostile")) {
        const { y, height } = await tiles.boundingBox();
        assert.ok(y + height <= 900, `the grid of figures ends at ${y + height}`);
      }
      await close();
    });

    test("prints a summary on the first page", async () => {
      if (made.name.includes("hostile") || !made.name.match(/check|run|curve/)) return;
      const { page, close } = await open(address, {
        viewport: { width: PAPER_WIDTH, height: PAPER_HEIGHT },
      });
      await page.emulateMedia({ media: "print" });
      const end = await page
        .locator(".on-paper")
        .evaluate((element) => element.getBoundingClientRect().bottom);
      assert.ok(end > 0 && end <= PAPER_HEIGHT, `the summary ends at ${end}`);
      const before = await page
        .locator(".evidence")
        .evaluate((element) => getComputedStyle(element).breakBefore);
      assert.equal(before, "page");
      await close();
    });

    test("prints every chart and table on A4", async () => {
      const { page, close } = await open(address, {
        viewport: { width: PAPER_WIDTH, height: PAPER_HEIGHT },
        colorScheme: "dark",
      });
      await page.emulateMedia({ media: "print" });
      assert.ok((await overflow(page)) <= 0, "wider than A4");
      assert.equal(
        await page.evaluate(() => getComputedStyle(document.body).backgroundColor),
        "rgb(255, 255, 255)",
      );
      for (const table of await page.locator("table.figures").all()) {
        // Each number stands below its heading.
        const apart = await table.evaluate((element) => {
          const ends = (row) =>
            [...row.cells]
              .filter((cell) => cell.offsetWidth)
              .map((cell) => Math.round(cell.getBoundingClientRect().right));
          const row = [...element.tBodies]
            .flatMap((body) => [...body.rows])
            .find((row) => row.cells.length > 2);
          return row ? [ends(element.tHead.rows[0]), ends(row)] : [[], []];
        });
        assert.deepEqual(apart[0], apart[1]);
      }
      for (const setting of await page.locator("table.entries tbody th").all()) {
        const lines = await setting.evaluate((cell) => {
          const range = document.createRange();
          range.selectNodeContents(cell);
          return range.getClientRects().length;
        });
        if (!made.name.includes("hostile")) assert.equal(lines, 1, await setting.textContent());
      }
      for (const figure of await page.locator("figure.chart").all()) {
        const box = await figure.boundingBox();
        assert.ok(box.height < PAPER_HEIGHT, "taller than A4");
        assert.equal(
          await figure.evaluate((element) => getComputedStyle(element).breakInside),
          "avoid",
        );
        const picture = await figure.locator("svg:not(.key)").first().boundingBox();
        assert.ok(
          picture &&
            picture.x >= 0 &&
            picture.x + picture.width <= PAPER_WIDTH + 1 &&
            picture.height > 100,
          JSON.stringify(picture),
        );
        assert.equal(await figure.locator("canvas:visible").count(), 0);
      }
      const pdf = await page.pdf({
        path: fileURLToPath(new URL(`${made.name}.pdf`, place)),
        preferCSSPageSize: true,
      });
      assert.ok(pdf.subarray(0, 5).toString() === "%PDF-");
      const sheets = pdf.toString("latin1").match(/\/Type\s*\/Page\b/g).length;
      if (made.name === "check") assert.ok(sheets <= 4, `${sheets} pages`);
      await close();
    });

    test("shows charts as pictures without script", async () => {
      const { page, close } = await open(address, { javaScriptEnabled: false });
      const figures = await page.locator("figure[data-chart]").all();
      assert.equal(figures.length > 0, made.charts);
      for (const figure of figures) assert.ok(await figure.locator(".still svg").isVisible());
      for (const button of await page.locator("button.copy").all())
        assert.ok(!(await button.isVisible()));
      assert.ok(await page.locator("h1").isVisible());
      await close();
    });

    if (!made.charts) return;

    test("draws every series of every chart", async () => {
      const { page, close } = await open(address);
      const data = await chartData(page);
      for (const chart of data) {
        const figure = page.locator(`[id="chart-${chart.id}"]`);
        const hidden = figure.locator("[data-series][aria-pressed=false]");
        const drawn = chart.series.length - (await hidden.count());
        if (chart.x.scale === "percentile") assert.ok(drawn <= 5, `${chart.id}: ${drawn} lines`);
        else assert.equal(drawn, chart.series.length);
        while (await hidden.count()) await hidden.first().click();
        await becomes(
          async () => Math.min(...(await colouredPixels(figure))),
          (fewest) => fewest >= 5,
          `${chart.id}: every series is drawn`,
        );
        const counts = await colouredPixels(figure);
        assert.equal(counts.length, chart.series.length);
        // Lines may cover each other; a series may have few dots.
        counts.forEach((n, i) =>
          assert.ok(n >= 5, `${chart.id}, ${chart.series[i].name}: ${n} pixels`),
        );
      }
      await close();
    });

    test("shows values at pointer and keyboard cursor", async () => {
      const { page, close } = await open(address);
      const [chart] = await chartData(page);
      const figure = page.locator("figure[data-chart]").first();
      const tip = figure.locator(".tip");
      assert.ok(!(await tip.isVisible()));
      await pointAt(page, figure, 0.5, 0.5);
      await tip.waitFor({ state: "visible" });
      const lines = (await tip.textContent()).split("\n");
      assert.ok(lines[0].startsWith(chart.x.label), lines[0]);
      assert.ok(
        lines.length > 1 &&
          lines.slice(1).every((line) => /: [\d.\u202fM]+( ± [\d.\u202fM]+)? \S+$/.test(line)),
        lines.join("; "),
      );
      await page.mouse.move(0, 0);
      await figure.locator(".plot").focus();
      await page.keyboard.press("ArrowRight");
      await page.keyboard.press("ArrowRight");
      const spoken = await page.locator("#spoken").textContent();
      assert.ok(spoken.startsWith(chart.x.label), spoken);
      await close();
    });

    test("shows no percentile of a series beyond its last one", async () => {
      const { page, close } = await open(address);
      for (const chart of await chartData(page)) {
        if (chart.x.scale !== "percentile") continue;
        const figure = page.locator(`[id="chart-${chart.id}"]`);
        const tip = figure.locator(".tip");
        await pointAt(page, figure, 0.999, 0.5);
        await tip.waitFor({ state: "visible" });
        const ends = new Map(chart.series.map(({ name, x }) => [name, x.at(-1)]));
        const highest = Math.max(...ends.values());
        for (const line of (await tip.textContent()).split("\n").slice(1)) {
          const name = line.slice(0, line.lastIndexOf(": "));
          assert.equal(ends.get(name), highest, `${chart.id}: ${line}`);
        }
      }
      await close();
    });

    test("zooms and shows all again", async () => {
      const { page, close } = await open(address);
      const figure = page.locator("figure[data-chart]").first();
      const back = figure.locator(".zoom-out");
      const picture = () => figure.locator("canvas").evaluate((canvas) => canvas.toDataURL());
      const whole = await picture();
      assert.ok(await back.isDisabled());
      const box = await pointAt(page, figure, 0.3, 0.5);
      await page.mouse.down();
      await page.mouse.move(box.x + box.width * 0.6, box.y + box.height * 0.5, { steps: 4 });
      await page.mouse.up();
      await page.waitForFunction((button) => !button.disabled, await back.elementHandle());
      const zoomed = await picture();
      assert.notEqual(zoomed, whole);
      await back.click();
      await page.mouse.move(0, 0);
      await becomes(picture, (now) => now === whole, "the unzoomed picture again");
      await figure.locator(".plot").focus();
      await page.keyboard.press("+");
      assert.ok(!(await back.isDisabled()));
      await page.keyboard.press("0");
      assert.ok(await back.isDisabled());
      await close();
    });

    test("switches scales and hides series", async () => {
      const { page, seen, close } = await open(address);
      for (const figure of (await page.locator("figure[data-chart]").all()).slice(0, 4)) {
        const picture = () => figure.locator("canvas").evaluate((canvas) => canvas.toDataURL());
        const [scale, series] = [figure.locator(".scale"), figure.locator("[data-series]").first()];
        const before = await picture();
        const pressed = await scale.getAttribute("aria-pressed");
        await scale.click();
        assert.notEqual(await scale.getAttribute("aria-pressed"), pressed);
        assert.notEqual(await picture(), before);
        await scale.click();
        await becomes(picture, (now) => now === before, "the scale as it was");
        const shown = (await colouredPixels(figure))[0];
        await series.click();
        assert.equal(await series.getAttribute("aria-pressed"), "false");
        await becomes(
          async () => (await colouredPixels(figure))[0],
          (now) => now < shown,
          "one series less",
        );
      }
      assert.deepEqual(seen.messages, []);
      await close();
    });

    test("switches to dark and back", async () => {
      const { page, close } = await open(address, { colorScheme: "light" });
      const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const [light, button] = [await ground(), page.locator("#theme")];
      await button.click();
      assert.equal(await button.getAttribute("aria-pressed"), "true");
      assert.notEqual(await ground(), light);
      assert.ok(
        (await colouredPixels(page.locator("figure[data-chart]").first()))[0] > 5,
        "charts in dark colours",
      );
      await button.click();
      assert.equal(await ground(), light);
      await close();
    });

    test("saves CSV and record, and fills tables", async () => {
      const { page, close } = await open(address);
      const [chart] = await chartData(page);
      const figure = page.locator("figure[data-chart]").first();
      const points = chart.series.reduce((sum, series) => sum + series.x.length, 0);
      const saved = async (button) => {
        const [download] = await Promise.all([page.waitForEvent("download"), button.click()]);
        return {
          name: download.suggestedFilename(),
          text: readFileSync(await download.path(), "utf8"),
        };
      };
      const { name, text } = await saved(figure.locator(".csv"));
      assert.ok(/^diskproof-[A-Za-z0-9.-]+\.csv$/.test(name), name);
      const rows = text.trimEnd().split("\r\n");
      assert.equal(rows.length, points + 1);
      assert.equal(rows[0], "chart,series,x,x_quantity,x_unit,y,y_quantity,y_unit,half_width_95");
      assert.ok(
        rows[1].includes(`,${chart.series[0].x[0]},`) &&
          rows[1].includes(`,${chart.series[0].y[0]},`),
        rows[1],
      );
      assert.ok(rows.slice(1).every((row) => !/^"?[=+@-]/.test(row) && !/,"[=+@-]/.test(row)));
      const record = await saved(page.locator("#save-record"));
      const document = "script#record, script#comparison, script#fleet";
      assert.equal(record.text, (await contentOf(page, document)) + "\n");
      assert.equal(JSON.parse(record.text).run_id, made.make().run_id);
      await figure.locator("details.values summary").click();
      await figure.locator("details.values table").waitFor();
      assert.equal(await figure.locator("details.values tbody tr").count(), points);
      await close();
    });

    test("copies whole commands", async () => {
      const { page, close } = await open(address, {
        permissions: ["clipboard-read", "clipboard-write"],
      });
      const command = page.locator(".command").last();
      if ((await command.count()) === 0) return close();
      const text = await command.locator("code").textContent();
      await command.locator(".copy").click();
      await page.waitForFunction(
        (button) => button.textContent === "Copied",
        await command.locator(".copy").elementHandle(),
      );
      assert.equal(await page.evaluate(() => navigator.clipboard.readText()), text);
      await close();
    });
  });

test("map of a scan is read with mouse and keyboard", async () => {
  const { address, record } = write(pages.find(({ name }) => name === "curve"));
  const { page, seen, close } = await open(address);
  const [field, tip] = [page.locator("#field"), page.locator("#field .tip")];
  await field.scrollIntoViewIfNeeded();
  const box = await field.locator("svg").boundingBox();
  await page.mouse.move(box.x + box.width * 0.51, box.y + box.height * 0.3);
  await tip.waitFor({ state: "visible" });
  assert.match(await tip.textContent(), /^position: [\d.]+ GB\nmean: .* ms\nlongest: .* ms/);
  await page.mouse.move(0, 0);
  await tip.waitFor({ state: "hidden" });
  await field.focus();
  const spoken = () => page.locator("#spoken").textContent();
  await page.keyboard.press("Home");
  const first = await spoken();
  assert.ok(first.startsWith("position: 0 "), first);
  await page.keyboard.press("ArrowDown");
  assert.notEqual(await spoken(), first);
  // Page Down reaches every unreadable cell.
  const failed = record.results[0].data.scan.map.filter((cell) => cell.errors > 0).length;
  await page.keyboard.press("Home");
  const visited = new Set();
  for (let step = 0; step < record.results[0].data.scan.map.length; step++) {
    await page.keyboard.press("PageDown");
    const text = await spoken();
    if (text.startsWith("No slow place")) break;
    visited.add(text);
  }
  assert.ok(
    failed > 0 && [...visited].filter((text) => text.includes("blocks failed")).length === failed,
    [...visited].join(" | "),
  );
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.locator("figure.map .csv").click(),
  ]);
  const rows = readFileSync(await download.path(), "utf8")
    .trimEnd()
    .split("\r\n");
  assert.ok(rows.length > record.results[0].data.scan.map.length, `${rows.length} rows`);
  assert.deepEqual(seen, { messages: [], requests: [] });
  await close();
});

/** The colour of each cell's corner in a screenshot, its text colour, and how bright both are. */
async function shadesOf(page, table) {
  const image = (await table.screenshot()).toString("base64");
  return table.evaluate(async (element, image) => {
    const picture = new Image();
    picture.src = `data:image/png;base64,${image}`;
    await picture.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [picture.width, picture.height];
    const context = canvas.getContext("2d");
    context.drawImage(picture, 0, 0);
    const origin = element.getBoundingClientRect();
    const scale = picture.width / origin.width;
    const luminance = (rgb) => {
      const [r, g, b] = rgb.map((part) => {
        const share = part / 255;
        return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    return [...element.querySelectorAll("tbody td")].map((cell) => {
      const box = cell.getBoundingClientRect();
      const [x, y] = [box.left - origin.left + 3, box.top - origin.top + 3];
      const pixel = [...context.getImageData(x * scale, y * scale, 1, 1).data].slice(0, 3);
      const text = getComputedStyle(cell).color.match(/\d+/g).slice(0, 3).map(Number);
      const [back, front] = [luminance(pixel), luminance(text)];
      const contrast = (Math.max(back, front) + 0.05) / (Math.min(back, front) + 0.05);
      return { name: cell.className, text: cell.textContent, back, contrast };
    });
  }, image);
}

for (const colorScheme of ["light", "dark"])
  test(`map of a sweep is shaded by rate, ${colorScheme}`, async () => {
    const { address, record } = write(pages.find(({ name }) => name === "sweep"));
    const { page, close } = await open(address, { colorScheme });
    const table = page.locator("table", { hasText: "Operations per second by block size" }).first();
    await table.screenshot({ path: fileURLToPath(new URL(`sweep-map-${colorScheme}.png`, place)) });
    const shown = await shadesOf(page, table);
    const sweep = record.results.find((one) => one.kind === "sweep");
    const cells = sweep.matrices[0].cells.map((cell, at) => ({ ...cell, ...shown[at] }));
    const measured = cells.filter(({ state }) => state === "measured");
    measured.sort((a, b) => a.iops.value - b.iops.value);
    // A higher rate is never nearer to the paper than a lower one.
    const [predicted] = cells.filter(({ state }) => state === "predicted");
    const ink = measured.map(({ back }) => Math.abs(back - predicted.back));
    const steps = ink.slice(1).map((value, at) => value - ink[at]);
    assert.ok(steps.every((step) => step > -0.001), JSON.stringify(measured));
    assert.equal(new Set(measured.map(({ back }) => back.toFixed(3))).size, 6);
    assert.ok(ink[0] > 0.002, `the lowest shade is that of a predicted cell: ${ink[0]}`);
    for (const cell of cells) assert.ok(cell.contrast >= 4.5, JSON.stringify(cell));
    await close();
  });

test("hostile text is displayed and has no effect", async () => {
  const { address } = write(pages.find(({ name }) => name === "check-hostile"));
  const { page, close } = await open(address);
  assert.ok((await page.locator("body").innerText()).includes("<img src=x onerror="));
  assert.equal(
    await page.evaluate(() => document.querySelectorAll("body > script:not([type])").length),
    2,
  );
  assert.ok(!(await page.locator("main").innerHTML()).includes("\u202e"));
  assert.ok(
    hostile.length > 10000 &&
      (await page.locator("main h1").evaluate((heading) => heading.textContent.length)) < 500,
  );
  await close();
});
