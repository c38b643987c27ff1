import { createPrivateKey, randomBytes, X509Certificate } from 'node:crypto';
import type { Manifest } from '../api/index.js';
import { labelKeys } from '../domain/labels.js';
import { publisherPorts, publisherSecretName, publisherServiceName } from '../domain/publisher.js';
import { backoffOf } from '../kube/backoff.js';
import { get } from '../kube/client.js';
import type { KubeClient } from '../kube/client.js';
import { sleep } from '../kube/clock.js';
import type { Clock } from '../kube/clock.js';
import { create } from '../kube/create.js';
import { KubeError } from '../kube/errors.js';
import { update } from '../kube/update.js';
import { CodedError } from '../lib/errors.js';
import { isObject } from '../lib/json.js';
import type * as SelfSigned from './self-signed.js';
import type { ServerCertificate } from './self-signed.js';

/** What a controller needs to call the publisher. */
export interface PublisherAccess {
  readonly url: string;
  /** Certificates in PEM: exactly these servers are trusted. */
  readonly ca: string;
  readonly controllerToken: string;
  readonly capabilitySecret: string;
  readonly artifactSecret: string;
}

export interface PublisherKeysOptions {
  readonly client: KubeClient;
  /** Of the publisher. */
  readonly namespace: string;
  readonly manager: string;
  readonly clock: Clock;
  /** A try that failed is made again. */
  readonly onError: (error: unknown) => void;
  /** Aborted when this process must not write any more. */
  readonly signal: AbortSignal;
}

/** The Secret is there and cannot be used. */
export class PublisherKeysError extends CodedError<'keys-invalid'> {}

/** Names of the entries of the Secret. */
const secretEntries = {
  controllerToken: 'controller-token',
  capabilitySecret: 'operation-capability-secret',
  artifactSecret: 'artifact-capability-secret',
} as const;
const certificateEntry = 'tls.crt';
const privateKeyEntry = 'tls.key';
/** The publisher serves it until its kubelet has brought the next one. */
const previousCertificateEntry = 'tls.previous.crt';
const secretForm = /^[A-Za-z0-9_-]{43}$/;

/** Loads the library of certificates when one is made: once a year. */
const newCertificate = async (...of: Parameters<typeof SelfSigned.selfSigned>): Promise<ServerCertificate> =>
  (await import('./self-signed.js')).selfSigned(...of);

const day = 86_400_000;
const life = 365 * day;
const renewedBefore = 30 * day;
/** Between looks whether the certificate is to be renewed. */
const lookPause = day / 2;
const backoff = { base: 1_000, cap: 60_000 };

type Texts = Readonly<Record<string, string>>;

/**
 * The Secret `orka-publisher-auth`. The leader creates it when it is missing, and renews it before its certificate expires. The publisher mounts it
 * and has no rights in the cluster.
 */
export class PublisherKeys {
  readonly #options: PublisherKeysOptions;
  #known: PublisherAccess | undefined;

  constructor(options: PublisherKeysOptions) {
    this.#options = options;
  }

  /** Keeps the Secret there and its certificate valid, for as long as this process leads. Never rejects. */
  async keep(): Promise<void> {
    const { clock, signal } = this.#options;
    for (let failures = 0; !signal.aborted;) {
      try {
        this.#known = await this.#ensure();
        failures = 0;
      } catch (error) {
        this.#failed(error);
        failures++;
      }
      await sleep(clock, failures > 0 ? backoffOf(failures, backoff) : lookPause, signal);
    }
  }

  /** Throws when the Secret can be neither read nor made. */
  async access(): Promise<PublisherAccess> {
    this.#known ??= await this.#ensure();
    return this.#known;
  }

  /** Forgets what was read: the publisher knows other keys, or has another certificate. */
  forget(): void {
    this.#known = undefined;
  }

  /** What fails because the process ends is no failure. */
  #failed(error: unknown): void {
    if (!this.#options.signal.aborted) this.#options.onError(error);
  }

