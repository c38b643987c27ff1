import { join } from 'node:path';
import { kubectl } from './cluster.js';

/** Installs an output folder as the README says: the kinds first. */
export async function install(dist: string): Promise<void> {
  await kubectl(['apply', '--server-side', '-f', join(dist, 'apply/0000-crds.k8s.yaml')]);
  await kubectl([
    'wait',
    '--for=condition=Established',
    'crd',
    '-l',
    'app.kubernetes.io/managed-by=orka-workspaces',
    '--timeout=30s',
  ]);
  await kubectl(['apply', '--server-side', '-k', dist]);
}
