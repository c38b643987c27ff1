import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { kubeconfigAccess } from '../kube/kubeconfig.js';
import type { ClusterAccess } from '../kube/access.js';
import { readYaml } from '../render/yaml-read.js';
import { InputError, readInput } from './files.js';

/** Access by a kubeconfig and one of its contexts, the current one unless one is named. */
export function accessBy(file: string, context?: string): ClusterAccess {
  const [document, ...more] = readYaml(readInput(file), file);
  if (more.length > 0)
    throw new InputError('input-invalid', { at: file, found: `${more.length + 1} documents`, allowed: 'one document' });
  return kubeconfigAccess(document?.value ?? null, file, context);
}

/** The kubeconfig that kubectl would read; a list of several in `KUBECONFIG` is refused instead of merged. */
export function usualKubeconfig(environment: NodeJS.ProcessEnv = process.env): string {
  const files = (environment['KUBECONFIG'] ?? '').split(delimiter).filter((file) => file !== '');
  if (files.length > 1)
    throw new InputError('input-invalid', { at: 'KUBECONFIG', found: files, allowed: 'one file; --kubeconfig names another' });
  return files[0] ?? join(homedir(), '.kube', 'config');
}