  async #ensure(): Promise<PublisherAccess> {
    const { client, clock } = this.#options;
    const found = (await get(client, this.#ref, this.#call)) ?? (await this.#make());
    const texts = checked(found, this.#at);
    if (isGood(texts, this.#hosts, clock.now())) return this.#accessOf(texts);
    return this.#accessOf(checked(await this.#renew(found, texts), this.#at));
  }

  /** Where another process made the Secret first, that one is read. */
  async #make(): Promise<Manifest> {
    const { client, clock, manager } = this.#options;
    const { certificate, key } = await newCertificate(this.#hosts, { now: clock.now(), life });
    const secrets = Object.values(secretEntries).map((name) => [name, randomBytes(32).toString('base64url')] as const);
    const data = encoded({ ...Object.fromEntries(secrets), [certificateEntry]: certificate, [privateKeyEntry]: key });
    const { name, namespace } = this.#ref;
    const metadata = { name, namespace, labels: { [labelKeys.managedBy]: 'orka' } };
    try {
      return await create(client, { ...secretKind, metadata, type: 'Opaque', data }, { manager, ...this.#call });
    } catch (error) {
      if (!(error instanceof KubeError) || error.code !== 'already-exists') throw error;
      const winner = await get(client, this.#ref, this.#call);
      if (!winner) throw error;
      return winner;
    }
  }

  async #renew(found: Manifest, texts: Texts): Promise<Manifest> {
    const { client, clock, manager } = this.#options;
    const { certificate, key } = await newCertificate(this.#hosts, { now: clock.now(), life });
    const previous = texts[certificateEntry];
    const data = encoded({
      ...texts,
      [certificateEntry]: certificate,
      [privateKeyEntry]: key,
      ...(previous === undefined ? {} : { [previousCertificateEntry]: previous }),
    });
    const { uid = '', resourceVersion = '' } = found.metadata;
    const changed = await update(client, { ...found, data }, { manager, uid, resourceVersion, ...this.#call });
    return changed.object;
  }

  #accessOf(texts: Texts): PublisherAccess {
    const value = (name: keyof typeof secretEntries) => texts[secretEntries[name]] ?? '';
    const previous = texts[previousCertificateEntry];
    return {
      url: `https://${this.#hosts[0] ?? ''}:${publisherPorts.operations}`,
      ca: [texts[certificateEntry], previous].filter((one) => one !== undefined).join('\n'),
      controllerToken: value('controllerToken'),
      capabilitySecret: value('capabilitySecret'),
      artifactSecret: value('artifactSecret'),
    };
  }

  get #hosts(): readonly string[] {
    const host = `${publisherServiceName}.${this.#options.namespace}.svc`;
    return [host, `${host}.cluster.local`];
  }

  get #ref() {
    return { ...secretKind, namespace: this.#options.namespace, name: publisherSecretName };
  }

  get #at(): string {
    return `Secret ${this.#options.namespace}/${publisherSecretName}`;
  }

  get #call() {
    return { signal: this.#options.signal };
  }
}

const secretKind = { apiVersion: 'v1', kind: 'Secret' } as const;

function encoded(texts: Texts): Texts {
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, Buffer.from(text).toString('base64')]));
}

/** The texts of a Secret with the three secrets in their form. A certificate that cannot be used is replaced; a secret is not. */
function checked(secret: Manifest, at: string): Texts {
  const data = isObject(secret['data']) ? (secret['data'] as Texts) : {};
  const entries = Object.entries(data).map(([name, value]) => [name, Buffer.from(value, 'base64').toString()] as const);
  const texts: Texts = Object.fromEntries(entries);
  const values = Object.values(secretEntries).map((name) => texts[name] ?? '');
  const wrong = Object.values(secretEntries).find((name) => !secretForm.test(texts[name] ?? ''));
  const remedy = 'delete this Secret: the controller makes it again';
  if (wrong !== undefined)
    throw new PublisherKeysError('keys-invalid', { at, field: `data[${wrong}]`, allowed: '43 characters of base64url', remedy });
  if (new Set(values).size < values.length)
    throw new PublisherKeysError('keys-invalid', { at, field: 'data', allowed: 'three secrets that differ', remedy });
  return texts;
}

/** A certificate of these hosts, with its key, that is valid for longer than its renewal may take. */
function isGood(texts: Texts, hosts: readonly string[], now: number): boolean {
  try {
    const certificate = new X509Certificate(texts[certificateEntry] ?? '');
    const own = certificate.checkPrivateKey(createPrivateKey(texts[privateKeyEntry] ?? ''));
    const until = Date.parse(certificate.validTo);
    return own && hosts.every((host) => certificate.checkHost(host) !== undefined) && until - now > renewedBefore;
  } catch {
    return false;
  }
}
