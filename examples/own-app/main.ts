/**
 * A cdk8s app of your own with these constructs, without our controller: one sandbox template, ten warm sandboxes, and a claim.
 * Run it with `cdk8s synth` (cdk8s.yaml: `app: node main.js`), or render it faster and stricter with `renderApp`.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { App, Chart } from 'cdk8s';
import * as kplus from 'cdk8s-plus-28';
import { SandboxClaim, SandboxTemplate, SandboxWarmPool } from 'orka-workspaces';
import { renderApp } from 'orka-workspaces/render';

const app = new App();
const chart = new Chart(app, 'agents', { namespace: 'team-a', labels: { 'app.kubernetes.io/part-of': 'agents' } });

new kplus.Namespace(chart, 'namespace', { metadata: { name: 'team-a' } });

const template = new SandboxTemplate(chart, 'template', {
  metadata: { name: 'coder' },
  podTemplate: {
    spec: {
      automountServiceAccountToken: false,
      // Without this a Pod never finishes, and the claim below would never end.
      restartPolicy: 'Never',
      containers: [
        {
          name: 'agent',
          image: `registry.example/coder@sha256:${'a1'.repeat(32)}`,
          resources: { limits: { cpu: '1', memory: '1Gi' } },
        },
      ],
    },
  },
  // Closed both ways by default; this opens DNS and nothing else.
  networkPolicy: {
    egress: [
      {
        to: [
          {
            namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'kube-system' } },
            podSelector: { matchLabels: { 'k8s-app': 'kube-dns' } },
          },
        ],
        ports: [{ protocol: 'UDP', port: 53 }],
      },
    ],
  },
});
const pool = new SandboxWarmPool(chart, 'pool', {
  metadata: { name: 'coder' },
  template,
  replicas: 10,
  updateStrategy: 'Recreate',
});
new SandboxClaim(chart, 'claim', {
  metadata: { name: 'coder-1' },
  warmPool: pool,
  lifecycle: { ttlSecondsAfterFinished: 60, shutdownPolicy: 'Delete' },
});

const out = process.env['CDK8S_OUTDIR'] ?? 'dist';
mkdirSync(out, { recursive: true });
for (const { path, text } of renderApp(app)) writeFileSync(`${out}/${path}`, text);
