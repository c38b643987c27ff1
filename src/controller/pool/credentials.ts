import { randomBytes } from 'node:crypto';
import type { Manifest } from '../../api/index.js';
import { isOwned } from '../../domain/attestation.js';
import { identityOfPool, resolveFacts } from '../../domain/facts.js';
import { frozenByPool } from '../../domain/frozen.js';
import { authSecretAnnotation, commonLabels, labelKeys } from '../../domain/labels.js';
import { bootstrapPublicKey } from '../../harness/bootstrap.js';
import { get } from '../../kube/client.js';
import { create } from '../../kube/create.js';
import { KubeError } from '../../kube/errors.js';
import { isObject } from '../../lib/json.js';
import { sha256Hex } from '../../lib/sha256.js';
import type { CompiledPool } from '../../render/compile.js';
import { instantiate } from '../../render/instantiate.js';
import { annotatePool } from './annotate.js';
import type { PoolWork } from './act.js';
import type { AuthMaterial, TokenMaterial } from './memory.js';
import { createOwn, ForeignObjectError } from './ensure.js';
import { labelsOf } from './observe.js';
import { mountedAuth, plainAuthName, plainProviderName } from './plain.js';
import { removeObjects } from './remove.js';

const secretKind = { apiVersion: 'v1', kind: 'Secret' } as const;
const keys = {
  controllerToken: 'controller-token',
  capabilitySecret: 'capability-secret',
  nonce: 'bootstrap-nonce',
  signingSeed: 'bootstrap-signing-seed',
} as const;

/** 32 random bytes; their base64url text is the secret itself. */
const secret = (): string => randomBytes(32).toString('base64url');
const suffix = (): { readonly random: string } => ({ random: randomBytes(12).toString('hex') });

/** Reads the provider's token, and the auth Secret that the pool names for this epoch. Nothing is written. */
export async function readCredentials(work: PoolWork): Promise<void> {
  const { o, memory, options } = work;
  memory.token = await readToken(work);
  if (o.family === 'plain') {
    const found = await readMounted(work, options.epoch);
    if (found) memory.auth.set(options.epoch, found);
    return;
  }
  const published = o.pool.metadata.annotations?.[authSecretAnnotation(options.epoch)];
  if (published !== undefined) memory.auth.set(options.epoch, await readAuth(work, published));
}

/** Reads what the instance of an older epoch was given. */
export async function readInstanceCredentials(work: PoolWork, epoch: number): Promise<void> {
  if (work.o.family === 'plain') {
    work.memory.auth.set(epoch, (await readMounted(work, epoch)) ?? 'lost');
    return;
  }
  const published = work.o.pool.metadata.annotations?.[authSecretAnnotation(epoch)];
  work.memory.auth.set(epoch, published === undefined ? 'lost' : await readAuth(work, published));
}

/**
 * Makes both private Secrets under new random names, and only then names the first in the pool: whoever crashes between leaves Secrets that
 * nobody uses, and that are removed later. One that somebody else put there is never adopted. Source: workload.md §3.7.
 */
export async function createCredentials(work: PoolWork): Promise<void> {
  const { memory, options, signal } = work;
  const token = memory.token ?? (await readToken(work));
  memory.token = token;
  if ('says' in token || work.compiled === undefined) return;
  if (work.o.family === 'plain') {
    await createMounted(work, work.compiled, token);
    return;
  }
  const credentials = { controllerToken: secret(), capabilitySecret: secret() };
  const [nonce, signingSeed] = [secret(), secret()];
  const publicKey = bootstrapPublicKey(signingSeed);
  const shapes = shapesOf(work, work.compiled, { token, nonce, publicKey });
  const values = [
    { ...named(credentials), [keys.nonce]: nonce, [keys.signingSeed]: signingSeed },
    { token: token.value },
  ] as const;
  const made = await Promise.all(
    shapes.map((shape, index) =>
      create(options.client, withData(shape, values[index] ?? {}), { manager: options.manager, signal }),
    ),
  );
  for (const object of made) options.world.secrets.wrote(withoutData(object));
  const [auth, copy] = made;
  if (!auth || !copy) return;
  memory.token = { ...token, secretName: copy.metadata.name };
  memory.auth.set(options.epoch, {
    secretName: auth.metadata.name,
    secretUid: auth.metadata.uid ?? '',
    bootstrap: { nonce, signingSeed, publicKey },
    credentials,
  });
  await annotatePool(work, { [authSecretAnnotation(options.epoch)]: `${auth.metadata.name}/${auth.metadata.uid ?? ''}` });
}

