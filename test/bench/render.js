// Ratios from one run, against a peer measured in the same run. `npm run bench`; numbers move with the machine, ratios hardly.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ApiObject, App, Chart } from 'cdk8s';
import { placeholder } from '../../lib/domain/placeholders.js';
import { factNames } from '../../lib/domain/facts.js';
import { approve } from '../../lib/render/approve.js';
import { compile } from '../../lib/render/compile.js';
import { instantiate, renderedObjects } from '../../lib/render/instantiate.js';
import { readPlatform } from '../../lib/render/platform.js';
import { toYamlStream } from '../../lib/render/yaml.js';

const platform = readPlatform(readFileSync('platform.yaml', 'utf8'), 'platform.yaml');
const [poolClass] = platform.classes;
const { compiled } = approve(poolClass);

/** Facts of the n-th pool. */
const facts = (n) => Object.fromEntries(factNames.workspace.map((name) => [name, `${placeholder(name).slice(5, -2)}-${n}`]));

/** Median of several timed runs, in milliseconds. */
function median(runs, work) {
  const times = Array.from({ length: runs }, (_, run) => {
    const start = performance.now();
    work(run);
    return performance.now() - start;
  });
  return times.sort((a, b) => a - b)[Math.floor(runs / 2)];
}

const rows = [];
const report = (what, ours, peer, peerIs, goal) =>
  rows.push({
    what,
    'ours (ms)': ours.toFixed(3),
    'peer (ms)': peer === undefined ? '' : peer.toFixed(1),
    peer: peerIs ?? '',
    ratio: peer === undefined ? '' : `${(peer / ours).toFixed(1)} x`,
    goal: goal ?? '',
  });

const spec = { ...poolClass.spec, approvedDigests: [] };
median(5, () => compile(spec));
report(
  'compile a class, both families',
  median(41, () => compile(spec)),
);

const one = (n) => renderedObjects(instantiate(compiled, facts(n), compiled.frozen));
for (let n = 0; n < 2000; n++) one(n);
const many = 2000;
report(
  'instantiate one pool',
  median(9, (run) => {
    for (let n = 0; n < many; n++) one(run * many + n);
  }) / many,
  undefined,
  undefined,
  '< 0.1 ms',
);

/** The same objects by cdk8s: an app, one chart a pool, synthYaml. */
function byCdk8s(count) {
  const app = new App({ recordConstructMetadata: false });
  for (let n = 0; n < count; n++) {
    const chart = new Chart(app, `pool-${n}`);
    one(n).forEach((manifest, index) => new ApiObject(chart, `o-${index}`, structuredClone(manifest)));
  }
  return app.synthYaml();
}
const ourYaml = (count) => {
  let bytes = 0;
  for (let n = 0; n < count; n++) bytes += toYamlStream(one(n)).length;
  return bytes;
};
// cdk8s is quadratic in charts: four times as many take 16 times as long, which would be minutes.
const peerOf1000 = median(1, () => byCdk8s(1000));
const per = {};
for (const [count, peer, peerIs] of [
  [1000, peerOf1000, 'cdk8s App.synthYaml'],
  [4000, peerOf1000 * 16, 'cdk8s, extrapolated: 16 times 1000 pools'],
]) {
  const ours = median(5, () => ourYaml(count));
  per[count] = ours / count;
  report(`${count} pools as YAML`, ours, peer, peerIs, '>= 5 x');
}
rows.push({ what: 'per pool, 4000 against 1000 (linear = 1)', ratio: `${(per[4000] / per[1000]).toFixed(2)} x` });

/** Rendering an app of many objects, in a process of its own. */
function charts(way, objects, count) {
  const { stdout, stderr, status } = spawnSync(process.execPath, ['test/bench/charts.js', way, objects, count], {
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}
/** The run of the middle time. */
const middle = (runs, ...of) =>
  Array.from({ length: runs }, () => charts(...of)).sort((a, b) => a.ms - b.ms)[Math.floor(runs / 2)];
const objects = 10_000;
const [few, ours, theirs] = [middle(3, 'ours', 2500, 50), middle(3, 'ours', objects, 200), middle(1, 'cdk8s', objects, 200)];
report(`${objects} objects in 200 charts`, ours.ms, theirs.ms, 'cdk8s App.synthYaml', '>= 5 x');
rows.push({
  what: 'the same, peak memory in MiB',
  'ours (ms)': ours.peakMiB.toFixed(0),
  'peer (ms)': theirs.peakMiB.toFixed(0),
  peer: 'cdk8s App.synthYaml',
  ratio: `${(theirs.peakMiB / ours.peakMiB).toFixed(1)} x`,
  goal: '>= 1 x',
});
rows.push({
  what: 'per object, 10000 in 200 charts against 2500 in 50 (linear = 1)',
  ratio: `${(ours.ms / 4 / few.ms).toFixed(2)} x`,
});
// One chart an object is quadratic in cdk8s: four times as long for twice as much. Measured at a fifth of the size, and 25 times of it taken.
const alone = middle(1, 'cdk8s', objects / 5, objects / 5).ms * 25;
report(
  `${objects} objects in ${objects} charts`,
  middle(3, 'ours', objects, objects).ms,
  alone,
  `cdk8s, extrapolated: 25 times ${objects / 5} objects`,
  '>= 20 x',
);

const quiet = { stdio: 'ignore', env: { ...process.env, NODE_OPTIONS: '', CDK8S_CHECK_UPGRADE: 'false' } };
const out = mkdtempSync(join(tmpdir(), 'orka-bench-'));
const node = median(7, () => spawnSync(process.execPath, ['-e', '0'], quiet));
const plan = median(9, () =>
  spawnSync(process.execPath, ['lib/bin/orka-workspaces.js', 'plan', '--assume-enabled', '-f', 'examples/smoke.yaml'], quiet),
);
const synth = median(3, () =>
  spawnSync(process.execPath, ['node_modules/cdk8s-cli/bin/cdk8s', 'synth', '--output', join(out, 'dist')], quiet),
);
report(`plan from a cold start (node alone: ${node.toFixed(0)} ms)`, plan, synth, 'cdk8s synth', '< 250 ms');
rmSync(out, { recursive: true, force: true });
console.table(rows);
