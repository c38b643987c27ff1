import { isTimestamp } from '../api/limits.js';
import { isObject } from '../lib/json.js';
import { isDnsLabel } from '../lib/kubernetes-names.js';
import { readYaml } from '../render/yaml-read.js';
import { InputError, inputName, readInput } from './files.js';
import { liveInputs } from './plan-facts.js';
import type { LiveInput } from './plan-facts.js';

export const namespaceForm = 'the name of a namespace';

/** What a live value can be. Only `number` may stand in the file without quotes: of another one YAML might have changed the digits. */
interface Form {
  readonly test: (text: string) => boolean;
  readonly allowed: string;
  readonly number?: true;
}

const matches = (pattern: RegExp) => (text: string) => pattern.test(text);
const wholeNumber: Form = {
  test: (text) => /^[1-9]\d{0,15}$/.test(text) && Number.isSafeInteger(Number(text)),
  allowed: `a whole number from 1 to ${Number.MAX_SAFE_INTEGER}`,
  number: true,
};
const uid: Form = { test: matches(/^[a-z\d](?:[-a-z\d]{0,61}[a-z\d])?$/), allowed: 'a UID' };
const random: Form = { test: matches(/^[\da-f]{24}$/), allowed: '24 lower-case hexadecimal digits' };
const key: Form = { test: matches(/^[\w-]{43}$/), allowed: '32 bytes in base64url' };

/** So that a plan cannot show what the controller would never make. */
const forms: Readonly<Record<LiveInput, Form>> = {
  namespace: { test: isDnsLabel, allowed: namespaceForm },
  now: {
    test: (text) => /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$/.test(text) && isTimestamp(text),
    allowed: 'an instant that exists, as 2026-01-31T08:00:00Z',
  },
  taskUid: uid,
  agentUid: uid,
  agentGeneration: wholeNumber,
  poolUid: uid,
  poolGeneration: wholeNumber,
  controllerEpoch: wholeNumber,
  tokenGeneration: { test: matches(/^[\da-f]{16}$/), allowed: '16 lower-case hexadecimal digits' },
  authSecretRandom: random,
  providerSecretRandom: random,
  bootstrapNonce: key,
  bootstrapPublicKey: key,
};

/** Values of live facts: a flat map of names to texts or numbers. */
export function readFacts(file: string): Readonly<Partial<Record<LiveInput, string>>> {
  const at = inputName(file);
  const documents = readYaml(readInput(file), at);
  const names = Object.keys(liveInputs) as LiveInput[];
  const refuse = (field: string, found: unknown, allowed: string): never => {
    throw new InputError('input-invalid', { at, field, found, allowed });
  };
  const facts = documents[0]?.value;
  if (documents.length > 1) return refuse('', `${documents.length} documents`, 'one document');
  if (!isObject(facts)) return refuse('', facts, `a map with some of ${names.join(', ')}`);
  const given = Object.entries(facts).map(([field, value]): [LiveInput, string] => {
    const name = names.find((one) => one === field) ?? refuse(field, value, names.join(', '));
    const { test, allowed, number } = forms[name];
    if (typeof value === 'number' && !number)
      return refuse(name, value, `${allowed}, in quotes: without them YAML reads a number`);
    if (typeof value !== 'string' && typeof value !== 'number') return refuse(name, value, allowed);
    if (!test(String(value))) return refuse(name, value, allowed);
    return [name, String(value)];
  });
  return Object.fromEntries(given);
}