/**
 * Makes the two Secrets that a plain pool mounts, under names that follow from pool, epoch and token: who comes second meets those of the
 * first and uses them, if they are this pool's and immutable. The values are read back, so that what is remembered is what is mounted.
 */
async function createMounted(work: PoolWork, compiled: CompiledPool, token: TokenMaterial): Promise<void> {
  const { o, memory, options } = work;
  const instance = { controllerEpoch: options.epoch, tokenGeneration: token.generation };
  const facts = resolveFacts(identityOfPool(o.pool), instance, { replicas: 0 });
  const shapes = instantiate(compiled, facts, frozenByPool(o.pool.spec)).secrets.map(({ manifest }) => manifest);
  const values = [
    { ...named({ controllerToken: secret(), capabilitySecret: secret() }), [keys.nonce]: secret() },
    { token: token.value },
  ] as const;
  const made = await Promise.all(shapes.map((shape, index) => createOwn(work, withData(shape, values[index] ?? {}))));
  for (const object of made) options.world.secrets.wrote(withoutData(object));
  const [auth, copy] = made;
  if (copy && textsOf(copy)['token'] !== token.value)
    throw new ForeignObjectError('foreign-object', {
      at: `Secret ${options.runtimeNamespace}/${copy.metadata.name}`,
      allowed: 'the token of the provider proxy that its name stands for',
    });
  if (auth) memory.auth.set(options.epoch, readableAuth(auth));
  memory.token = { ...token, secretName: facts.providerSecretName };
}

async function readMounted(work: PoolWork, epoch: number): Promise<AuthMaterial | 'lost' | undefined> {
  const { o, options, signal } = work;
  const name = plainAuthName(o.pool, epoch);
  const object = await get(options.client, { ...secretKind, namespace: options.runtimeNamespace, name }, { signal });
  if (!object) return undefined;
  return isOwned(object, options.runtimeNamespace, commonLabels(labelsOf(o.pool))) ? readableAuth(object) : undefined;
}

const readableAuth = (object: Manifest): AuthMaterial | 'lost' =>
  (object['immutable'] === true ? mountedAuth(object, textsOf(object)) : undefined) ?? 'lost';

/** Deletes the Secret of this epoch, which cannot be used, so that another can be made under its name. */
export async function removeMounted(work: PoolWork): Promise<void> {
  const { o, options, signal } = work;
  const name = plainAuthName(o.pool, options.epoch);
  const live = options.world.secrets.get(`${options.runtimeNamespace}/${name}`);
  if (live && isOwned(live, options.runtimeNamespace, commonLabels(labelsOf(o.pool))))
    await removeObjects(options, [live], signal);
}

function named(credentials: AuthMaterial['credentials']): Readonly<Record<string, string>> {
  return { [keys.controllerToken]: credentials.controllerToken, [keys.capabilitySecret]: credentials.capabilitySecret };
}

function shapesOf(
  { o, options }: PoolWork,
  compiled: CompiledPool,
  made: { readonly token: TokenMaterial; readonly nonce: string; readonly publicKey: string },
): readonly Manifest[] {
  const facts = resolveFacts(
    identityOfPool(o.pool),
    { controllerEpoch: options.epoch, tokenGeneration: made.token.generation },
    { authSecret: suffix(), providerSecret: suffix(), nonce: made.nonce, publicKey: made.publicKey },
  );
  return instantiate(compiled, facts, frozenByPool(o.pool.spec)).secrets.map(({ manifest }) => manifest);
}

