// Programs of ours that run in Pods of the test cluster.

import { build } from 'esbuild';

/** @typedef {import('../../../src/api/index.js').Manifest} Manifest */

/**
 * One of the scripts of `in-pod`, with all that it imports, as a ConfigMap of one file `main.mjs`.
 *
 * @param {string} name
 * @param {string} namespace
 * @param {string} script
 * @returns {Promise<Manifest>}
 */
export async function scriptMap(name, namespace, script) {
  const { outputFiles } = await build({
    entryPoints: [new URL(`in-pod/${script}.ts`, import.meta.url).pathname],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    minify: true,
  });
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace }, data: { 'main.mjs': outputFiles[0]?.text ?? '' } };
}

/**
 * @typedef {object} ScriptPod
 * @property {string} name also that of the ConfigMap
 * @property {string} namespace
 * @property {Readonly<Record<string, string>>} labels
 * @property {string} image that of the controller, which has Node
 * @property {string} [secret] a Secret whose keys are files in `/secret`
 * @property {number} [port] on which the script listens; the Pod is ready once it does
 */

/**
 * A Pod that runs Node with `args`; the script is at `/script/main.mjs`.
 *
 * @param {ScriptPod} pod
 * @param {readonly string[]} args
 * @returns {Manifest}
 */
export function scriptPod({ name, namespace, labels, image, secret, port }, args) {
  const files = [
    { volume: { name: 'script', configMap: { name } }, mountPath: '/script' },
    ...(secret === undefined ? [] : [{ volume: { name: 'secret', secret: { secretName: secret } }, mountPath: '/secret' }]),
  ];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, labels },
    spec: {
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 0,
      securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name: 'script',
          image,
          command: ['/usr/local/bin/node', ...args],
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
          volumeMounts: files.map(({ volume, mountPath }) => ({ name: volume.name, mountPath, readOnly: true })),
          ...(port === undefined ? {} : { readinessProbe: { tcpSocket: { port }, periodSeconds: 1 } }),
        },
      ],
      volumes: files.map(({ volume }) => volume),
    },
  };
}
