// The pages under test, each made by the program's own printer from a record in ../fixtures, as it is or made worse.

import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = new URL("../../", import.meta.url);
/** Where pages, screenshots and saved files go. */
export const place = new URL("target/browser/", root);
const printer = process.env.PAGE_PRINTER || fileURLToPath(new URL("target/debug/examples/page", root));
const fixture = (name) => JSON.parse(readFileSync(new URL(`tests/fixtures/${name}.json`, root), "utf8"));

/** Texts that a disk, a path or a user may hold. */
export const hostile = `</script><script>document.title="owned"</script>"><img src=x onerror="document.title='owned'">\u202egnp.exe\u2028\u0007${"x".repeat(10000)}`;

function partial() {
  const record = fixture("check-directory");
  Object.assign(record, { partial: true, ended_early: "interrupted by the user; what was measured before stands", measurements: record.measurements.slice(0, 3), findings: [], advice: [] });
  return record;
}

function empty() {
  return Object.assign(partial(), { measurements: [], expectations: [] });
}

/** Every text in the record replaced, except where the format allows only certain words. */
function made_hostile() {
  const record = fixture("check-directory");
  Object.assign(record, { note: hostile, ended_early: hostile, partial: true });
  record.host.name = record.host.kernel = hostile;
  record.plan.targets = [hostile];
  record.plan.origin.argv = [hostile];
  record.plan.skipped = [{ workload: hostile, why: hostile }];
  for (const target of record.targets) {
    target.path = hostile;
    if (target.filesystem) target.filesystem.source = target.filesystem.mount_point = hostile;
    for (const layer of target.layers) layer.model = layer.serial = layer.firmware = layer.name = hostile;
  }
  for (const m of record.measurements) m.workload.name = m.reproduce = hostile;
  for (const f of record.findings) f.code = f.claim = f.remedy = f.reproduce = hostile;
  for (const a of record.advice) a.setting = a.why = a.value = hostile;
  record.expectations = [{ expression: hostile, observed: 1, met: false }];
  return record;
}

/** Whatever a comparison quotes from records and from the user. */
function hostile_comparison() {
  const comparison = fixture("comparison");
  comparison.baseline.label = comparison.candidates[0].summary = hostile;
  comparison.candidates[0].metrics = comparison.candidates[0].metrics.map((metric) => ({ ...metric, subject: hostile, metric: hostile }));
  comparison.candidates[0].percentiles = comparison.candidates[0].percentiles.map((pair) => ({ ...pair, subject: hostile }));
  comparison.candidates[0].notes = [hostile];
  return comparison;
}

/** Name, maker of the record, whether it has charts, and whether its colours are checked in the dark too. */
export const pages = [
  { name: "check", make: () => fixture("check-directory"), charts: true, dark: true },
  { name: "check-partial", make: partial, charts: true },
  { name: "check-empty", make: empty, charts: false },
  { name: "run", make: () => fixture("run-depths"), charts: true },
  { name: "curve", make: () => fixture("curve-scan"), charts: true, dark: true },
  { name: "compare", make: () => fixture("comparison"), charts: true, dark: true },
  { name: "compare-hostile", make: hostile_comparison, charts: true },
  { name: "check-hostile", make: made_hostile, charts: true },
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
