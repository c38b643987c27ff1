import type { Manifest } from '../../api/index.js';
import { differsFromAccepted } from '../../domain/attestation.js';
import type { Materialization } from '../../domain/attestation.js';
import { remembered } from '../../lib/remember.js';
import type { PoolMemory } from './memory.js';

/**
 * Is the chain of the attested Pod another one now? Its objects are written all the time, nearly always only their status, so they are
 * compared again only when what is compared reads otherwise.
 */
export function chainDiffers(chain: Materialization, memory: PoolMemory): boolean {
  const inputs = [memory.attested?.accepted, ...[chain.template, chain.claim, chain.sandbox, chain.pod].map(comparedText)];
  const known = memory.compared;
  if (known?.inputs.every((input, index) => input === inputs[index])) return known.differs;
  const differs = differsFromAccepted(chain, memory.attested?.accepted);
  memory.compared = { inputs, differs };
  return differs;
}

/** All of an object but what changes with each write of its status, and is never compared. */
const comparedText = remembered(({ status: _status, metadata, ...rest }: Manifest) => {
  const { resourceVersion: _version, managedFields: _managers, generation: _generation, ...kept } = metadata;
  return JSON.stringify({ ...rest, metadata: kept });
});