function withData(shape: Manifest, values: Readonly<Record<string, string>>): Manifest {
  const data = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, Buffer.from(value).toString('base64')]));
  return { ...shape, data };
}

function withoutData({ data: _data, ...rest }: Manifest): Manifest {
  return rest;
}

function textsOf(object: Manifest): Readonly<Record<string, string>> {
  const data = isObject(object['data']) ? object['data'] : {};
  const texts = Object.entries(data).flatMap(([name, value]): [string, string][] =>
    typeof value === 'string' ? [[name, Buffer.from(value, 'base64').toString()]] : [],
  );
  return Object.fromEntries(texts);
}

async function readAuth({ o, options, signal }: PoolWork, published: string): Promise<AuthMaterial | 'lost'> {
  const [name = '', uid = ''] = published.split('/');
  const object = await get(options.client, { ...secretKind, namespace: options.runtimeNamespace, name }, { signal });
  if (object?.metadata.uid !== uid || !isOwned(object, options.runtimeNamespace, commonLabels(labelsOf(o.pool)))) return 'lost';
  const { [keys.controllerToken]: controllerToken, [keys.capabilitySecret]: capabilitySecret, ...rest } = textsOf(object);
  const { [keys.nonce]: nonce, [keys.signingSeed]: signingSeed } = rest;
  if (!controllerToken || !capabilitySecret || !nonce || !signingSeed) return 'lost';
  return {
    secretName: name,
    secretUid: uid,
    bootstrap: { nonce, signingSeed, publicKey: bootstrapPublicKey(signingSeed) },
    credentials: { controllerToken, capabilitySecret },
  };
}

/** Name of the copy of a token that this epoch has made already, or `''`. */
function copyOf({ o, options }: PoolWork, generation: string): string {
  const labels = {
    ...commonLabels(labelsOf(o.pool)),
    [labelKeys.controllerEpoch]: String(options.epoch),
    [labelKeys.providerGeneration]: generation,
  };
  return options.world.secrets.list().find((one) => isOwned(one, options.runtimeNamespace, labels))?.metadata.name ?? '';
}

/** The token that instances show to the provider's proxy. Source: workload.md §3.8. */
async function readToken(work: PoolWork): Promise<TokenMaterial | { readonly says: string }> {
  const { options, compiled, signal } = work;
  if (!compiled) return { says: 'there is no usable class' };
  const { name, key } = compiled.spec.providerProxy.tokenSecretRef;
  const at = `Secret ${options.controllerNamespace}/${name}`;
  const watchedAs = options.tokenVersion(name);
  try {
    const object = await get(options.client, { ...secretKind, namespace: options.controllerNamespace, name }, { signal });
    if (!object) return { says: `${at} is missing: it holds the token of the provider proxy` };
    const value = textsOf(object)[key]?.trim();
    if (value === undefined) return { says: `${at} has no key ${key}` };
    const bytes = Buffer.from(value);
    const usable = bytes.length >= 32 && bytes.length <= 4096 && bytes.every((byte) => byte > 0x20 && byte !== 0x7f);
    if (!usable) return { says: `${at}: ${key} must be 32 to 4096 bytes without blanks and control characters` };
    const generation = sha256Hex(value).slice(0, 16);
    const secretName =
      work.o.family === 'plain' ? plainProviderName(work.o.pool, options.epoch, generation) : copyOf(work, generation);
    return { value, generation, secretName, watchedAs };
  } catch (error) {
    if (error instanceof KubeError && error.code === 'forbidden') return { says: `${at} may not be read: ${error.message}` };
    throw error;
  }
}
