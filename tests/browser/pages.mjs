// The pages under test. The program's own printer makes each from a record in ../fixtures, some of
// them damaged.

import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = new URL("../../", import.meta.url);
/** Where pages, screenshots and saved files go. */
export const place = new URL("target/browser/", root);
const printer =
  process.env.PAGE_PRINTER || fileURLToPath(new URL("target/debug/examples/page", root));
const fixture = (name) =>
  JSON.parse(readFileSync(new URL(`tests/fixtures/${name}.json`, root), "utf8"));

/** A text that a disk, a path or a user may contain. */
export const hostile = [
  `</script><script>document.title="owned"</script>`,
  `"><img src=x onerror="document.title='owned'">`,
  "\u202egnp.exe\u2028\u0007",
  "x".repeat(10000),
].join("");

function partial() {
  const record = fixture("check-directory");
  Object.assign(record, {
    partial: true,
    ended_early: "interrupted by Ctrl-C (SIGINT)",
    measurements: record.measurements.slice(0, 3),
    findings: [],
    advice: [],
  });
  return record;
}

function empty() {
  return Object.assign(partial(), { measurements: [], expectations: [] });
}

/** A sweep in which every shade occurs, with a predicted and an impossible cell. */
function sweep() {
  const estimate = (value, unit) => ({ n: 30, value, half_width_95: value / 50, unit });
  const cell = (block_bytes, depth, state, rate) => ({
    block_bytes,
    depth,
    state,
    ...(rate && {
      iops: estimate(rate, "1/s"),
      throughput: estimate(rate * block_bytes, "B/s"),
      latency_mean_ns: (depth * 1e9) / rate,
    }),
  });
  const cells = [4, 64].flatMap((kib) =>
    [1, 2, 4, 8, 16, 32].map((depth) => cell(kib * 1024, depth, "measured", (4000 * depth) / kib)),
  );
  cells.push(cell(1 << 20, 1, "predicted", 500));
  cells.push({ ...cell(1 << 20, 2, "impossible"), why: "too many requests for the memory" });
  const matrices = [{ operation: "randread", cells }];
  return Object.assign(fixture("run-depths"), { results: [{ kind: "sweep", matrices }] });
}

/** A record with every free text replaced. */
function hostileRecord() {
  const record = fixture("check-directory");
  Object.assign(record, { note: hostile, ended_early: hostile, partial: true });
  record.host.name = record.host.kernel = hostile;
  record.plan.targets = [hostile];
  record.plan.origin.argv = [hostile];
  record.plan.skipped = [{ workload: hostile, why: hostile }];
  for (const target of record.targets) {
    target.path = hostile;
    if (target.filesystem) target.filesystem.source = target.filesystem.mount_point = hostile;
    for (const layer of target.layers)
      layer.model = layer.serial = layer.firmware = layer.name = hostile;
  }
  for (const m of record.measurements) m.data.workload.name = m.figures.reproduce = hostile;
  for (const f of record.findings) f.code = f.claim = f.remedy = f.reproduce = hostile;
  for (const a of record.advice) a.setting = a.why = a.value = hostile;
  record.expectations = [{ expression: hostile, observed: 1, met: false }];
  return record;
}

/** A comparison with every text from records and users replaced. */
function hostileComparison() {
  const comparison = fixture("comparison");
  comparison.baseline.label = comparison.candidates[0].summary = hostile;
  comparison.candidates[0].metrics = comparison.candidates[0].metrics.map((metric) => ({
    ...metric,
    subject: hostile,
    metric: hostile,
  }));
  comparison.candidates[0].percentiles = comparison.candidates[0].percentiles.map((pair) => ({
    ...pair,
    subject: hostile,
  }));
  comparison.candidates[0].notes = [hostile];
  return comparison;
}

/** `charts`: the page has charts. `dark`: its dark colours are checked too. */
export const pages = [
  { name: "check", make: () => fixture("check-directory"), charts: true, dark: true },
  { name: "check-partial", make: partial, charts: true },
  { name: "check-empty", make: empty, charts: false },
  { name: "run", make: () => fixture("run-depths"), charts: true },
  { name: "sweep", make: sweep, charts: true, dark: true },
  { name: "curve", make: () => fixture("curve-scan"), charts: true, dark: true },
  { name: "compare", make: () => fixture("comparison"), charts: true, dark: true },
  { name: "compare-hostile", make: hostileComparison, charts: true },
  { name: "check-hostile", make: hostileRecord, charts: true },
];

/** Writes a page and returns its address and the record it shows. */
export function write(page) {
  mkdirSync(place, { recursive: true });
  const record = page.make();
  const html = execFileSync(printer, { input: JSON.stringify(record), maxBuffer: 1 << 26 });
  const address = new URL(`${page.name}.html`, place);
  writeFileSync(address, html);
  return { address: address.href, record, bytes: html.length };
}
