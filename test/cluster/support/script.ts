import { build } from 'esbuild';
import type { Manifest } from '../../../src/api/index.js';

/** One of the scripts of `in-pod`, with all that it imports, as a ConfigMap of one file `main.mjs`. */
export async function scriptMap(name: string, namespace: string, script: string): Promise<Manifest> {
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

/** A Pod of the image of the controller, which has Node, that runs `args` with the script of the same name at `/script/main.mjs`. */
export function scriptPod(
  {
    name,
    namespace,
    labels,
    image,
  }: Readonly<Record<'name' | 'namespace' | 'image', string>> & {
    readonly labels: Readonly<Record<string, string>>;
  },
  args: readonly string[],
): Manifest {
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
          volumeMounts: [{ name: 'script', mountPath: '/script', readOnly: true }],
        },
      ],
      volumes: [{ name: 'script', configMap: { name } }],
    },
  };
}
