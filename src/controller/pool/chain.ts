import type { Manifest } from '../../api/index.js';
import { differsFromAccepted } from '../../domain/attestation.js';
import type { Materialization } from '../../domain/attestation.js';
import { computedFrom, remembered } from '../../lib/remember.js';
import type { PoolMemory } from './memory.js';

/**
 * Is the chain of the attested Pod another one now? Its objects are written all the time, nearly always only their status, so they are
 * compared again only when what is compared reads otherwise.
 */
export function chainDiffers(chain: Materialization, memory: PoolMemory): boolean {
  const { template, claim, sandbox, pod } = chain;
  const accepted = memory.attested?.accepted;
  const from = [accepted, ...[template, claim, sandbox, pod].map((object) => comparedText(object))];
  memory.compared = computedFrom(memory.compared, from, () => differsFromAccepted(chain, accepted));
  return memory.compared.value;
}

/** All of an object but what changes with each write of its status, and is never compared. */
const comparedText = remembered(({ status: _status, metadata, ...rest }: Manifest) => {
  const { resourceVersion: _version, managedFields: _managers, generation: _generation, ...kept } = metadata;
  return JSON.stringify({ ...rest, metadata: kept });
});
