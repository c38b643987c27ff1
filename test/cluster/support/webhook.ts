/** A mutating webhook in this process, for the API server of the same machine. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Manifest } from '../../../src/api/index.js';
import type { PatchOperation } from '../../../src/constructs/patch.js';
import { refOf } from '../../../src/kube/client.js';
import { create } from '../../../src/kube/create.js';
import { run } from '../run.js';
import { applyAll, cleanUp, eventually, kube, manager } from './cluster.js';

/** A creation that the webhook was asked about. */
interface AskedCreation {
  readonly name: string;
  readonly by: string;
  readonly dryRun: boolean;
  readonly object: Manifest;
}

export interface PodWebhook {
  readonly asked: readonly AskedCreation[];
  /** What it does from now on: the changes to a Pod, or the failure with this text. */
  answer: (creation: AskedCreation) => readonly PatchOperation[] | string;
  readonly close: () => Promise<void>;
}

interface AdmissionReview {
  readonly request: {
    readonly uid: string;
    readonly name?: string;
    readonly dryRun?: boolean;
    readonly userInfo: { readonly username: string };
    readonly object: Manifest;
  };
}

/**
 * Asked about each Pod that is created in a namespace with a label. What it cannot answer is not created.
 *
 * @param name also that of the MutatingWebhookConfiguration
 */
export async function podWebhook(name: string, namespace: string, label: string): Promise<PodWebhook> {
  const { key, cert } = await selfSigned();
  const asked: AskedCreation[] = [];
  const webhook = { answer: (): readonly PatchOperation[] => [] } as Pick<PodWebhook, 'answer'>;
  const server = createServer({ key, cert }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { request: of } = JSON.parse(Buffer.concat(chunks).toString()) as AdmissionReview;
      const { object, userInfo, dryRun = false } = of;
      const creation = { name: of.name ?? object.metadata.name, by: userInfo.username, dryRun, object };
      asked.push(creation);
      const answer = webhook.answer(creation);
      if (typeof answer === 'string') {
        response.writeHead(500).end(answer);
        return;
      }
      const patch = Buffer.from(JSON.stringify(answer)).toString('base64');
      const review = {
        apiVersion: 'admission.k8s.io/v1',
        kind: 'AdmissionReview',
        response: { uid: of.uid, allowed: true, patchType: 'JSONPatch', patch },
      };
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(review));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const configuration: Manifest = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingWebhookConfiguration',
    metadata: { name },
    webhooks: [
      {
        name: `${name}.example.com`,
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        failurePolicy: 'Fail',
        timeoutSeconds: 15,
        clientConfig: {
          url: `https://127.0.0.1:${(server.address() as AddressInfo).port}/`,
          caBundle: Buffer.from(cert).toString('base64'),
        },
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
        objectSelector: { matchExpressions: [{ key: label, operator: 'Exists' }] },
        rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }],
      },
    ],
  };
  await applyAll([configuration]);
  // The API server learns of a webhook a moment after it is written.
  const probe: Manifest = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, labels: { [label]: 'probe' } },
    spec: { automountServiceAccountToken: false, containers: [{ name: 'probe', image: 'probe' }] },
  };
  await eventually(`a webhook ${name} that is asked`, async () => {
    // Whether it may be created does not matter.
    await create(kube, probe, { manager, dryRun: true }).catch(() => undefined);
    return asked.length > 0 ? true : undefined;
  });
  asked.length = 0;
  return Object.assign(webhook, {
    asked,
    close: async () => {
      await cleanUp([refOf(configuration)]);
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}

/** Its own authority, as the configuration wants one. */
async function selfSigned(): Promise<{ readonly key: string; readonly cert: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'orka-webhook-'));
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  try {
    await run('openssl', [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'],
      ...['-subj', '/CN=orka-webhook', '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', cert],
    ]);
    return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
