// One measurement in a process of its own, so that its peak of memory is its own: `node charts.js ours|cdk8s <objects> <charts>` prints JSON.
import { ApiObject, App, Chart } from 'cdk8s';
import { Resource } from '../../lib/constructs/index.js';
import { renderApp } from '../../lib/render/index.js';

const [way, objects, charts] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];

/** Objects of the size of a pool's: a Pod template in each. */
const manifest = (n) => ({
  apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
  kind: 'SandboxTemplate',
  metadata: { name: `template-${n}`, labels: { 'app.kubernetes.io/part-of': 'bench', 'bench.example/number': String(n) } },
  spec: {
    networkPolicyManagement: 'Managed',
    networkPolicy: {
      egress: [{ to: [{ podSelector: { matchLabels: { app: `a-${n}` } } }], ports: [{ protocol: 'TCP', port: 8080 }] }],
    },
    podTemplate: {
      spec: {
        automountServiceAccountToken: false,
        containers: [
          {
            name: 'agent',
            image: `registry.example/agent@sha256:${'0'.repeat(64)}`,
            env: [
              { name: 'NUMBER', value: String(n) },
              { name: 'HOME', value: '/home/agent' },
            ],
            resources: { requests: { cpu: '250m', memory: '512Mi' }, limits: { cpu: '1', memory: '1Gi' } },
            volumeMounts: [{ name: 'home', mountPath: '/home/agent' }],
          },
        ],
        volumes: [{ name: 'home', emptyDir: { sizeLimit: '1Gi' } }],
      },
    },
  },
});

const Made = way === 'ours' ? Resource : ApiObject;
const app = new App({ recordConstructMetadata: false });
for (let c = 0; c < charts; c++) {
  const chart = new Chart(app, `chart-${c}`);
  for (let n = c; n < objects; n += charts) new Made(chart, `o-${n}`, manifest(n));
}
const before = process.memoryUsage().rss;
const start = performance.now();
const text =
  way === 'ours'
    ? renderApp(app)
        .map((file) => file.text)
        .join('---\n')
    : app.synthYaml();
const ms = performance.now() - start;
const found = text.match(/^kind: SandboxTemplate$/gm)?.length;
if (found !== objects) throw new Error(`${way}: ${found} objects of ${objects}`);
console.log(JSON.stringify({ ms, peakMiB: process.resourceUsage().maxRSS / 1024, treeMiB: before / 2 ** 20 }));
